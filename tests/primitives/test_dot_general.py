"""dot_general and the products made of it: batching and derivatives in both orders, precision, lowering, errors."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.core.program.avals import ShapedArray
from xlamini.primitives.products.dot_algorithm import recipe

RNG = np.random.default_rng(0)
PLAIN = (((1,), (0,)), ((), ()))


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


@pytest.fixture(autouse=True)
def double_precision() -> Any:
    with xlamini.enable_x64(True):
        yield


def weighted(x: Any, y: Any) -> Any:
    """A number that depends on a product with batch, contracting and free dimensions."""
    product = lax.dot_general(x, y, (((2,), (0,)), ((0,), (1,))))
    return jnp.sum(jnp.sin(product))


@pytest.mark.full
@pytest.mark.parametrize("in_axes", [(0, 0), (1, 2), (3, 0), (0, None), (None, 3), (2, None)])
def test_vmap_is_a_loop_in_both_orders_with_grad(in_axes: tuple[int | None, int | None]) -> None:
    shapes = [(2, 3, 4), (4, 2, 5)]
    x, y = (random(*s) if d is None else np.moveaxis(random(3, *s), 0, d) for s, d in zip(shapes, in_axes, strict=True))
    per_example = xlamini.vmap(xlamini.grad(weighted, argnums=(0, 1)), in_axes=in_axes)(x, y)
    for i in range(3):
        one = [v if d is None else np.take(v, i, d) for v, d in zip((x, y), in_axes, strict=True)]
        for found, expected in zip(per_example, xlamini.grad(weighted, argnums=(0, 1))(*one), strict=True):
            np.testing.assert_allclose(found[i], expected, rtol=1e-12, atol=1e-12)
    of_all = xlamini.grad(lambda x, y: jnp.sum(xlamini.vmap(weighted, in_axes=in_axes)(x, y)), argnums=(0, 1))(x, y)
    for found, examples, axis in zip(of_all, per_example, in_axes, strict=True):
        expected = np.sum(examples, 0) if axis is None else np.moveaxis(np.asarray(examples), 0, axis)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0), (2, 1)])
def test_vmap_of_stacks_puts_the_mapped_axis_first(in_axes: tuple[int | None, int | None]) -> None:
    """Of unequal sizes, so that a misplaced axis shows in the shape."""
    operands = (random(4, 2, 3), random(4, 3, 5))
    mapped = [x if a is None else np.stack([x, 2 * x, -x, x + 1, x - 1, 0 * x], a)
              for x, a in zip(operands, in_axes, strict=True)]
    product = xlamini.vmap(lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), in_axes)(*mapped)
    each = [[x if a is None else np.take(x, i, a) for x, a in zip(mapped, in_axes, strict=True)] for i in range(6)]
    np.testing.assert_allclose(product, np.stack([x @ y for x, y in each]), rtol=1e-5)


@pytest.mark.full
def test_derivatives_against_finite_differences() -> None:
    x, y, step = random(2, 3, 4), random(4, 2, 5), 1e-6
    gradients = xlamini.grad(weighted, argnums=(0, 1))(x, y)
    for position, gradient in enumerate(gradients):
        direction = random(*gradient.shape)
        ahead, behind = (
            weighted(*(v + s * step * direction if i == position else v for i, v in enumerate((x, y)))) for s in (1, -1)
        )
        assert float(ahead - behind) / (2 * step) == pytest.approx(float(jnp.sum(gradient * direction)), rel=1e-6)


def test_hessian_of_a_product() -> None:
    x, y = random(2, 3), random(3, 2)
    mixed = xlamini.jacobian(xlamini.grad(lambda x, y: jnp.sum(x @ y), argnums=0), argnums=1)(x, y)
    np.testing.assert_allclose(mixed, np.einsum("ac,bd->abcd", np.ones((2, 2)), np.eye(3)).transpose(0, 1, 3, 2))


@pytest.mark.sample(4)
@pytest.mark.parametrize("left", ["float32", "bfloat16", "int8", "int32", "bool", "complex64"])
@pytest.mark.parametrize("right", ["float32", "int32", "float16"])
@pytest.mark.parametrize("asked", [None, "float32"])
def test_mixed_dtypes(left: str, right: str, asked: str | None) -> None:
    x, y = (np.ones((2, 3), getattr(ml_dtypes, d, d)) for d in (left, right))
    found = lax.dot_general(x, y.T, PLAIN, preferred_element_type=asked)
    assert found.dtype == (np.dtype(asked) if asked else jnp.result_type(x.dtype, y.dtype))
    np.testing.assert_array_equal(np.asarray(found).astype(complex), np.full((2, 2), 3))


def test_derivatives_keep_the_dtypes_of_operands() -> None:
    x, y = np.ones((2, 3), ml_dtypes.bfloat16), np.ones((3, 2), np.float32)
    gradients = xlamini.grad(
        lambda x, y: jnp.sum(lax.dot_general(x, y, PLAIN, preferred_element_type="float32")), argnums=(0, 1)
    )(x, y)
    assert [g.dtype for g in gradients] == [x.dtype, y.dtype]


@pytest.mark.parametrize(
    ("precision", "text"),
    [
        (None, "[DEFAULT, DEFAULT]"),
        ("high", "[HIGH, HIGH]"),
        ("float32", "[HIGHEST, HIGHEST]"),
        (lax.Precision.HIGHEST, "[HIGHEST, HIGHEST]"),
        ((lax.Precision.DEFAULT, "highest"), "[DEFAULT, HIGHEST]"),
        (lax.DotAlgorithmPreset.TF32_TF32_F32, "stablehlo.reduce_precision"),
        ("BF16_BF16_F32", "tensor<2x2xbf16>) -> tensor<2x2xf32>"),
    ],
)
def test_precision_reaches_stablehlo(precision: Any, text: str) -> None:
    lowered = xlamini.jit(lambda x: lax.dot_general(x, x, PLAIN, precision=precision)).lower(
        np.ones((2, 2), np.float32)
    )
    assert text in lowered.as_text()


@pytest.mark.parametrize(
    ("algorithm", "texts"),
    [
        (lax.DotAlgorithmPreset.BF16_BF16_F32_X3, ["lhs_precision_type = bf16", "num_primitive_operations = 3"]),
        (lax.DotAlgorithmPreset.TF32_TF32_F32, ["rhs_precision_type = tf32", "accumulation_type = f32"]),
        (lax.DotAlgorithmPreset.ANY_F8_ANY_F8_F32_FAST_ACCUM, ["f8E4M3FN", "allow_imprecise_accumulation = true"]),
        (lax.DotAlgorithm("float16", "bfloat16", "float64"), ["= f16, rhs_precision_type = bf16", "= f64"]),
    ],
)
def test_algorithms_as_accelerators_are_told(algorithm: Any, texts: list[str]) -> None:
    narrow = np.dtype(ml_dtypes.float8_e4m3fn)
    assert all(text in str(recipe(algorithm, (narrow, narrow))) for text in texts)


_PRESETS = [p for p in lax.DotAlgorithmPreset if "F8" not in p.name]


@pytest.mark.parametrize(
    "dtypes",
    [("c8", "c8"), *(pytest.param(d, marks=pytest.mark.full) for d in [("c16", "c16"), ("c8", "f4"), ("f4", "c8")])],
    ids=str,
)
def test_algorithms_keep_the_imaginary_part(dtypes: tuple[str, str]) -> None:
    """Of small integers, whose products are exact in each dtype; JAX drops the imaginary parts."""
    left, right = (_gaussian_integers(seed, dtype) for seed, dtype in enumerate(dtypes))
    product = left @ right
    ct = np.ones_like(product)
    derivatives = (ct @ right.T, left.T @ ct)

    def all_of(x: Any, y: Any) -> list[Any]:
        return [lax.dot(x, y, precision=p) for p in _PRESETS]

    with xlamini.enable_x64(True):
        for result in (*xlamini.jit(all_of)(left, right), lax.dot(left, right, precision="BF16_BF16_F32")):
            assert result.dtype == product.dtype
            np.testing.assert_array_equal(result, product)
        _, pullback = xlamini.vjp(functools.partial(lax.dot, precision="F32_F32_F32"), left, right)
        for result, expected, operand in zip(pullback(ct), derivatives, (left, right), strict=True):
            np.testing.assert_array_equal(result, expected if operand.dtype.kind == "c" else expected.real)


def test_algorithms_multiply_complex_operands_into_the_dtype_that_is_asked_for() -> None:
    x = np.array([1 + 1j, 2.0**-30], np.complex64)
    precise = (np.ones(2) @ x, np.ones(2) @ x.real)
    with xlamini.enable_x64(True):
        for dtype, expected in zip((np.complex128, np.float64), precise, strict=True):
            result = lax.dot(np.ones(2, np.complex64), x, precision="F64_F64_F64", preferred_element_type=dtype)
            assert result.dtype == dtype and result == expected


def _gaussian_integers(seed: int, dtype: str) -> Any:
    parts = np.random.default_rng(seed).integers(-2, 3, (2, 3, 3))
    return (parts[0] + 1j * parts[1] if dtype[0] == "c" else parts[0]).astype(dtype)


@pytest.mark.parametrize(
    "shape, numbers, text",
    [
        ((3, 2), PLAIN, "precision=(Precision.DEFAULT, Precision.HIGHEST)"),  # x.T @ ct
        ((2, 3), (((1,), (1,)), ((), ())), "precision=(Precision.HIGHEST, Precision.DEFAULT)"),  # ct.T @ x
    ],
)
def test_precision_of_derivatives_goes_with_the_operands(shape: Any, numbers: Any, text: str) -> None:
    precision = (lax.Precision.DEFAULT, lax.Precision.HIGHEST)
    grad = xlamini.grad(lambda x, y: jnp.sum(lax.dot_general(x, y, numbers, precision=precision)), argnums=1)
    jaxpr = xlamini.make_jaxpr(grad)(random(2, 3), random(*shape))
    assert text in str(jaxpr) and "transpose" not in str(jaxpr)


def test_default_precision_is_a_flag() -> None:
    x = np.ones((2, 2), np.float32)
    with xlamini.default_matmul_precision("highest"):
        assert "[HIGHEST, HIGHEST]" in xlamini.jit(jnp.matmul).lower(x, x).as_text()


def test_printed_as_jax_prints_it() -> None:
    text = str(xlamini.make_jaxpr(jnp.dot)(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)))
    assert "dimension_numbers=(([1], [0]), ([], []))" in text
    assert "preferred_element_type=float32" in text
    assert "precision" not in text


def test_cost() -> None:
    avals = ShapedArray((5, 2, 3), np.float32), ShapedArray((5, 3, 4), np.float32)
    cost = lax.dot_general_p.cost(
        *avals, dimension_numbers=(((2,), (1,)), ((0,), (0,))), precision=None, preferred_element_type=None
    )
    assert cost == (2 * 5 * 2 * 3 * 4, 4 * 5 * (6 + 12 + 8))


@pytest.mark.parametrize(
    ("left", "right"),
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)),
     ((6, 1, 2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((1, 1, 2, 3), (1, 3, 4)), ((0, 3), (3, 2)),
     ((2, 0), (0, 3))],
)  # fmt: skip
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = random(*left), random(*right)
    for found in (jnp.matmul(x, y), jnp.asarray(x) @ y, x @ jnp.asarray(y), xlamini.jit(lambda x, y: x @ y)(x, y)):
        np.testing.assert_allclose(found, x @ y, rtol=1e-12, atol=1e-12)


def test_products_of_vectors_and_stacks() -> None:
    x, y = random(2, 3) + 1j * random(2, 3), random(2, 3) + 1j * random(2, 3)
    np.testing.assert_allclose(jnp.vdot(x, y), np.vdot(x, y))
    np.testing.assert_allclose(jnp.vecdot(x, y, axis=0), np.sum(x.conj() * y, 0))
    np.testing.assert_allclose(jnp.vecmat(x, random(3, 4) * 0 + 1), np.repeat(x.conj().sum(1)[:, None], 4, 1))
    np.testing.assert_allclose(jnp.matvec(x, y[:, None]), np.einsum("ij,bkj->bki", x, y[:, None]))
    np.testing.assert_allclose(jnp.dot(2.0, random(3) * 0 + 1), np.full(3, 2.0))
    assert lax.batch_matmul(random(5, 2, 3), random(5, 3, 4)).shape == (5, 2, 4)
    assert lax.dot(random(2, 3), random(3)).shape == (2,)


X, STACK = np.ones((2, 3)), np.ones((5, 2, 3))
ERRORS: list[tuple[Callable[[], Any], type, str]] = [
    (
        lambda: jnp.matmul(X, X),
        TypeError,
        "matmul: contracting dimensions differ: float64[2,3] has (3,) at (1,), float64[2,3] has (2,) at (0,); "
        "transpose the right operand (.T)",
    ),
    (lambda: jnp.matmul(X, np.ones((2, 4))), TypeError, "transpose the left operand (.T)"),
    (lambda: jnp.matmul(X, 2.0), ValueError, "matmul: b is a scalar; multiply with * instead"),
    (lambda: jnp.matmul(STACK, np.ones((4, 3, 2))), TypeError, "matmul: the leading axes (5,) and (4,) of shapes"),
    (lambda: jnp.matmul(STACK, STACK), TypeError, "float64[5,2,3] has (3,) at (2,), float64[5,2,3] has (2,) at (1,)"),
    (lambda: jnp.dot(X, X), TypeError, "dot: contracting dimensions differ"),
    (lambda: jnp.tensordot(X, X, 3), ValueError, "tensordot: axes is 3, but the operands have ranks 2 and 2"),
    (lambda: jnp.tensordot(X, X, ((0, 1), (0,))), ValueError, "tensordot: 2 axes of a and 1 of b do not pair"),
    (lambda: jnp.vdot(X, STACK), TypeError, "vdot: contracting dimensions differ"),
    (lambda: jnp.matvec(X[0], X), TypeError, "matvec: x1 needs 2 axes at least, but its shape is (3,)"),
    (lambda: lax.dot(X, STACK), TypeError, "dot takes vectors and matrices, got float64[2,3] and float64[5,2,3]"),
    (lambda: lax.batch_matmul(X, STACK), TypeError, "batch_matmul takes two arrays of one rank, at least 2"),
    (lambda: lax.dot_general(X, X, 3), TypeError, "dot_general: dimension_numbers is 3; write ((lhs_contracting"),
    (lambda: lax.dot_general(X, X, (((1,), (0,)), ((5,), (1,)))), TypeError, "do not fit lhs of type float64[2,3]"),
    (lambda: lax.dot_general(X, X, (((1, 1), (0, 0)), ((), ()))), TypeError, "a dimension of lhs is named twice"),
    (lambda: lax.dot_general(X, X, (((), ()), ((0,), (1,)))), TypeError, "dot_general: batch dimensions differ"),
    (lambda: lax.dot_general(X, X.T, PLAIN, "exact"), ValueError, "dot_general: unknown precision 'exact'; write None"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[text for _, _, text in ERRORS])
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()


def test_precision_by_its_other_names() -> None:
    names = {None: "DEFAULT", "fastest": "DEFAULT", "bfloat16_3x": "HIGH", "float32": "HIGHEST", 1: "HIGH"}
    assert {name: str(lax.Precision(name)) for name in names} == names
    with pytest.raises(ValueError, match="'HIGHEST' is not a valid Precision"):
        lax.Precision("HIGHEST")


def test_the_preset_default_by_its_name() -> None:
    x = np.arange(3, dtype=np.float32)
    assert float(lax.dot(x, x, precision="DEFAULT")) == 5
