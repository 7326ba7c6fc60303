"""vectorize: a function of single elements, or of small arrays, becomes one of arrays that broadcast.

With a signature such as "(n,m),(m)->(n)" each argument ends in the axes that the function itself takes (its core); the
axes before them are broadcast over all arguments, and mapped.
"""
from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import ShapeError, aval_of, memoised, tree_map
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.numpy.arguments import as_operand
from xlamini.primitives import squeeze
from xlamini.primitives.base.promotion import check_ranks
from xlamini.transforms.vmap import vmap

_CORE = r"\((\w+(,\w+)*)?\)"
_SIGNATURE = re.compile(rf"{_CORE}(,{_CORE})*->{_CORE}(,{_CORE})*\Z")
Core = tuple[str, ...]


class CoreSignature(NamedTuple):
    """The names of the axes that each argument and each output has of its own."""

    inputs: tuple[Core, ...]
    outputs: tuple[Core, ...]


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """`pyfunc`, which takes scalars, as a function of arrays that broadcast; or, with `signature`, of their last axes.

    Arguments whose positions or names are in `excluded` reach `pyfunc` unchanged, and so does None; a signature names
    the other keyword arguments after the positional ones. The calls are one vmap, no loop. ValueError for a signature
    that cannot be read, TypeError for a wrong number of arguments or outputs, ShapeError for sizes that do not fit.

    >>> vectorize(lambda m, v: m @ v, signature="(n,m),(m)->(n)")(jnp.ones((5, 2, 3)), jnp.ones(3)).shape
    (5, 2)
    """
    name = getattr(pyfunc, "__name__", type(pyfunc).__name__)
    if not callable(pyfunc):
        raise TypeError(f"vectorize: pyfunc must be a function, got {pyfunc!r} of type {name}")
    left_out = _left_out(excluded)
    known = None if signature is None else parse(signature)

    @api_boundary
    @functools.wraps(pyfunc, assigned=("__name__", "__qualname__", "__module__", "__doc__"))
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(enumerate(args)), **kwargs}
        fixed = {key: x for key, x in given.items() if key in left_out or x is None}
        mapped = [key for key in given if key not in fixed]
        return _mapped(name, _partial(pyfunc, fixed, mapped), [given[key] for key in mapped], known, signature)

    return vectorized


def _left_out(excluded: Collection[int | str]) -> set[Any]:
    if any(not isinstance(e, int | str) for e in excluded):
        raise TypeError(f"vectorize: excluded holds positions and names of arguments, got {excluded}")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"vectorize: excluded={excluded} holds a negative position; count from 0")
    return set(excluded)


def _partial(fun: Callable[..., Any], fixed: dict[Any, Any], mapped: Sequence[Any]) -> Callable[..., Any]:
    """`fun` of the arguments that are not fixed; a key is a position or a name."""

    def call(*operands: Any) -> Any:
        given = {**fixed, **dict(zip(mapped, operands, strict=True))}
        positional = [given.pop(i) for i in range(sum(isinstance(key, int) for key in given))]
        return fun(*positional, **given)

    return call


@memoised("helper: vectorize signatures", 256)
def parse(signature: str) -> CoreSignature:
    """The axes that a signature names."""
    text = "".join(signature.split())
    if not _SIGNATURE.match(text):
        raise ValueError(f"vectorize: '{signature}' is no signature; write one as in '(n,m),(m)->(n)'")
    sides = ([tuple(filter(None, core.split(","))) for core in re.findall(r"\(([^)]*)\)", s)] for s in text.split("->"))
    return CoreSignature(*map(tuple, sides))


def _mapped(name: str, fun: Any, operands: Sequence[Any], known: CoreSignature | None, signature: Any) -> Any:
    arrays = [as_operand(name, x) for x in operands]
    cores = ((),) * len(arrays) if known is None else known.inputs
    if len(cores) != len(arrays):
        raise TypeError(f"{name}: signature '{signature}' takes {len(cores)} arguments, got {len(arrays)}")
    check_ranks(name, operands, [len(core) for core in cores])
    sizes: dict[str, int] = {}
    for array, core in zip(arrays, cores, strict=True):
        _check_input(name, aval_of(array).shape, core, sizes, signature)
    called = fun if known is None else _checked(name, fun, known.outputs, sizes, signature)
    return _over_outer_axes(name, called, arrays, [len(core) for core in cores])


def _check_input(name: str, shape: tuple[int, ...], core: Core, sizes: dict[str, int], signature: Any) -> None:
    if len(shape) < len(core):
        raise ShapeError(f"{name}: an argument of shape {shape} lacks the axes {core} of the signature '{signature}'")
    _agree(name, shape[len(shape) - len(core) :], core, sizes, signature)


def _agree(name: str, shape: Sequence[int], core: Core, sizes: dict[str, int], signature: Any) -> None:
    for axis, n in zip(core, shape, strict=True):
        if sizes.setdefault(axis, n) != n:
            raise ShapeError(
                f"{name}: axis '{axis}' of the signature '{signature}' has sizes {sizes[axis]} and {n}; they must agree"
            )


def _checked(name: str, fun: Any, outputs: Sequence[Core], sizes: dict[str, int], signature: Any) -> Any:
    """`fun` with its outputs compared with the signature."""

    def call(*operands: Any) -> Any:
        result = fun(*operands)
        given = result if isinstance(result, tuple) else (result,)
        if len(given) != len(outputs):
            raise TypeError(f"{name}: signature '{signature}' has {len(outputs)} outputs, but {len(given)} came")
        own = dict(sizes)
        for x, core in zip(given, outputs, strict=True):
            _check_output(name, np.shape(x) if not hasattr(x, "shape") else x.shape, core, own, signature)
        return result

    return call


def _check_output(name: str, shape: tuple[int, ...], core: Core, sizes: dict[str, int], signature: Any) -> None:
    if len(shape) != len(core):
        raise ShapeError(f"{name}: an output has shape {shape}, but the axes {core} in the signature '{signature}'")
    _agree(name, shape, core, sizes, signature)


def _over_outer_axes(name: str, fun: Any, arrays: Sequence[Any], ranks: Sequence[int]) -> Any:
    """`fun` mapped over all axes before the last `ranks`, broadcast."""
    outer = [aval_of(x).shape[: aval_of(x).ndim - rank] for x, rank in zip(arrays, ranks, strict=True)]
    try:
        shape = broadcast_shapes(*outer)
    except ValueError:
        listed = ", ".join(map(str, outer))
        raise ShapeError(f"{name}: shapes {listed} do not broadcast; sizes must be equal or 1") from None
    mapped = [[len(s) - d - 1 >= 0 and s[len(s) - d - 1] != 1 for d in range(len(shape))] for s in outer]
    for d, n in enumerate(reversed(shape)):
        axes = tuple(0 if over[d] else None for over in mapped)
        fun = vmap(fun, axes) if any(a == 0 for a in axes) else _expanded(fun) if n == 1 else fun
    return fun(*(_squeezed(x, s) for x, s in zip(arrays, outer, strict=True)))


def _squeezed(x: Any, outer: tuple[int, ...]) -> Any:
    return squeeze(x, [d for d, n in enumerate(outer) if n == 1])


def _expanded(fun: Any) -> Any:
    """`fun` with an axis of size 1 before those of its outputs."""
    return lambda *operands: tree_map(lambda x: as_operand("vectorize", x)[None], fun(*operands))
