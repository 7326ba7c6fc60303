"""Boxes: a value of any structure that a program replaces while it is traced.

A box is a second kind of ref: its cell holds a container of values in place of one array. So the transformations
thread it like refs (core/program/ref_cells.py), as a further argument and a further result.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xlamini.core import Cell, Holder, api_boundary_methods, aval_of, flatten_from_user, unflatten
from xlamini.core.program.hi_types import as_written, is_mutable_value
from xlamini.core.program.mutable_values import cell_of, state_of
from xlamini.core.program.ref_cells import is_holder
from xlamini.core.pytree import PyTreeDef
from xlamini.staging.trace.arguments import LeafNames, checked_avals


@dataclass(frozen=True)
class BoxTy:
    """The type of all boxes, as `typeof` gives it; what one holds now, `cur_qdd(box)` says.

    >>> xlamini.typeof(Box(1.0)) == xlamini.typeof(Box()) == BoxTy()
    True
    """

    is_high = has_qdd = True


@dataclass(frozen=True)
class BoxTypeState:
    """The types of the leaves that a box holds now, and their structure.

    >>> box = Box({"w": xlamini.numpy.ones(3)})
    >>> cur_qdd(box)
    BoxTypeState(leaf_avals=(ShapedArray(float32[3]),), treedef=PyTreeDef({'w': *}))
    >>> before = cur_qdd(box)
    >>> box.set({"w": xlamini.numpy.zeros(3)})
    >>> cur_qdd(box) == before
    True
    """

    leaf_avals: tuple[Any, ...]
    treedef: PyTreeDef


class BoxCell(Cell):
    """The cell of a box."""

    __slots__ = ()

    reading = "box.get()"

    @property
    def ty(self) -> Any:
        return BoxTy()

    @property
    def noun(self) -> str:
        return "a box"


class Box(Holder):
    """A mutable value: an array, or a container of arrays, which `get` reads and `set` replaces.

    The new value may be of other types than the one before, but not in the body of a loop (TypeError), and all branches
    of a `cond` must leave the same types. A box may be closed over or passed as an argument, and is a leaf of pytrees;
    it cannot be returned. In a derivative it holds the primal value; derivatives flow through it.

    >>> box = Box(0.0)
    >>> @xlamini.jit
    ... def note(x):
    ...     box.set({"last": x, "before": box.get()})
    >>> note(2.0)
    >>> box.get()["last"]
    Array(2., dtype=float32, weak_type=True)
    """

    __slots__ = ()
    __hash__: Callable[..., int] = object.__hash__

    def __init__(self, init_val: Any = None):
        super().__init__(BoxCell(_checked("Box", init_val), None))  # type: ignore[arg-type]

    @classmethod
    def of_value(cls, value: Any) -> Box:
        """A new box that holds the value."""
        return cls(value)

    def get(self) -> Any:
        """The value; None in a box that is empty."""
        leaves, tree = flatten_from_user(self._cell.read())
        return unflatten(tree, leaves)

    def set(self, val: Any) -> None:
        """Replace the value; TypeError for what is no array, number or container of them."""
        self._cell.write(_checked("Box.set", val))

    def __repr__(self) -> str:
        return "Box()" if self._cell.owner is not None else f"Box({self._cell.value!r})"


api_boundary_methods(Box)


def _checked(what: str, val: Any) -> Any:
    """A copy of the containers, so that later changes of them do not reach into the box."""
    leaves, tree = flatten_from_user(val)
    if any(map(is_holder, leaves)):
        raise TypeError(f"{what}: the value has a ref or a box in it; put in what that holds, ref[...] or box.get()")
    checked_avals(leaves, LeafNames("val", tree), what)
    return unflatten(tree, leaves)


def new_box() -> Box:
    """An empty box; it holds None.

    >>> new_box()
    Box(None)
    """
    return Box()


def box_get(box: Box) -> Any:
    """What the box holds: `box.get()`.

    >>> box_get(Box((1.0, 2.0)))
    (1.0, 2.0)
    """
    return _box("box_get", box).get()


def box_set(box: Box, val: Any) -> None:
    """Replace what the box holds: `box.set(val)`.

    >>> box = new_box()
    >>> box_set(box, 1.0)
    >>> box
    Box(1.0)
    """
    _box("box_set", box).set(val)


def cur_qdd(x: Any) -> Any:
    """What is known of a mutable value at this point of the program: of a box, the types of what it holds.

    Of a value of a `MutableHiType`, it is what its method `cur_qdd` returns. TypeError for any other value.

    >>> cur_qdd(Box(xlamini.numpy.ones(3))).leaf_avals
    (ShapedArray(float32[3]),)
    """
    if is_mutable_value(x):
        cell_of(x).check_threaded()
        return state_of(x)
    leaves, tree = flatten_from_user(_box("cur_qdd", x).get())
    return BoxTypeState(tuple(as_written(aval_of(leaf)) for leaf in leaves), tree)


def _box(what: str, x: Any) -> Box:
    if not isinstance(x, Box):
        raise TypeError(f"{what}: a box is needed, got {type(x).__name__}; make one with hijax.new_box")
    return x
