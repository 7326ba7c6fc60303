"""Buckets of sizes: a function of arrays of many lengths is compiled for a few, to which its arguments are padded.

The function is traced with symbolic sizes, once for each bucket, and `rewrite.py` makes a program of it that
takes the padded arrays and how much of them is data. Its numbers are those of the arrays without padding, and so are
those of derivatives that the function takes.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import (
    ShapeError,
    Tracer,
    aval_of,
    flatten_axes,
    register_pytree_node,
    tree_flatten,
    tree_map,
    tree_unflatten,
)
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.core.sizes.parser import parse_shape
from xlamini.core.sizes.scope import SymbolicScope
from xlamini.core.sizes.solving import SolutionStep, entries_of, solution, values_of
from xlamini.core.sizes.values import evaluate, variables
from xlamini.runtime.arrays.to_device import device_put_value
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
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
    steps: list[SolutionStep]


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


class Bucketed:
    """A jitted function with `buckets`; inside of other transformations it is the function without them."""

    def __init__(
        self, fun: Callable[..., Any], jit: Callable[..., Any], sizes: Mapping[str, Sizes], specs: Any, options: Options
    ):
        self._sizes, self._specs, self._jit = _checked(sizes), specs, jit
        _check_options(options)
        self._fun = fun
        self._plan: Plan | None = None
        self._plain = jit(fun, **options)
        functools.update_wrapper(self, fun)

        @functools.wraps(fun)  # so the ledger knows it by the user's code
        def padded(*args: Any, **kwargs: Any) -> Any:
            return self._padded(kwargs.pop(_SIZES), args, kwargs)

        self._jitted = jit(padded, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        if any(isinstance(x, Tracer) for x in leaves):
            return self._plain(*args, **kwargs)
        shapes = [np.shape(x) for x in leaves]
        plan = self._plan_of(tree, tuple(map(len, shapes)))
        found = self._solved(plan, shapes)
        buckets = {name: bucket_of(name, size, self._sizes[name]) for name, size in found.items()}
        if all(b.least == b.most for b in buckets.values()):
            return self._plain(*args, **kwargs)
        room = {name: b.most for name, b in buckets.items()}
        padded = [_filled(x, shape, room) for x, shape in zip(leaves, plan.shapes, strict=True)]
        args, kwargs = tree_unflatten(tree, padded)
        sizes = PaddedValue({name: np.int32(size) for name, size in found.items()}, tuple(buckets.items()))
        outs = self._jitted(*args, **kwargs, **{_SIZES: sizes})
        return tree_map(lambda x: _cut(x, found), outs, is_leaf=lambda x: isinstance(x, PaddedValue))

    def compilations(self) -> list[Any]:
        """The compilations of the padded programs, and of those for sizes that need no padding."""
        return [entry for f in (self._jitted, self._plain) for entry in f.compilations() if entry.compiled]

    def clear_cache(self) -> None:
        """Forget what was compiled."""
        self._jitted.clear_cache()
        self._plain.clear_cache()

    def _plan_of(self, tree: Any, ranks: tuple[int, ...]) -> Plan:
        """The plan of calls with arguments of this structure; that of the last call is kept."""
        if self._plan is None or (tree, ranks) != (self._plan.tree, self._plan.ranks):
            shapes = self._shapes(tree, [(_ANY,) * rank for rank in ranks], SymbolicScope())
            entries = entries_of(shapes)
            self._check_names({name for e in entries for name in variables(e.size)})
            self._plan = Plan(tree, ranks, shapes, solution(entries))
        return self._plan

    def _shapes(self, tree: Any, likes: Sequence[Sequence[Any]], scope: SymbolicScope) -> list[Any]:
        """The shapes of the arguments, with symbols where `shapes_specs` has them; keyword arguments have none."""
        args_tree = tree.children()[0]
        specs = flatten_axes("jit", self._specs, args_tree, ("shapes_specs", "args"))
        texts = [*specs, *[None] * (len(likes) - len(specs))]
        return [
            like if s is None else parse_shape(s, like, scope) for s, like in zip(texts, likes, strict=True)
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

    def _solved(self, plan: Plan, given: Sequence[Sequence[int]]) -> dict[str, int]:
        """The sizes by the names of symbols; ShapeError for an argument of another shape."""
        values = values_of(plan.steps, lambda e: given[e.argument][e.dimension])
        for i, (shape, sizes) in enumerate(zip(plan.shapes, given, strict=True)):
            for k, (size, found) in enumerate(zip(shape, sizes, strict=True)):
                if size is not _ANY and (wanted := evaluate(size, values)) != found:
                    raise ShapeError(
                        f"jit: dimension {k} of argument {i} must be {size}"
                        f"{f', which is {wanted} by another argument' if wanted is not size else ''}, but it is {found}"
                    )
        return values

    def _padded(self, of_call: PaddedValue, args: Any, kwargs: Any) -> Any:
        """The padded program, as it is traced for a bucket."""
        buckets = dict(of_call.shape)
        leaves, tree = tree_flatten((args, kwargs))
        bounds = [text for name, b in buckets.items() for text in (f"{name} >= {b.least}", f"{name} <= {b.most}")]
        scope = SymbolicScope(bounds)
        known = {n: b.most if b.least == b.most else parse_shape(n, None, scope)[0] for n, b in buckets.items()}
        avals = [aval_of(x) for x in leaves]
        shapes = self._shapes(tree, [a.shape for a in avals], scope)
        structs = [
            ShapeDtypeStruct([evaluate(size, known) for size in shape], a.dtype, weak_type=a.weak_type)
            for a, shape in zip(avals, shapes, strict=True)
        ]
        inner_args, inner_kwargs = tree_unflatten(tree, structs)
        traced = self._jit(self._fun).trace(*inner_args, **inner_kwargs)
        closed = traced.jaxpr
        sizes = PaddedSizes(buckets, of_call.array, run)
        outs = sizes.run(closed.jaxpr.with_consts(closed.consts), leaves)
        marked = [PaddedValue(x, a.shape) if is_padded(a) else x for x, a in zip(outs, closed.out_avals, strict=True)]
        return tree_unflatten(traced.out_tree, marked)


def _checked(sizes: Any) -> dict[str, Sizes]:
    if not isinstance(sizes, Mapping) or not sizes:
        raise TypeError(f'jit: buckets must be a dict such as {{"n": "pow2"}}, got {sizes!r}')
    for name, some in sizes.items():
        numbers = [some] if isinstance(some, int) else list(some) if isinstance(some, list | tuple) else []
        if some != "pow2" and not (numbers and all(type(n) is int and n > 0 for n in numbers)):
            raise ValueError(
                f'jit: the buckets of {name} must be "pow2", a number for its multiples, or a list of sizes, '
                f"got {some!r}"
            )
    return dict(sizes)


def _check_options(options: Options) -> None:
    for name in ("static_argnums", "static_argnames", "in_shardings", "out_shardings"):
        if options[name] not in (None, ()):
            raise ValueError(f"jit: buckets and {name} cannot be given together; bind static arguments by partial")


def _filled(x: Any, shape: Sequence[Any], room: Mapping[str, int]) -> Any:
    """The argument, padded with zeros on the host, where nothing is compiled for each size."""
    if not is_symbolic_shape(shape):
        return x
    array = np.asarray(x)
    sizes = [n if s is _ANY else evaluate(s, room) for n, s in zip(array.shape, shape, strict=True)]
    padded = np.zeros(sizes, array.dtype)
    padded[tuple(map(slice, array.shape))] = array
    return padded


def _cut(x: Any, values: Mapping[str, int]) -> Any:
    """The data of an output, cut out on the host."""
    if not isinstance(x, PaddedValue):
        return x
    part = tuple(slice(evaluate(size, values)) for size in x.shape)
    return device_put_value(np.ascontiguousarray(np.asarray(x.array)[part]))
