"""Where the pullback of `vjp` puts its gradients: `pullback.with_refs(entry, ...)`, one entry for each argument.

    a ref           the gradient is added to it; the result has GradRef() there
    GradValue()     the gradient is a result, as without with_refs
    DontWant()      it is not computed; the result has DidntWant() there
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import flatten_axes, tree_map
from xlamini.core.program.ref_cells import is_holder
from xlamini.core.pytree import register_static
from xlamini.staging.trace.arguments import brief
from xlamini.staging.trace.ref_arguments import RefArgument, is_ref_argument


class Marker:
    """An object without content, equal to others of its class."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(Marker):
    """An entry of `with_refs`: the pullback returns this gradient.

    >>> _, pullback = xlamini.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> total = xlamini.new_ref(0.0)
    >>> pullback.with_refs(total, GradValue())(1.0), total[...]
    ((GradRef(), Array(2., dtype=float32, weak_type=True)), Array(3., dtype=float32))
    """

    __slots__ = ()


class DontWant(Marker):
    """An entry of `with_refs`: this gradient is not computed.

    >>> _, pullback = xlamini.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pullback.with_refs(GradValue(), DontWant())(1.0)
    (Array(3., dtype=float32, weak_type=True), DidntWant())
    """

    __slots__ = ()


@register_static
class GradRef(Marker):
    """The result of a pullback for a gradient that was added to a ref.

    >>> _, pullback = xlamini.vjp(lambda x: x * x, 3.0)
    >>> total = xlamini.new_ref(1.0)
    >>> pullback.with_refs(total)(1.0) == (GradRef(),), total[...]
    (True, Array(7., dtype=float32))
    """

    __slots__ = ()


@register_static
class DidntWant(Marker):
    """The result of a pullback for a gradient with the entry `DontWant()`.

    >>> _, pullback = xlamini.vjp(lambda x: x * x, 3.0)
    >>> pullback.with_refs(xlamini.ad.DontWant())(1.0) == (DidntWant(),)
    True
    """

    __slots__ = ()


def checked_entries(entries: Sequence[Any], in_tree: Any, fun_name: str) -> list[Any]:
    """An entry for each leaf of the arguments; TypeError for one of another kind, ValueError for another structure."""
    leaves = flatten_axes("with_refs", tuple(entries), in_tree, ("with_refs", f"the arguments of {fun_name}"))
    for entry in leaves:
        if not (is_holder(entry) or isinstance(entry, GradValue | DontWant)):
            raise TypeError(
                f"with_refs: {brief(entry)} of type {type(entry).__name__} is given for an argument of {fun_name}; "
                "pass a ref, xlamini.ad.GradValue() or xlamini.ad.DontWant()"
            )
    return leaves


def delivered(entry: Any, gradient: Any, aval: Any) -> Any:
    """The result for one gradient: itself, or a marker if it was added to a ref or is not wanted."""
    if isinstance(entry, GradValue):
        return gradient
    if isinstance(entry, DontWant):
        return DidntWant()
    if entry.shape != aval.shape:
        raise ValueError(
            f"with_refs: the gradient of an argument of type {aval.str_long()} is added to a ref of shape "
            f"{entry.shape}; pass a ref of shape {aval.shape}"
        )
    entry.addupdate(gradient)
    return GradRef()


def check_refs_have_refs(entries: Sequence[Any], nodes: Sequence[Any], fun_name: str) -> None:
    """ValueError if the gradient of a ref would be returned."""
    for entry, node in zip(entries, nodes, strict=True):
        if is_ref_argument(node) and isinstance(entry, GradValue):
            raise ValueError(
                f"vjp: an argument of {fun_name} is a ref, so its gradient must be accumulated into a ref; give one "
                "with the pullback's with_refs(grad_ref)"
            )


def without_nodes(tree: Any) -> Any:
    """The results as the user sees them: what a `RefArgument` node holds in place of the node."""
    return tree_map(lambda x: x.value if type(x) is RefArgument else x, tree, is_leaf=is_ref_argument)
