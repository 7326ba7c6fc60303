"""Types of users, and the classes of their values."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import getattr_static
from typing import Any, NoReturn

from xlamini.core.program.avals import ShapedArray, types_of_values
from xlamini.core.program.hi_types import TypesOfClass, as_written
from xlamini.core.tracing.tracer import Tracer


class MappingSpec:
    """How values of a user's type are mapped over by `vmap`: the base of what users pass as `in_axes`.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Bits:
    ...     bytes: xlamini.Array
    >>> @dataclass(frozen=True)
    ... class BitsTy(HiType):
    ...     shape: tuple
    ...     def lo_ty(self):
    ...         return [ShapedArray(self.shape, "uint8")]
    ...     def lower_val(self, x):
    ...         return [x.bytes]
    ...     def raise_val(self, array):
    ...         return Bits(array)
    ...     def dec_rank(self, size, spec):
    ...         return BitsTy(self.shape[1:])
    ...     def inc_rank(self, size, spec):
    ...         return BitsTy((size, *self.shape))
    >>> register_hitype(Bits, lambda x: BitsTy(x.bytes.shape))
    >>> def f(x):
    ...     print(xlamini.typeof(x))
    ...     return x
    >>> rows = MappingSpec()
    >>> x = Bits(jnp.zeros((4, 2), "uint8"))
    >>> xlamini.vmap(f, in_axes=rows, out_axes=rows, axis_size=4)(x).bytes.shape
    BitsTy(shape=(2,))
    (4, 2)
    """


class HiPspec:
    """How values of a user's type are sharded: the base of what users pass to `shard_map` as `in_specs`, `out_specs`.

    Like a type, it can be hashed and compared.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Bits:
    ...     bytes: xlamini.Array
    >>> @dataclass(frozen=True)
    ... class Rows(HiPspec):
    ...     axis: str
    ...     def to_lo(self):
    ...         return [xlamini.P(self.axis)]
    >>> @dataclass(frozen=True)
    ... class BitsTy(HiType):
    ...     array: ShapedArray
    ...     def lo_ty(self):
    ...         return [self.array]
    ...     def lower_val(self, x):
    ...         return [x.bytes]
    ...     def raise_val(self, array):
    ...         return Bits(array)
    ...     def shard(self, mesh, manual_axes, check_vma, spec):
    ...         return BitsTy(self.array.shard(mesh, manual_axes, check_vma, xlamini.P(spec.axis)))
    ...     def unshard(self, mesh, check_vma, spec):
    ...         return BitsTy(self.array.unshard(mesh, check_vma, xlamini.P(spec.axis)))
    >>> register_hitype(Bits, lambda x: BitsTy(xlamini.typeof(x.bytes)))
    >>> mesh = xlamini.make_mesh((1,), ("i",), devices=xlamini.devices()[:1])
    >>> f = xlamini.shard_map(lambda x: x, mesh=mesh, in_specs=Rows("i"), out_specs=Rows("i"))
    >>> f(Bits(jnp.zeros(4, "uint8"))).bytes.shape
    (4,)
    """

    is_hi_pspec = True

    def to_lo(self) -> Sequence[Any]:
        """A PartitionSpec for each array, in the order of the type's `lo_ty`."""
        _missing(self, "to_lo(self)", "shard_map")

    def to_tangent_spec(self) -> Any:
        """The spec of tangents: a PartitionSpec where they are arrays."""
        _missing(self, "to_tangent_spec(self)", "derivatives through shard_map")

    def to_ct_spec(self) -> Any:
        """The spec of cotangents."""
        _missing(self, "to_ct_spec(self)", "derivatives through shard_map")


class HiType:
    """A type of values that are made of arrays; in a program each of them is one variable.

    A subclass can be hashed and compared, as a frozen dataclass can, and says at least what the arrays are: `lo_ty`,
    `lower_val` and `raise_val`. `register_hitype` tells the class of the values.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Scaled:
    ...     whole: xlamini.Array
    ...     step: xlamini.Array
    >>> @dataclass(frozen=True)
    ... class ScaledTy(HiType):
    ...     shape: tuple
    ...     def lo_ty(self):
    ...         return [ShapedArray(self.shape, "int8"), ShapedArray((), "float32")]
    ...     def lower_val(self, x):
    ...         return [x.whole, x.step]
    ...     def raise_val(self, whole, step):
    ...         return Scaled(whole, step)
    >>> register_hitype(Scaled, lambda x: ScaledTy(x.whole.shape))
    >>> x = Scaled(jnp.array([1, 2], "int8"), jnp.float32(0.5))
    >>> xlamini.typeof(x), xlamini.jit(lambda x: x)(x).whole
    (ScaledTy(shape=(2,)), Array([1, 2], dtype=int8))
    >>> len(xlamini.make_jaxpr(lambda x: x)(x).jaxpr.invars)
    1
    """

    is_hi_type = is_high = True
    has_qdd = False

    def lo_ty(self) -> list[Any]:
        """The types of the arrays."""
        _missing(self, "lo_ty(self)", "lowering")

    def lower_val(self, hi_val: Any) -> list[Any]:
        """The arrays of a value."""
        _missing(self, "lower_val(self, hi_val)", "lowering")

    def raise_val(self, *lo_vals: Any) -> Any:
        """The value of these arrays."""
        _missing(self, "raise_val(self, *lo_vals)", "lowering")

    def to_tangent_aval(self) -> Any:
        """The type of tangents and cotangents: any type."""
        _missing(self, "to_tangent_aval(self)", "derivatives")

    def to_ct_aval(self) -> Any:
        """The type of cotangents, which is that of tangents."""
        return self.to_tangent_aval()

    def vspace_zero(self) -> Any:
        """The zero value, where the type is one of tangents."""
        _missing(self, "vspace_zero(self)", "derivatives")

    def vspace_add(self, x: Any, y: Any) -> Any:
        """The sum of two values, where the type is one of tangents."""
        _missing(self, "vspace_add(self, x, y)", "derivatives")

    def dec_rank(self, size: int | None, spec: Any) -> Any:
        """The type of one example of a batch of `size`; `spec` is a `MappingSpec` of the user's."""
        _missing(self, "dec_rank(self, size, spec)", "vmap")

    def inc_rank(self, size: int | None, spec: Any) -> Any:
        """The type of a batch."""
        _missing(self, "inc_rank(self, size, spec)", "vmap")

    def leading_axis_spec(self) -> Any:
        """The mapping spec for the leading axis of all arrays, along which loops slice and stack."""
        _missing(self, "leading_axis_spec(self)", "batches along the leading axis, as of loops")

    def shard(self, mesh: Any, manual_axes: frozenset[Any], check_vma: bool, spec: Any) -> Any:
        """The type of one device's shard; `spec` is a `HiPspec` of the user's."""
        _missing(self, "shard(self, mesh, manual_axes, check_vma, spec)", "sharded values in shard_map")

    def unshard(self, mesh: Any, check_vma: bool, spec: Any) -> Any:
        """The type of the value that the devices' shards form."""
        _missing(self, "unshard(self, mesh, check_vma, spec)", "sharded values in shard_map")

    def nospec(self, mesh: Any, check_vma: bool, all_names: tuple[Any, ...]) -> Any:
        """The `HiPspec` by which values of all devices along these axes form one, as residuals do."""
        _missing(self, "nospec(self, mesh, check_vma, all_names)", "values kept for a derivative through shard_map")

    def strip_weak_type(self) -> HiType:
        return self

    def normalize(self) -> HiType:
        return self

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return repr(self)


def _missing(self: Any, signature: str, purpose: str) -> NoReturn:
    raise NotImplementedError(f"for {purpose}, write `def {signature}` in the class {type(self).__qualname__}")


AbstractValue = ShapedArray | HiType
"""A type: of an array, or a user's.

>>> isinstance(xlamini.typeof(1.0), AbstractValue), issubclass(HiType, AbstractValue)
(True, True)
"""


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Let the transformations take values of a class: `typeof_fn(value)` is their type, a `HiType` or a
    `MutableHiType`.

    Raises TypeError for a class that is a container, a pytree node.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class PairTy(HiType):
    ...     shape: tuple
    ...     def lo_ty(self):
    ...         return [xlamini.ShapeDtypeStruct(self.shape, "float32")] * 2
    ...     def lower_val(self, pair):
    ...         return [pair.a, pair.b]
    ...     def raise_val(self, a, b):
    ...         return Pair(a, b)
    >>> @dataclass
    ... class Pair:
    ...     a: xlamini.Array
    ...     b: xlamini.Array
    >>> register_hitype(Pair, lambda pair: PairTy(pair.a.shape))
    >>> pair = Pair(xlamini.numpy.zeros(2), xlamini.numpy.ones(2))
    >>> xlamini.typeof(pair), xlamini.jit(lambda p: p)(pair).b
    (PairTy(shape=(2,)), Array([1., 1.], dtype=float32))
    """
    if not isinstance(val_cls, type):
        raise TypeError(f"register_hitype: val_cls must be a class, got {val_cls!r}")
    if not callable(typeof_fn):
        raise TypeError(f"register_hitype: typeof_fn must be a function of a value, got {typeof_fn!r}")

    types_of_values[val_cls] = TypesOfClass(typeof_fn)


class aval_property:
    """A property of the traced values of a type: `name = aval_property(fget)` in the class of the type.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Bag:
    ...     items: list
    >>> @dataclass(frozen=True)
    ... class BagTy(HiType):
    ...     count: int
    ...     length = aval_property(lambda bag: xlamini.typeof(bag).count)
    ...     def lo_ty(self):
    ...         return [ShapedArray((), "float32")] * self.count
    ...     def lower_val(self, bag):
    ...         return bag.items
    ...     def raise_val(self, *items):
    ...         return Bag(items)
    >>> register_hitype(Bag, lambda bag: BagTy(len(bag.items)))
    >>> print(xlamini.make_jaxpr(lambda bag: bag.length)(Bag([1.0, 2.0])))
    { lambda ; a:BagTy(count=2). let  in (2:i32[],) }
    """

    def __init__(self, fget: Callable[[Any], Any]):
        self.fget = fget
        _give_tracers_attributes()


class aval_method:
    """A method of the traced values of a type: `@aval_method` in the class of the type.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Bag:
    ...     items: list
    >>> @dataclass(frozen=True)
    ... class BagTy(HiType):
    ...     count: int
    ...     @aval_method
    ...     def times(bag, factor):
    ...         return xlamini.typeof(bag).count * factor
    ...     def lo_ty(self):
    ...         return [ShapedArray((), "float32")] * self.count
    ...     def lower_val(self, bag):
    ...         return bag.items
    ...     def raise_val(self, *items):
    ...         return Bag(items)
    >>> register_hitype(Bag, lambda bag: BagTy(len(bag.items)))
    >>> print(xlamini.make_jaxpr(lambda bag: bag.times(3))(Bag([1.0, 2.0])))
    { lambda ; a:BagTy(count=2). let  in (6:i32[],) }
    """

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun
        _give_tracers_attributes()


def _give_tracers_attributes() -> None:
    """Let traced values find the attributes of their types; only once there are some, as each miss costs time."""
    type.__setattr__(Tracer, "__getattr__", _attribute_of_type)


def _attribute_of_type(tracer: Tracer, name: str) -> Any:
    found = getattr_static(type(as_written(tracer.aval)), name, None)
    if isinstance(found, aval_property):
        return found.fget(tracer)
    if isinstance(found, aval_method):
        return partial(found.fun, tracer)
    return object.__getattribute__(tracer, name)  # raises what it raised before, which says why
