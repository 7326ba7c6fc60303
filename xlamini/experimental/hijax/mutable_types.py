"""Types of one's own whose values change, and the operand types that primitives on such values see."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NoReturn

from xlamini.core.program.hi_types import is_mutable_type
from xlamini.core.program.mutable_values import cell_of, state_of, type_of


class MutableHiType:
    """A type of values whose arrays a program replaces; `register_hitype` tells the class of the values.

    A value has a method `cur_qdd`, which describes what it holds now: its quasi-dynamic data, an object that can be
    hashed and compared. The type says by the methods below which arrays these are. Primitives that make, read and
    write values are `HiPrimitive`s; while a program is traced, their `to_lojax` runs on the values themselves. Like a
    `Box`, a value may be closed over or passed as an argument, but not returned.

    >>> from xlamini.experimental.hijax import HiPrimitive, register_hitype
    >>> class Counter:
    ...     def __init__(self, array):
    ...         self.array = array
    ...     def cur_qdd(self):
    ...         return xlamini.typeof(self.array)
    >>> class CounterTy(MutableHiType):
    ...     def lo_ty_qdd(self, state):
    ...         return [state]
    ...     def new_from_loval(self, state, array):
    ...         return Counter(array)
    ...     def read_loval(self, state, counter):
    ...         return [counter.array]
    ...     def update_from_loval(self, state, counter, array):
    ...         counter.array = array
    >>> counter_ty = CounterTy()
    >>> register_hitype(Counter, lambda counter: counter_ty)
    >>> class Add(HiPrimitive):
    ...     multiple_results = True
    ...     def abstract_eval(self, counter, aval):
    ...         return [], set()
    ...     def to_lojax(self, counter, x):
    ...         counter.array = counter.array + x
    ...         return []
    >>> add_p = Add("add_to_counter")
    >>> counter = Counter(jnp.zeros(2))
    >>> _ = xlamini.jit(lambda counter, x: add_p.bind(counter, x))(counter, jnp.array([1.0, 2.0]))
    >>> counter.array
    Array([1., 2.], dtype=float32)
    """

    is_mutable_type = is_high = has_qdd = True

    def lo_ty_qdd(self, state: Any, /) -> list[Any]:
        """The types of the arrays of a value with this description."""
        self._missing("lo_ty_qdd(self, state)")

    def new_from_loval(self, state: Any, /, *vals: Any) -> Any:
        """A new value with this description, made of these arrays."""
        self._missing("new_from_loval(self, state, *vals)")

    def read_loval(self, state: Any, val: Any, /) -> list[Any]:
        """The arrays of a value with this description."""
        self._missing("read_loval(self, state, val)")

    def update_from_loval(self, state: Any, val: Any, /, *lo_vals: Any) -> None:
        """Let the value hold these arrays, and be of this description."""
        self._missing("update_from_loval(self, state, val, *lo_vals)")

    def to_tangent_aval(self) -> Any:
        """The type of tangents. It is not needed: in a derivative a value holds primal values."""
        return self

    def str_short(self, short_dtypes: bool = False, **_: Any) -> str:
        return repr(self)

    def _missing(self, signature: str) -> NoReturn:
        raise NotImplementedError(f"write `def {signature}` in the type {type(self).__qualname__}")


@dataclass(frozen=True)
class AvalQDD:
    """What `abstract_eval` returns for a new value: its type, and what it holds.

    >>> from xlamini.experimental.hijax import BoxTy, HiPrimitive
    >>> class New(HiPrimitive):
    ...     def abstract_eval(self, aval):
    ...         return AvalQDD(BoxTy(), aval), set()
    >>> New("new_box_like").abstract_eval(xlamini.typeof(1.0))[0]
    AvalQDD(aval=BoxTy(), qdd=ShapedArray(float32[], weak_type=True))
    """

    aval: Any
    qdd: Any


class MutableQDD:
    """What is known of a value that a primitive is given; `update` says what it holds afterwards."""

    cur_val: Any

    def __init__(self, qdd: Any):
        self.init_val = self.cur_val = qdd

    def update(self, qdd: Any) -> None:
        """Replace the description."""
        self.cur_val = qdd


@dataclass(frozen=True)
class AvalMutableQDD:
    """What `abstract_eval` is given for a mutable operand: its type, and what it holds.

    >>> from xlamini.experimental.hijax import BoxTy, HiPrimitive
    >>> class Write(HiPrimitive):
    ...     multiple_results = True
    ...     def abstract_eval(self, box, aval):
    ...         box.mutable_qdd.update(aval)
    ...         return [], set()
    >>> box = AvalMutableQDD(BoxTy(), MutableQDD(xlamini.typeof(1.0)))
    >>> _ = Write("write_box_like").abstract_eval(box, xlamini.typeof(jnp.ones(3)))
    >>> box.mutable_qdd.init_val, box.mutable_qdd.cur_val
    (ShapedArray(float32[], weak_type=True), ShapedArray(float32[3]))
    """

    aval: Any
    mutable_qdd: MutableQDD


def is_mutable(found: Any) -> bool:
    """Whether what `abstract_eval` returned is the type of a mutable value."""
    return isinstance(found, AvalQDD) or is_mutable_type(found)


def current_type(x: Any) -> Any:
    """The type of a mutable operand, with what it holds; RefEscaped where its contents must be threaded first."""
    ty = type_of(x)
    if not ty.has_qdd:
        return ty
    cell_of(x).check_threaded()
    return AvalMutableQDD(ty, MutableQDD(state_of(x)))


class AllowedEffects:
    """The effects of primitives that loops and branches may contain: all, as no equation has those of mutable types."""

    def add_type(self, effect: type) -> None:
        """Nothing is noted."""


control_flow_allowed_effects: Final = AllowedEffects()
"""Where libraries that are written for JAX note the effects that loops and branches may contain; here all are allowed.

>>> class Logged:
...     pass
>>> control_flow_allowed_effects.add_type(Logged)
"""
