"""Buckets of sizes: a function of arrays of many lengths is compiled for a few, to which its arguments are padded.

The function is traced with symbolic sizes, once for each bucket, and `rewrite.py` makes a program of it that
takes the padded arrays and how much of them is data. Its numbers are those of the arrays without padding, and so are
those of derivatives that the function takes.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import (
    ShapedArray,
    ShapeError,
    Tracer,
    aval_of,
    flatten_axes,
    register_pytree_node,
    tree_flatten,
    tree_map,
    tree_unflatten,
)
from xlamini.core.errors import InconclusiveDimensionOperation
from xlamini.core.flags.jax_flags import debug_infs, debug_nans
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.core.sizes.parser import parse_shape
from xlamini.core.sizes.scope import SymbolicScope
from xlamini.core.sizes.solving import ArgumentSizes
from xlamini.core.sizes.values import evaluate, variables
from xlamini.core.tracing.state import state
from xlamini.runtime.arrays.keys import PRNGKeyArray
from xlamini.runtime.arrays.to_device import device_put_value
from xlamini.staging import ArgNames, name_of
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.static_args import Selected, StaticArgs, take_out
from xlamini.transforms.buckets.padded_sizes import Bucket, PaddedSizes, is_padded
from xlamini.transforms.buckets.rewrite import run

Sizes = str | int | Sequence[int]
Options = Mapping[str, Any]

_ANY = "_"
"""A size that a plan does not know, where `shapes_specs` has _ or nothing."""
_SIZES = "sizes of buckets"
"""The keyword argument of a padded program that has its sizes, which is no name that users have."""


class Plan(NamedTuple):
    """What calls with arguments of one structure have in common: their shapes, and how sizes follow from them."""

    tree: Any
    ranks: tuple[int, ...]
    shapes: list[Any]
    """With symbols, numbers that must be, and _ANY."""
    sizes: ArgumentSizes


class _PaddedCall(NamedTuple):
    """A call of a jitted function, with the sizes that its results are cut to."""

    fun: Any
    args: Any
    kwargs: dict[str, Any]
    sizes: dict[str, int]


def bucket_of(name: str, size: int, sizes: Sizes) -> Bucket:
    """The bucket of a size. 0 and 1 are by themselves, as programs do other things with them."""
    if size < 2:
        return Bucket(size, size)
    if sizes == "pow2":
        most = 1 << (size - 1).bit_length()
        return Bucket(max(most // 2 + 1, 2), most)
    if isinstance(sizes, int):
        most = -(-size // sizes) * sizes
        return Bucket(max(most - sizes + 1, 2), most)
    given = [int(s) for s in sizes]
    if size > max(given):
        raise ShapeError(f"the size {name} is {size}, but its largest bucket is {max(given)}; add a larger one")
    return Bucket(max([1, *(s for s in given if s < size)]) + 1, min(s for s in given if s >= size))


class PaddedValue:
    """A value of a padded program and what says how much of it is data, which is part of its tree.

    That is the shape of an output, and the buckets of the sizes.
    """

    array: Any
    shape: Any

    def __init__(self, array: Any, shape: Any):
        self.array, self.shape = array, shape


register_pytree_node(PaddedValue, lambda d: ((d.array,), d.shape), lambda shape, arrays: PaddedValue(arrays[0], shape))


class BucketScope(SymbolicScope):
    """The symbols of a function that is traced for some buckets."""

    def __init__(self, buckets: Mapping[str, Bucket]):
        super().__init__([text for n, b in buckets.items() for text in (f"{n} >= {b.least}", f"{n} <= {b.most}")])
        self._buckets = buckets

    def inconclusive(self, x: Any, sign: str, y: Any) -> InconclusiveDimensionOperation:
        buckets = " and ".join(f"{name} from {b.least} to {b.most}" for name, b in self._buckets.items())
        return InconclusiveDimensionOperation(
            f"{x} {sign} {y} is not the same for all sizes of the bucket, {buckets}; give buckets that end where it "
            "changes, or write the function so that it does not ask"
        )


class Bucketed:
    """A jitted function with `buckets`; inside of other transformations it is the function without them."""

    def __init__(
        self, fun: Callable[..., Any], jit: Callable[..., Any], sizes: Mapping[str, Sizes], specs: Any, options: Options
    ):
        self._sizes, self._specs, self._fun = _checked(sizes), specs, fun
        _check_options(options)
        static = {name: options[name] for name in ("static_argnums", "static_argnames")}
        self._static = Selected.of_jit("static", fun, *static.values())
        self._of_sizes = jit(fun, **static)
        self._plan: Plan | None = None
        self._plain = jit(fun, **options)
        functools.update_wrapper(self, fun)

        @functools.wraps(fun)  # so the ledger knows it by the user's code
        def padded(*args: Any, **kwargs: Any) -> Any:
            return self._padded(kwargs.pop(_SIZES), args, kwargs)

        self._jitted = jit(padded, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self._call(args, kwargs)
        outs = call.fun(*call.args, **call.kwargs)
        if call.fun is self._plain:
            return outs
        return tree_map(functools.partial(_cut, call.sizes), outs, is_leaf=_is_padded)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """The padded program for the bucket of these arguments, traced; its last inputs are the sizes."""
        call = self._call(args, kwargs)
        return call.fun.trace(*call.args, **call.kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The padded program for the bucket of these arguments, lowered."""
        return self.trace(*args, **kwargs).lower()

    def _call(self, args: Any, kwargs: Any) -> _PaddedCall:
        """The call of the padded program, or of the function itself for sizes that need no padding."""
        statics, dynamic, keywords = take_out(self._static, args, kwargs)
        leaves, tree = tree_flatten((tuple(dynamic), keywords))
        if _is_traced(leaves) or debug_nans.value or debug_infs.value:  # which would find those of the padding
            return _PaddedCall(self._plain, args, kwargs, {})
        shapes = [np.shape(x) for x in leaves]
        plan = self._plan_of(tree, tuple(map(len, shapes)), statics)
        found = _values(plan, shapes)
        buckets = {name: bucket_of(name, size, self._sizes[name]) for name, size in found.items()}
        if all(b.least == b.most for b in buckets.values()):
            return _PaddedCall(self._plain, args, kwargs, found)
        room = {name: b.most for name, b in buckets.items()}
        padded = [_filled(x, shape, room) for x, shape in zip(leaves, plan.shapes, strict=True)]
        args, kwargs = statics.restored(*tree_unflatten(tree, padded))
        sizes = PaddedValue({name: np.int32(size) for name, size in found.items()}, tuple(buckets.items()))
        return _PaddedCall(self._jitted, args, {**kwargs, _SIZES: sizes}, found)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """The method of an instance, as which a function in a class is read."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {some}" for name, some in self._sizes.items())
        return f"<jit of {name_of(self._fun)} in buckets of {sizes}>"

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The types of the results, for arguments as they are."""
        return self._plain.eval_shape(*args, **kwargs)

    def compilations(self) -> list[Any]:
        """The compilations of the padded programs, and of those for sizes that need no padding."""
        return [entry for f in (self._jitted, self._plain) for entry in f.compilations() if entry.compiled]

    def clear_cache(self) -> None:
        """Forget what was compiled."""
        self._jitted.clear_cache()
        self._plain.clear_cache()

    def _plan_of(self, tree: Any, ranks: tuple[int, ...], statics: StaticArgs) -> Plan:
        """The plan of calls with arguments of this structure; that of the last call is kept."""
        if self._plan is None or (tree, ranks) != (self._plan.tree, self._plan.ranks):
            names = ArgNames(self._fun, tree, statics.positions_of_others(len(tree.children()[0].children())))
            shapes = self._shapes(tree, [(_ANY,) * rank for rank in ranks], names)
            sizes = ArgumentSizes(names, shapes)
            self._check_names({name for e in sizes.entries for name in variables(e.size)})
            self._plan = Plan(tree, ranks, shapes, sizes)
        return self._plan

    def _shapes(self, tree: Any, likes: Sequence[Sequence[Any]], names: Sequence[str]) -> list[Any]:
        """The shapes of the arguments, with symbols where `shapes_specs` has them; keyword arguments have none."""
        args_tree = tree.children()[0]
        specs = flatten_axes("jit", self._specs, args_tree, ("shapes_specs", "args"))
        texts = [*specs, *[None] * (len(likes) - len(specs))]
        scope = SymbolicScope([f"{name} >= 0" for name in self._sizes])
        return [
            like if text is None else _parsed(text, like, scope, names, i)
            for i, (text, like) in enumerate(zip(texts, likes, strict=True))
        ]

    def _check_names(self, names: set[str]) -> None:
        """ValueError unless the symbols of `shapes_specs` are those of `buckets`."""
        for name in names - self._sizes.keys():
            raise ValueError(
                f"jit: shapes_specs has the symbol {name}, which has no buckets; add it to buckets, or write _ for a "
                "size for which the function is compiled anew"
            )
        for name in self._sizes.keys() - names:
            raise ValueError(
                f"jit: buckets has {name}, but shapes_specs gives no argument a size of that name; say where it is by "
                f'texts such as shapes_specs=("_, {name}", None), one for each argument'
            )

    def _padded(self, of_call: PaddedValue, args: Any, kwargs: Any) -> Any:
        """The padded program, as it is traced for a bucket."""
        buckets = dict(of_call.shape)
        statics, dynamic, keywords = take_out(self._static, args, kwargs)
        leaves, tree = tree_flatten((tuple(dynamic), keywords))
        avals = [aval_of(x) for x in leaves]
        scope = BucketScope(buckets)
        within = {n: b.most if b.least == b.most else scope.variable(n) for n, b in buckets.items()}
        shapes = self._plan_of(tree, tuple(a.ndim for a in avals), statics).shapes
        structs = [
            ShapeDtypeStruct(_sized(shape, a.shape, within), a.dtype, weak_type=a.weak_type)
            for a, shape in zip(avals, shapes, strict=True)
        ]
        inner_args, inner_kwargs = statics.restored(*tree_unflatten(tree, structs))
        traced = self._of_sizes.trace(*inner_args, **inner_kwargs)
        closed = traced.jaxpr
        sizes = PaddedSizes(buckets, of_call.array, run)
        outs = sizes.run(closed.jaxpr.with_consts(closed.consts), leaves)
        marked = [PaddedValue(x, a.shape) if is_padded(a) else x for x, a in zip(outs, closed.out_avals, strict=True)]
        return tree_unflatten(traced.out_tree, marked)


def _values(plan: Plan, given: Sequence[Sequence[int]]) -> dict[str, int]:
    """The sizes by the names of symbols; ShapeError for an argument of another shape."""
    for i, (shape, sizes) in enumerate(zip(plan.shapes, given, strict=True)):
        for k, (size, found) in enumerate(zip(shape, sizes, strict=True)):
            if type(size) is int and size != found:
                raise ShapeError(f"{plan.sizes.names[i]}.shape[{k}] must be {size}, but it is {found}")
    return plan.sizes.values(given)


def _parsed(text: Any, like: Sequence[Any], scope: SymbolicScope, names: Sequence[str], i: int) -> Sequence[Any]:
    """The shape of an argument; ValueError, with its name, for a text that does not describe one."""
    try:
        return parse_shape(text, like, scope)
    except ValueError as error:
        raise ValueError(f"jit: shapes_specs of {names[i]}: {error}") from None


def _checked(sizes: Any) -> dict[str, Sizes]:
    if not isinstance(sizes, Mapping) or not sizes:
        raise TypeError(f'jit: buckets must be a dict such as {{"n": "pow2"}}, got {sizes!r}')
    return {name: _checked_sizes(name, some) for name, some in sizes.items()}


def _checked_sizes(name: str, some: Any) -> Sizes:
    numbers = [some] if isinstance(some, int) else list(map(int, some)) if _is_list(some) else []
    if isinstance(some, str) and some == "pow2":
        return some
    if not numbers or min(numbers) < 1 or isinstance(some, bool):
        raise ValueError(
            f'jit: the buckets of {name} must be "pow2", a number for its multiples, or a list of sizes, got {some!r}'
        )
    return some if isinstance(some, int) else numbers


def _is_list(some: Any) -> bool:
    """Whether it is a list, tuple, range or array of integers."""
    return isinstance(some, Sequence | np.ndarray) and all(isinstance(n, int | np.integer) for n in some)


def _check_options(options: Options) -> None:
    for name in ("in_shardings", "out_shardings"):
        if options[name] not in (None, (), []):
            raise ValueError(f"jit: buckets and {name} cannot be given together, as arguments are padded on the host")


def _is_traced(leaves: Sequence[Any]) -> bool:
    """Whether another function is being traced, which may close over tracers that the arguments do not have."""
    return state.builder is not None or any(isinstance(x, Tracer) for x in leaves)


def _sized(shape: Sequence[Any], like: Sequence[int], values: Mapping[str, Any]) -> list[Any]:
    """The shape for these values of its symbols, with the sizes of `like` where it has _ANY."""
    return [n if size is _ANY else evaluate(size, values) for size, n in zip(shape, like, strict=True)]


def _filled(x: Any, shape: Sequence[Any], room: Mapping[str, int]) -> Any:
    """The argument, padded with zeros on the host, where nothing is compiled for each size."""
    if not is_symbolic_shape(shape):
        return x
    if isinstance(x, PRNGKeyArray):
        return PRNGKeyArray(x.dtype, _filled(x.words, [*shape, *[_ANY] * (x.words.ndim - x.ndim)], room))
    array = np.asarray(x)
    padded = np.zeros(_sized(shape, array.shape, room), array.dtype)
    padded[tuple(map(slice, array.shape))] = array
    return _array(padded, x)


def _is_padded(x: Any) -> bool:
    return isinstance(x, PaddedValue)


def _cut(values: Mapping[str, int], x: Any) -> Any:
    """The data of an output, cut out on the host."""
    if not _is_padded(x):
        return x
    part, array = tuple(slice(evaluate(size, values)) for size in x.shape), x.array
    if isinstance(array, PRNGKeyArray):
        return PRNGKeyArray(array.dtype, _array(np.asarray(array.words)[part], array.words))
    return _array(np.asarray(array)[part], array)


def _array(x: np.ndarray, like: Any) -> Any:
    """The values as an Array, of a weak type if `like` has one."""
    x = np.ascontiguousarray(x)
    weak = getattr(like, "weak_type", False)
    return device_put_value(x, aval=ShapedArray(x.shape, x.dtype, weak_type=True) if weak else None)
