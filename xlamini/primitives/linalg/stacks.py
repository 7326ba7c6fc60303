"""Stacks of matrices: the last two dimensions are a matrix's. What rules of decompositions are written with."""
from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from xlamini.core import Avals, Axis, Dims, Params, Primitive, ShapedArray, ShapeError, Values, aval_of, literal
from xlamini.core.program.form import Form, Platform
from xlamini.core.sharding.facet import stacked_dimensions
from xlamini.lowering.ffi_calls import lapack
from xlamini.lowering.gpu import is_gpu
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.dtype_kinds import COMPLEX, FLOAT, Kinds, is_complex, kind_of
from xlamini.primitives.base.precision import Precision
from xlamini.primitives.base.promotion import broadcast_to, is_operand
from xlamini.primitives.base.tangent_ops import full, zeros
from xlamini.primitives.elementwise.arithmetic import add, mul
from xlamini.primitives.elementwise.comparison import eq, ge, gt
from xlamini.primitives.elementwise.complex import conj
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import select_n
from xlamini.primitives.products.dot_general import batch_matmul
from xlamini.primitives.reductions.reductions import check_kind
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.shape import broadcast_in_dim, transpose

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


_INDEX = np.dtype(np.int32)
BOTH = (False, True)


def one_of(**values: Sequence[Any]) -> Mapping[str, Sequence[Any]]:
    """The `choices` of a primitive: the values of params by name."""
    return values


class MatrixOperation(Primitive):
    """A primitive whose operands have any number of batch dimensions in front, the same ones.

    Its results are weakly typed where all its operands are; the `shape_rule` that a subclass writes need not say so.
    """

    shape_rule: Callable[..., Any]

    sharding: Sharding = stacked_dimensions(2)
    kernels: tuple[str, ...] = ()
    """Parts of the names of the kernels that `lower` calls."""
    choices: Mapping[str, Sequence[Any]] = one_of()
    """The params by which such calls differ, and their values: what a call in a file is compared with."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.shape_rule = _keeping_weakness(cls.shape_rule)

    def transpose(self, ct: Any, *operands: Any, **params: Any) -> NoReturn:
        raise AssertionError(f"{self.name} is not linear; its derivative is made of products and solves")

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        """Nothing, where that is the result: no kernel takes empty matrices."""
        if any(a.size for a in outs):
            return None
        nothing = [ShapedArray(a.shape, a.dtype) for a in outs]
        return Form(lambda *_: list(map(zeros, nothing)) if self.multiple_results else zeros(*nothing))

    def callers(self, operands: Avals, results: Avals) -> Iterator[tuple[Avals, Params]]:
        """The operands and params whose `lower` may call a kernel with operands and results of these types."""
        for values in itertools.product(*self.choices.values()):
            yield operands, dict(zip(self.choices, values, strict=True))

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        outs = self.bind(*with_batch_first(operands, dims, axis.size), **params)
        return (outs, [0] * len(outs)) if self.multiple_results else (outs, 0)


def _keeping_weakness(rule: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(rule)
    def shape_rule(self: Primitive, *avals: ShapedArray, **params: Any) -> Any:
        out = rule(self, *avals, **params)
        if not all(a.weak_type for a in avals):
            return out
        weak = [ShapedArray(a.shape, a.dtype, True) for a in (out if self.multiple_results else [out])]
        return weak if self.multiple_results else weak[0]

    return shape_rule


# --- arguments


def as_matrices(name: str, *operands: Any) -> list[Any]:
    """The operands of a function, of one dtype; TypeError for anything but arrays, or where dtypes differ."""
    for x in operands:
        if not is_operand(x):
            raise TypeError(f"{name}: an array is needed, got {type(x).__name__}; make it an array with jnp.asarray")
    dtypes = {aval_of(x).dtype for x in operands}
    if len(dtypes) > 1:
        found = ", ".join(aval_of(x).str_short(short_dtypes=False) for x in operands)
        raise TypeError(f"{name}: the operands must share one dtype, got {found}; convert with .astype")
    return list(operands)


def check_matrix(name: str, aval: ShapedArray, square: bool = False, accepts: Kinds = FLOAT | COMPLEX) -> None:
    """ShapeError unless there are matrices (square ones, if asked), TypeError unless they are of a dtype accepted."""
    check_kind(name, aval, accepts)
    if aval.ndim < 2:
        raise ShapeError(f"{name} takes a matrix or a stack of them, got {shown(aval)}; give it rank 2 at least")
    if square and aval.shape[-1] != aval.shape[-2]:
        raise ShapeError(f"{name} takes square matrices, got {shown(aval)}; its last two sizes must be equal")


def check_batch(name: str, *avals: ShapedArray, ranks: Sequence[int]) -> None:
    """ShapeError unless all operands have equal dimensions before the last `ranks`."""
    batches = [a.shape[: a.ndim - rank] if a.ndim >= rank else None for a, rank in zip(avals, ranks, strict=True)]
    if any(b != batches[0] for b in batches):
        found = ", ".join(map(shown, avals))
        raise ShapeError(f"{name}: the operands must have the same batch dimensions, got {found}; broadcast them first")


def shown(aval: ShapedArray) -> str:
    return aval.str_long()


# --- matrices


def mT(x: Any) -> Any:
    """The transposed matrices."""
    ndim = aval_of(x).ndim
    return transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def mH(x: Any) -> Any:
    """The conjugate transposed matrices."""
    return conj(mT(x)) if is_complex(x) else mT(x)


def matmul(x: Any, y: Any) -> Any:
    """Products of matrices, in full precision on every platform."""
    return batch_matmul(x, y, Precision.HIGHEST)


def tril(x: Any, k: int = 0) -> Any:
    """The matrices with zeros above diagonal `k`."""
    rows, columns = _indices(aval_of(x))
    return _kept(x, _at_least(rows, columns, -k))


def triu(x: Any, k: int = 0) -> Any:
    """The matrices with zeros below diagonal `k`."""
    rows, columns = _indices(aval_of(x))
    return _kept(x, _at_least(columns, rows, k))


def hermitian(x: Any, lower: bool = True) -> Any:
    """The Hermitian matrices of which `x` has one triangle; the other one is not read."""
    aval = aval_of(x)
    rows, columns = _indices(aval)
    half = mul(literal(0.5, aval.dtype), x)
    part = select_n(eq(rows, columns), (tril if lower else triu)(x), half)
    return add(part, mH(part))


def eye(aval: ShapedArray) -> Any:
    """Identity matrices of this type; those of a stack are one, which no compiler takes for different ones."""
    rows, columns = (broadcasted_iota(_INDEX, aval.shape[-2:], d) for d in (0, 1))
    return broadcast_to(convert(eq(rows, columns), aval.dtype), aval.shape)


def or_nan(valid: Any, x: Any) -> Any:
    """The arrays of a stack where `valid`, which has their batch dimensions, holds; NaN in the others."""
    aval = aval_of(x)
    nan = complex(np.nan, np.nan) if kind_of(aval.dtype) is COMPLEX else np.nan
    kept = broadcast_in_dim(valid, aval.shape, range(aval_of(valid).ndim))
    return select_n(kept, full(aval, nan), x)


def succeeded(info: Any, *outs: Any) -> list[Any]:
    """Results of a kernel, NaN where its status `info` is not 0."""
    valid = eq(info, broadcast_in_dim(literal(0, _INDEX), aval_of(info).shape, ()))
    return [or_nan(valid, x) for x in outs]


def _indices(aval: ShapedArray) -> list[Any]:
    """The row and the column of each element: a TPU would store a mask that is made for one matrix of many."""
    return [broadcasted_iota(_INDEX, aval.shape, aval.ndim - d) for d in (2, 1)]


def _at_least(x: Any, y: Any, more: int) -> Any:
    """A mask of `x >= y + more`, without a sum where there need not be one: a TPU gives it a kernel of its own."""
    if more == 1:
        return gt(x, y)
    return ge(x, y + full(aval_of(y), more) if more else y)


def _kept(x: Any, mask: Any) -> Any:
    """The matrices with zeros where the mask does not hold."""
    return select_n(mask, full(aval_of(x), 0), x)


# --- lowering


def kernel(ctx: Any, name: str) -> str:
    """The target of LAPACK's function on a CPU, cuSOLVER's on a GPU; NotImplementedError where there is none."""
    dtype = ctx.avals_in[0].dtype
    if dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise NotImplementedError(
            f"{ctx.eqn.primitive}: there is no kernel for dtype {dtype.name}; convert with .astype('float32') first"
        )
    if is_gpu(ctx):
        return f"cusolver_{name}_ffi"
    if ctx.platform != "cpu":
        raise NotImplementedError(f"{ctx.eqn.primitive}: there is no kernel for platform {ctx.platform}")
    return lapack(name, dtype)


def turned(ctx: Any, x: Any, aval: ShapedArray) -> Any:
    """The transposed matrices of an MLIR value of this type: for a kernel that reads by columns only another view."""
    out = turned_aval(aval)
    order = [*range(aval.ndim - 2), aval.ndim - 1, aval.ndim - 2]
    return ctx.op("stablehlo.transpose", x, avals=[out], permutation=order)


def turned_aval(aval: ShapedArray) -> ShapedArray:
    *batch, rows, columns = aval.shape
    return ShapedArray((*batch, columns, rows), aval.dtype)


def status_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the status that a kernel gives for each matrix."""
    return ShapedArray(aval.shape[:-2], _INDEX)
