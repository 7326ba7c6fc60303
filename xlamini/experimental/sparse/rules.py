"""The rules of sparsify, for primitives whose result is sparse, or dense without cost."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini import lax, numpy as jnp
from xlamini.experimental.sparse.array import JAXSparse
from xlamini.experimental.sparse.convolution import bcoo_conv_general_dilated
from xlamini.experimental.sparse.duplicates import bcoo_sum_duplicates
from xlamini.experimental.sparse.elementwise import add_sparse, bcoo_multiply_dense, bcoo_multiply_sparse, dense_at
from xlamini.experimental.sparse.products import bcoo_dot_general
from xlamini.experimental.sparse.shapes import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_squeeze,
    bcoo_transpose,
)
from xlamini.experimental.sparse.slices import bcoo_dynamic_slice, bcoo_gather, bcoo_slice
from xlamini.experimental.sparse.transform import Rule, interpret, is_sparse, rules, todense_p
from xlamini.lax import primitives as lp

LINEAR = (lp.neg_p, lp.real_p, lp.imag_p, lax.conj_p, lp.copy_p, lax.stop_gradient_p)
ZERO_AT_ZERO = (
    lp.abs_p, lp.asin_p, lp.asinh_p, lp.atan_p, lp.atanh_p, lp.cbrt_p, lp.ceil_p, lp.erf_p, lp.erf_inv_p, lp.expm1_p,
    lp.floor_p, lp.log1p_p, lax.reduce_precision_p, lax.round_p, lp.sign_p, lp.sin_p, lp.sinh_p, lp.sqrt_p,
    lp.square_p, lp.tan_p, lp.tanh_p,
)  # fmt: skip


def rule(primitive: Any) -> Callable[[Rule], Rule]:
    """Decorator for the rule of a primitive."""
    return lambda fun: rules.setdefault(primitive, fun)


def bcoo_rule(primitive: Any) -> Callable[[Rule], Rule]:
    """Decorator for the rule of a primitive that takes sparse operands in the format of coordinates."""

    def register(fun: Rule) -> Rule:
        rules[primitive] = lambda *operands, **params: fun(*map(_coordinates, operands), **params)
        return fun

    return register


def _coordinates(x: Any) -> Any:
    return x.to_bcoo() if is_sparse(x) else x


def _of_data(primitive: Any, is_linear: bool) -> Rule:
    """The rule of an elementwise primitive that is zero at zero: it applies to the data, one entry for each place."""

    def apply(x: Any, **params: Any) -> Any:
        mat = x if is_linear else _unique(x)
        return mat.with_data(primitive.bind(mat.data, **params))

    return apply


def _unique(x: Any) -> Any:
    """The array with one entry for each place."""
    return x if x.unique_indices else bcoo_sum_duplicates(x.to_bcoo(), nse=x.nse)


for _primitive in (*LINEAR, *ZERO_AT_ZERO):
    rules[_primitive] = _of_data(_primitive, _primitive in LINEAR)


# Primitives with the params of the function
bcoo_rule(lax.transpose_p)(bcoo_transpose)
bcoo_rule(lax.squeeze_p)(bcoo_squeeze)
bcoo_rule(lax.rev_p)(bcoo_rev)
bcoo_rule(lax.slice_p)(bcoo_slice)
bcoo_rule(lax.broadcast_in_dim_p)(bcoo_broadcast_in_dim)
rule(todense_p)(JAXSparse.todense)


@rule(lax.convert_element_type_p)
def _convert(x: Any, **params: Any) -> Any:
    is_linear = jnp.issubdtype(params["new_dtype"], jnp.inexact)
    return _of_data(lax.convert_element_type_p, is_linear)(x, **params)


@rule(lax.integer_pow_p)
def _integer_pow(x: Any, y: int) -> Any:
    if y <= 0:
        raise _dense_result(f"a power with exponent {y}")
    return _of_data(lax.integer_pow_p, is_linear=False)(x, y=y)


def _dense_result(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"sparse: {what} has a dense result; if that is meant, make the array dense with sparse.todense(x)"
    )


@rule(lp.mul_p)
def _mul(x: Any, y: Any) -> Any:
    if is_sparse(x) and is_sparse(y):
        return bcoo_multiply_sparse(x.to_bcoo(), y.to_bcoo())
    mat, dense = (x, y) if is_sparse(x) else (y, x)
    if not jnp.ndim(dense):
        return mat.with_data(mat.data * dense)
    mat = mat.to_bcoo()
    return mat.with_data(bcoo_multiply_dense(mat, dense))


@rule(lp.div_p)
def _div(x: Any, y: Any) -> Any:
    if is_sparse(y):
        raise _dense_result("a division by a sparse array")
    if not jnp.ndim(y):
        return x.with_data(x.data / y)
    mat = x.to_bcoo()
    return mat.with_data(mat.data / dense_at(mat, y, fill=1))


@bcoo_rule(lp.add_p)
def _add(x: Any, y: Any) -> Any:
    if is_sparse(x) and is_sparse(y):
        return add_sparse(x, y)
    if jnp.shape(x) != jnp.shape(y):
        raise _dense_result("the sum of a sparse array and a number")
    return lax.add(*(v.todense() if is_sparse(v) else v for v in (x, y)))


@bcoo_rule(lp.sub_p)
def _sub(x: Any, y: Any) -> Any:
    return _add(x, y.with_data(-y.data) if is_sparse(y) else -y)


@bcoo_rule(lax.dot_general_p)
def _dot_general(x: Any, y: Any, dimension_numbers: Any, preferred_element_type: Any = None, **params: Any) -> Any:
    return bcoo_dot_general(x, y, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type)


@bcoo_rule(lax.reduce_sum_p)
def _reduce_sum(x: Any, axes: tuple[int, ...], **params: Any) -> Any:
    total = bcoo_reduce_sum(x, axes=axes)
    return total if total.shape else total.todense()


@bcoo_rule(lax.reshape_p)
def _reshape(x: Any, new_sizes: tuple[int, ...], **params: Any) -> Any:
    return bcoo_reshape(x, new_sizes=new_sizes)


@bcoo_rule(lax.concatenate_p)
def _concatenate(*operands: Any, dimension: int, **params: Any) -> Any:
    _check_all_sparse("concatenate", operands)
    return bcoo_concatenate(operands, dimension=dimension)


def _check_all_sparse(what: str, operands: Sequence[Any]) -> None:
    if not all(map(is_sparse, operands)):
        raise NotImplementedError(f"sparse: {what} takes sparse arrays alone, or dense ones; convert with todense")


@bcoo_rule(lax.split_p)
def _split(x: Any, sizes: tuple[int, ...], axis: int, **params: Any) -> Any:
    parts, starts, limits = [], [0] * x.ndim, list(x.shape)
    for size in sizes:
        limits[axis] = starts[axis] + size
        parts.append(bcoo_slice(x, start_indices=tuple(starts), limit_indices=tuple(limits)))
        starts[axis] = limits[axis]
    return parts


@bcoo_rule(lax.dynamic_slice_p)
def _dynamic_slice(x: Any, *starts: Any, slice_sizes: tuple[int, ...], **params: Any) -> Any:
    return bcoo_dynamic_slice(x, starts, slice_sizes)


@bcoo_rule(lax.gather_p)
def _gather(x: Any, indices: Any, dimension_numbers: Any, slice_sizes: Any, mode: Any, **params: Any) -> Any:
    if is_sparse(indices):
        raise _dense_result("an index that is sparse")
    return bcoo_gather(x, indices, dimension_numbers, slice_sizes, mode=mode)


@bcoo_rule(lax.conv_general_dilated_p)
def _conv(*operands: Any, **params: Any) -> Any:
    _check_all_sparse("a convolution", operands)
    return bcoo_conv_general_dilated(*operands, **params)


@rule(lax.cond_p)
def _cond(index: Any, *operands: Any, branches: Any, **params: Any) -> Any:
    return lax.switch(index, [lambda *xs, b=b: interpret(b, xs) for b in branches], *operands)


@rule(lax.scan_p)
def _scan(
    *operands: Any, jaxpr: Any, num_consts: int, num_carry: int, length: int, reverse: bool, unroll: Any, **params: Any
) -> Any:
    consts, rest = list(operands[:num_consts]), operands[num_consts:]
    for x in filter(is_sparse, rest[num_carry:]):
        if not x.n_batch:
            raise NotImplementedError(
                f"sparse: scan along a sparse dimension of {x!r}; call update_layout(n_batch=1) on the array first"
            )

    def body(carry: Any, xs: Any) -> Any:
        outs = interpret(jaxpr, [*consts, *carry, *xs])
        return outs[:num_carry], outs[num_carry:]

    carry, ys = lax.scan(body, list(rest[:num_carry]), list(rest[num_carry:]), length, reverse, unroll)
    return [*carry, *ys]


@rule(lax.while_p)
def _while(
    *operands: Any, cond_jaxpr: Any, body_jaxpr: Any, cond_nconsts: int, body_nconsts: int, **params: Any
) -> Any:
    of_cond, rest = list(operands[:cond_nconsts]), operands[cond_nconsts:]
    of_body, carry = list(rest[:body_nconsts]), list(rest[body_nconsts:])
    return lax.while_loop(
        lambda xs: interpret(cond_jaxpr, [*of_cond, *xs])[0], lambda xs: interpret(body_jaxpr, [*of_body, *xs]), carry
    )
