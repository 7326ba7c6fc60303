"""From a user's kernel function and specs to a `Kernel`: the kernel and its index maps are traced once."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import (
    Cell,
    ExtendedDType,
    ShapedArray,
    Tracer,
    Values,
    aval_of,
    close_over,
    example_of,
    hooks,
    literal,
    unflatten,
)
from xlamini.core.errors import ShapeError
from xlamini.core.program.jaxpr import Jaxpr
from xlamini.core.program.kernels import Block, BlockDim, Blocked, BoundedSlice
from xlamini.core.program.ref_types import AbstractRef, RefVariable
from xlamini.core.pytree import structure
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import convert
from xlamini.staging import ArgNames
from xlamini.transforms.pallas.grid import start_kernel
from xlamini.transforms.pallas.specs import BlockSpec, block_dim, memory_name, no_block_spec

_INDEX = ShapedArray((), np.dtype(np.int32))


class Operands(NamedTuple):
    """What the kernel function takes: a tree for each argument, and the types of the refs that are the leaves."""

    trees: Sequence[Any]
    refs: Sequence[AbstractRef]


def ref_of_tracer(tracer: Tracer) -> Any:
    """The user's ref of a variable of type `Ref{…}` of a program that is being traced."""
    variable = RefVariable(tracer)
    cell = Cell(variable, variable.aval)
    cell.owner = tracer.builder
    return hooks.ref_of(cell)


def trace_kernel(fun: Callable[..., Any], name: str, grid: tuple[int, ...], operands: Operands) -> Jaxpr:
    """The program of a kernel function. It takes the indices of the grid, then the refs, and returns nothing.

    TypeError if it closes over an array, or returns one.
    """
    ids = [_INDEX] * len(grid)

    def program(*inputs: Any) -> Values:
        start_kernel(inputs[: len(ids)], grid)
        refs = iter(map(ref_of_tracer, inputs[len(ids) :]))
        args = [unflatten(tree, [next(refs) for _ in range(tree.num_leaves)]) for tree in operands.trees]
        out = fun(*args)
        if out is not None:
            raise TypeError(f"pallas_call: the kernel {name} returned {out!r}; write to its refs, and return None")
        return []

    return _closed(name, *build(program, [*ids, *operands.refs], name))


def names_of_refs(fun: Callable[..., Any], trees: Sequence[Any]) -> tuple[str, ...]:
    """The names of the refs that a kernel function takes: those of its parameters, with the path in a container."""
    args = tuple(map(example_of, trees))
    return tuple(ArgNames(fun, structure((args, {}))))


def _closed(name: str, jaxpr: Jaxpr, captured: Sequence[Any]) -> Jaxpr:
    """The program without captured values: numbers become literals; TypeError for others."""
    arrays = [x for x in captured if not _is_number(x)]
    if arrays:
        kinds = ", ".join(aval_of(x).str_short(short_dtypes=False) for x in arrays)
        raise TypeError(
            f"pallas_call: {name} closes over {kinds}; pass it as an input of the kernel, with a BlockSpec of its own"
        )
    if not captured:
        return jaxpr
    numbers = [literal(np.asarray(x)[()]) for x in captured]
    return build(lambda *inputs: evaluate(close_over(jaxpr), [*numbers, *inputs]), jaxpr.in_avals, name)[0]


def _is_number(x: Any) -> bool:
    aval = aval_of(x)
    return type(x) is not Tracer and not aval.shape and not isinstance(aval.dtype, ExtendedDType)


def block_of(
    spec: Any, array: ShapedArray, grid: tuple[int, ...], prefetch: Sequence[AbstractRef], what: str
) -> Block:
    """How the programs see an array, by a user's BlockSpec.

    ShapeError for a block of another rank, TypeError for an index map that does not fit.
    """
    spec = BlockSpec() if spec is None or spec is no_block_spec else spec
    if not isinstance(spec, BlockSpec):
        raise TypeError(f"pallas_call: the spec of {what} must be a BlockSpec or None, got {spec!r}")
    dims = _dims(spec.block_shape, array, what)
    index_map = spec.index_map or (lambda *_: (0,) * len(dims))
    jaxpr = _trace_index_map(index_map, dims, grid, prefetch, what)
    return Block(array, dims, jaxpr, memory_name(spec.memory_space), spec.pipeline_mode)


def _dims(shape: Sequence[Any] | None, array: ShapedArray, what: str) -> tuple[BlockDim, ...]:
    if shape is None:
        return tuple(map(Blocked, array.shape))
    dims = tuple(map(block_dim, shape))
    if len(dims) != array.ndim:
        raise ShapeError(
            f"pallas_call: the block shape {tuple(shape)} of {what} has {len(dims)} dimensions, but the array is "
            f"{array.str_short(short_dtypes=False)}; write a size for each dimension, or None to drop it"
        )
    for dim, size in zip(dims, array.shape, strict=True):
        if dim.block_size < min(size, 1):
            raise ShapeError(f"pallas_call: the block shape {tuple(shape)} of {what} has a size below 1")
    return dims


def _trace_index_map(
    fun: Callable[..., Any], dims: Sequence[BlockDim], grid: tuple[int, ...], prefetch: Sequence[AbstractRef], what: str
) -> Jaxpr:
    def indices(*inputs: Any) -> Values:
        ids, refs = inputs[: len(grid)], map(ref_of_tracer, inputs[len(grid) :])
        found = fun(*ids, *refs)
        found = tuple(found) if isinstance(found, tuple | list) else (found,)
        if len(found) != len(dims):
            raise TypeError(
                f"pallas_call: the index map of {what} returned {len(found)} indices for {len(dims)} dimensions; "
                "return one for each dimension of the block"
            )
        return [_index(x, d, what) for x, d in zip(found, dims, strict=True)]

    return _closed(f"the index map of {what}", *build(indices, [*[_INDEX] * len(grid), *prefetch], "index_map"))


def _index(x: Any, dim: BlockDim, what: str) -> Any:
    if isinstance(dim, BoundedSlice):
        raise NotImplementedError(
            f"pallas_call: BoundedSlice, for {what}, is not built; use Element(size) and mask what is beyond the end"
        )
    aval = aval_of(x)
    if aval.shape or aval.dtype.kind not in "iu":
        raise TypeError(
            f"pallas_call: the index map of {what} returned {aval.str_short(short_dtypes=False)} as an index; an "
            "index is one integer"
        )
    return convert(x, _INDEX.dtype, weak_type=False)


def block_ref(block: Block) -> AbstractRef:
    """The type of the ref of a block."""
    value = ShapedArray(block.shape, block.array.dtype, vma=block.array.vma)
    return AbstractRef(value, None, block.memory_space)
