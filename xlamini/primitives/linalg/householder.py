"""Householder reflectors `I - tau v v^H`: the building blocks of `qr`.

`geqrf` and `geqp3` (with column exchanges) leave the vectors v below the diagonal of R; `householder_product` makes
their product Q, and `ormqr` multiplies by Q without making it.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Cost, Params, ShapedArray, ShapeError, aval_of
from xlamini.core.program.form import Form, Platform
from xlamini.core.sizes.expression import min_size
from xlamini.lowering.ffi_calls import foreign_call, xla_call
from xlamini.lowering.gpu import is_gpu
from xlamini.primitives.base.tangent_ops import full, zeros
from xlamini.primitives.elementwise.arithmetic import sub
from xlamini.primitives.linalg.stacks import (
    BOTH,
    MatrixOperation,
    as_matrices,
    check_batch,
    check_matrix,
    eye,
    kernel,
    one_of,
    shown,
)
from xlamini.primitives.shape.iota import broadcasted_iota

_INDEX = np.dtype(np.int32)
_NO_JVP = {"jvp": "reflectors are an inner form; what is differentiated is qr"}


def geqrf(a: Any) -> tuple[Any, Any]:
    """R on and above the diagonal, the vectors of the reflectors below it, and their factors, of shape [..., k]."""
    reflectors, taus = geqrf_p.bind(a)
    return reflectors, taus


def geqp3(a: Any, use_magma: bool | None = None) -> tuple[Any, Any, Any]:
    """Like `geqrf` of `a[..., p]`, with R's diagonal decreasing; also p, int32 of shape [..., n]."""
    reflectors, order, taus = geqp3_p.bind(a, use_magma=use_magma)
    return reflectors, order, taus


def householder_product(a: Any, taus: Any) -> Any:
    """The first n columns of Q, of shape [..., m, n], from reflectors below the diagonal of `a` with factors `taus`.

    `a` has shape [..., m, n] with m >= n, `taus` [..., k] with k <= n; else ShapeError.

    >>> householder_product(jnp.array([[0.0], [1.0]]), jnp.array([1.0]))
    Array([[ 0.],
           [-1.]], dtype=float32)
    """
    return householder_product_p.bind(*as_matrices("householder_product", a, taus))


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Any:
    """`Q @ c`, or `c @ Q` without `left`, for the Q given by the reflectors `a` with factors `taus`.

    `transpose` takes Q^H instead. `a` has shape [..., m, k], `taus` [..., k], `c` as many rows (columns) as Q, m; else
    ShapeError.

    >>> ormqr(jnp.array([[0.0], [1.0]]), jnp.array([1.0]), jnp.eye(2))
    Array([[ 0., -1.],
           [-1.,  0.]], dtype=float32)
    """
    return ormqr_p.bind(*as_matrices("ormqr", a, taus, c), left=bool(left), transpose=bool(transpose))


class Geqrf(MatrixOperation):
    name = "geqrf"
    kernels: tuple[str, str] = ("geqrf", "Qr")
    multiple_results = True
    lacks: Mapping[str, str] = _NO_JVP

    def shape_rule(self, a: ShapedArray) -> list[ShapedArray]:
        check_matrix(self.name, a)
        return [ShapedArray(a.shape, a.dtype), _factors(a)]

    def lower(self, ctx: Any, a: Any) -> Any:
        (aval,) = ctx.avals_in
        types = [ShapedArray(aval.shape, aval.dtype), _factors(aval)]
        if ctx.platform == "tpu":
            return xla_call(ctx, "Qr", [a], types)
        return foreign_call(ctx, kernel(ctx, "geqrf"), [a], types, aliases={0: 0})

    def cost(self, a: ShapedArray) -> Cost:
        return super().cost(a)._replace(flops=2 * a.size * min(a.shape[-2:]))


class Geqp3(MatrixOperation):
    name = "geqp3"
    kernels: tuple[str] = ("geqp3",)
    choices: Mapping[str, Sequence[Any]] = one_of(use_magma=(None, *BOTH))
    multiple_results = True
    lacks: Mapping[str, str] = _NO_JVP

    def shape_rule(self, a: ShapedArray, *, use_magma: bool | None) -> list[ShapedArray]:
        check_matrix(self.name, a)
        order = ShapedArray((*a.shape[:-2], a.shape[-1]), _INDEX)
        return [ShapedArray(a.shape, a.dtype), order, _factors(a)]

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form:
        return Form(partial(self._from_zero, **params) if avals[0].size else _unordered)

    def _from_zero(self, a: Any, *, use_magma: bool | None) -> list[Any]:
        """With the order counted from zero: the kernel's starts with one."""
        reflectors, order, taus = self.bind(a, use_magma=use_magma)
        return [reflectors, sub(order, full(aval_of(order), 1)), taus]

    def lower(self, ctx: Any, a: Any, *, use_magma: bool | None) -> Any:
        types = self.shape_rule(*ctx.avals_in, use_magma=use_magma)
        magma = {None: "auto", True: "on", False: "off"}[use_magma]
        target = "cuhybrid_geqp3" if is_gpu(ctx) else kernel(ctx, "geqp3")
        attributes = {"magma": magma} if is_gpu(ctx) else {}
        free = ctx.constant(0, types[1])
        return foreign_call(ctx, target, [a, free], types, attributes=attributes, aliases={0: 0, 1: 1})

    def callers(self, operands: Avals, results: Avals) -> Iterator[tuple[Avals, Params]]:
        return super().callers(operands[:1], results)  # the other one is the memory of the order

    def cost(self, a: ShapedArray, **params: Any) -> Cost:
        return super().cost(a, **params)._replace(flops=2 * a.size * min(a.shape[-2:]))


class HouseholderProduct(MatrixOperation):
    name = "householder_product"
    kernels: tuple[str, str, str] = ("orgqr", "ungqr", "ProductOfElementaryHouseholderReflectors")
    lacks: Mapping[str, str] = _NO_JVP

    def shape_rule(self, a: ShapedArray, taus: ShapedArray) -> ShapedArray:
        check_matrix(self.name, a)
        check_batch(self.name, a, taus, ranks=(2, 1))
        m, n = a.shape[-2:]
        if m < n or taus.shape[-1] > n:
            raise ShapeError(
                f"householder_product: a is {shown(a)}, taus is {shown(taus)}; a needs no fewer rows than columns, "
                "and taus no more elements than a has columns"
            )
        return ShapedArray(a.shape, a.dtype)

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        nothing = super().form(platform, avals, outs, params)
        return nothing if avals[1].size else Form(lambda a, taus: eye(aval_of(a)))

    def lower(self, ctx: Any, a: Any, taus: Any) -> Any:
        if ctx.platform == "tpu":
            return xla_call(ctx, "ProductOfElementaryHouseholderReflectors", [a, taus], [ctx.aval_out])[0]
        return foreign_call(ctx, kernel(ctx, "orgqr"), [a, taus], [ctx.aval_out], aliases={0: 0})[0]

    def cost(self, a: ShapedArray, taus: ShapedArray) -> Cost:
        return super().cost(a, taus)._replace(flops=2 * a.size * a.shape[-1])


class Ormqr(MatrixOperation):
    name = "ormqr"
    kernels: tuple[str, str] = ("ormqr", "unmqr")
    choices: Mapping[str, Sequence[Any]] = one_of(left=BOTH, transpose=BOTH)
    lacks: Mapping[str, str] = _NO_JVP

    def shape_rule(
        self, a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool
    ) -> ShapedArray:
        check_matrix(self.name, a)
        check_matrix(self.name, c)
        check_batch(self.name, a, taus, c, ranks=(2, 1, 2))
        side = c.shape[-2 if left else -1]
        if side != a.shape[-2] or taus.shape[-1] != min_size(*a.shape[-2:]):
            raise ShapeError(
                f"ormqr: a is {shown(a)}, taus is {shown(taus)}, c is {shown(c)}; with left={left} c needs as many "
                f"{'rows' if left else 'columns'} as a has rows, and taus as many elements as the shorter side of a"
            )
        return ShapedArray(c.shape, c.dtype)

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        nothing = super().form(platform, avals, outs, params)
        return nothing if avals[1].size else Form(lambda a, taus, c: c)

    def lower(self, ctx: Any, a: Any, taus: Any, c: Any, **attributes: bool) -> Any:
        operands, target = [a, taus, c], kernel(ctx, "ormqr")
        return foreign_call(ctx, target, operands, [ctx.aval_out], attributes=attributes, aliases={0: 2})[0]

    def cost(self, a: ShapedArray, taus: ShapedArray, c: ShapedArray, **params: Any) -> Cost:
        return super().cost(a, taus, c, **params)._replace(flops=4 * c.size * taus.shape[-1])


geqrf_p: Final = Geqrf()
geqp3_p: Final = Geqp3()
householder_product_p: Final = HouseholderProduct()
ormqr_p: Final = Ormqr()


def _unordered(a: Any) -> list[Any]:
    """The reflectors of empty matrices, with their columns in order."""
    *outer, _, n = aval_of(a).shape
    return [a, broadcasted_iota(_INDEX, (*outer, n), len(outer)), zeros(_factors(aval_of(a)))]


def _factors(a: ShapedArray) -> ShapedArray:
    return ShapedArray((*a.shape[:-2], min_size(*a.shape[-2:])), a.dtype)
