"""Products of narrow numbers on the CPU, in the forms for which XLA has fast code: values beside NumPy's, and forms.

Integers of all values of their dtype, so that sums wrap and results lose their upper bits.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.primitives.forms.cpu.products import operand_dtypes

pytestmark = [pytest.mark.sample(4), pytest.mark.usefixtures("optimized")]

PLAIN = (((1,), (0,)), ((), ()))
PRODUCTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any, str]] = {
    "rows by columns": ((5, 7), (7, 3), PLAIN, "mk,kn->mn"),
    "columns by columns": ((7, 5), (7, 3), (((0,), (0,)), ((), ())), "km,kn->mn"),
    "columns by rows": ((7, 5), (3, 7), (((0,), (1,)), ((), ())), "km,nk->mn"),
    "batch": ((4, 5, 7), (4, 7, 3), (((2,), (1,)), ((0,), (0,))), "bmk,bkn->bmn"),
    "batch of columns": ((4, 7, 5), (4, 7, 3), (((1,), (1,)), ((0,), (0,))), "bkm,bkn->bmn"),
    "batch last": ((7, 5, 4), (7, 4, 3), (((0,), (0,)), ((2,), (1,))), "kmb,kbn->bmn"),
    "two sums": ((2, 3, 4, 5), (4, 2, 6), (((0, 2), (1, 0)), ((), ())), "ambc,ban->mcn"),
    "outer": ((6,), (2,), (((), ()), ((), ())), "m,n->mn"),
    "vector": ((6,), (6, 2), (((0,), (0,)), ((), ())), "k,kn->n"),
    "long sums": ((3, 40_000), (40_000, 2), PLAIN, "mk,kn->mn"),
    "no terms": ((3, 0), (0, 2), PLAIN, "mk,kn->mn"),
}
PAIRS = [*[(x, y) for x in ("int8", "uint8") for y in ("int8", "uint8")], ("int16", "uint16"), ("int8", "int32")]
RESULTS = ("int8", "uint16", "int32", "uint32", "int64")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def whole(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Integers of all the dtype's values."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(len(shape)).integers(limits.min, limits.max, shape, dtype, endpoint=True)


def lowered(product: Any, platform: str, *operands: Any) -> str:
    return xlamini.jit(product).trace(*operands).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("lhs, rhs", PAIRS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_integers_are_exact_and_wrap(name: str, lhs: str, rhs: str) -> None:
    left, right, numbers, sums = PRODUCTS[name]
    x, y = whole(left, lhs), whole(right, rhs)
    wanted = np.einsum(sums, x.astype(np.int64), y.astype(np.int64))
    with xlamini.enable_x64(True):
        each = lambda a, b: [lax.dot_general(a, b, numbers, preferred_element_type=out) for out in (None, *RESULTS)]
        for found in xlamini.jit(each)(x, y):
            np.testing.assert_array_equal(found, wanted.astype(found.dtype))


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_half_bytes(dtype: str) -> None:
    x, y = (np.arange(12).reshape(shape).astype(getattr(ml_dtypes, dtype)) for shape in ((3, 4), (4, 3)))
    wanted = x.astype(np.int32) @ y.astype(np.int32)
    for out in ("int8", "int32"):
        found = lax.dot_general(x, y, PLAIN, preferred_element_type=out)
        np.testing.assert_array_equal(found, wanted.astype(out))
    np.testing.assert_array_equal(np.asarray(lax.dot(x, y)), wanted.astype(x.dtype))


@pytest.mark.parametrize("name", PRODUCTS)
def test_bfloat16_is_summed_in_float32_and_rounded_once(name: str) -> None:
    left, right, numbers, sums = PRODUCTS[name]
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, shape).astype(BFLOAT16) for shape in (left, right))
    wanted = np.einsum(sums, x.astype(np.float32), y.astype(np.float32))
    for out in (BFLOAT16, np.dtype(np.float32)):
        found = xlamini.jit(lambda a, b, out=out: lax.dot_general(a, b, numbers, preferred_element_type=out))(x, y)
        np.testing.assert_array_equal(np.asarray(found, np.float32), wanted.astype(out).astype(np.float32))


def test_derivatives_and_batches_of_bfloat16() -> None:
    rng = np.random.default_rng(0)
    x, y, ct = (rng.standard_normal(shape).astype(BFLOAT16) for shape in ((4, 5, 7), (4, 7, 3), (4, 5, 3)))
    product = xlamini.vmap(lambda a, b: a @ b)
    found = xlamini.jit(lambda a, b, c: xlamini.vjp(product, a, b)[1](c))(x, y, ct)
    a, b, c = (value.astype(np.float32) for value in (x, y, ct))
    for got, wanted in zip(found, (c @ b.swapaxes(1, 2), a.swapaxes(1, 2) @ c), strict=True):
        assert got.dtype == BFLOAT16
        np.testing.assert_allclose(np.asarray(got, np.float32), wanted, rtol=2**-8, atol=2**-16)


@pytest.mark.parametrize(("units", "rows", "casts"), [(True, 90, False), (False, 91, True), (False, 8, False)])
def test_without_matrix_units_bfloat16_that_is_read_often_is_cast(
    monkeypatch: pytest.MonkeyPatch, units: bool, rows: int, casts: bool
) -> None:
    monkeypatch.setattr(operand_dtypes, "has_bfloat16_units", lambda: units)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, shape).astype(BFLOAT16) for shape in ((rows, 100), (100, 110)))
    assert ("tensor<100x110xf32>" in lowered(lax.dot, "cpu", x, y)) is casts
    wanted = (x.astype(np.float32) @ y.astype(np.float32)).astype(BFLOAT16)
    np.testing.assert_array_equal(np.asarray(xlamini.jit(lax.dot)(x, y)), wanted)


def test_batches_of_bytes() -> None:
    x, y = whole((6, 4, 5), "uint8"), whole((5, 6, 3), "int8")
    product = lambda a, b: jnp.matmul(a, b, preferred_element_type="int32")
    found = xlamini.jit(xlamini.vmap(product, (0, 1), 1))(x, y)
    np.testing.assert_array_equal(found, np.einsum("bmk,kbn->mbn", x.astype(np.int32), y.astype(np.int32)))


@pytest.mark.parametrize("dtype, wide", [("int8", "i32"), ("uint8", "i32"), ("bfloat16", "f32")])
def test_the_form_is_of_the_cpu_alone(dtype: str, wide: str) -> None:
    x, y = xlamini.ShapeDtypeStruct((8, 5), dtype), xlamini.ShapeDtypeStruct((8, 7), dtype)
    product = lambda a, b: lax.dot_general(a, b, (((0,), (0,)), ((), ())))
    on_cpu = lowered(product, "cpu", x, y)
    assert f"tensor<5x7x{wide}>" in on_cpu and 'inlineable = "false"' in on_cpu
    for platform in ("cuda", "tpu"):
        text = lowered(product, platform, x, y)
        assert "convert" not in text and "func.call" not in text


def test_vectors_and_fast_products_stay_as_they_are() -> None:
    vector, matrix = xlamini.ShapeDtypeStruct((8,), "bfloat16"), xlamini.ShapeDtypeStruct((8, 8), "bfloat16")
    assert "convert" not in lowered(lambda a, b: a @ b, "cpu", matrix, vector)
    narrow = xlamini.ShapeDtypeStruct((8, 8), "int8")
    assert "convert" not in lowered(lambda a, b: lax.dot(a, b, preferred_element_type="int32"), "cpu", narrow, narrow)


def test_devices_do_not_gather_an_operand_to_make_rows_of_it() -> None:
    mesh = xlamini.make_mesh((8,), ("x",), axis_types=(xlamini.sharding.AxisType.Auto,))
    split = xlamini.sharding.NamedSharding(mesh, xlamini.sharding.PartitionSpec("x"))
    x, y = (xlamini.device_put(np.ones((64, n), BFLOAT16), split) for n in (16, 24))
    compiled = xlamini.jit(lambda a, b: lax.dot_general(a, b, (((0,), (0,)), ((), ())))).lower(x, y).compile()
    assert "all-gather" not in compiled.as_text()
    np.testing.assert_array_equal(np.asarray(compiled(x, y), np.float32), np.full((16, 24), 64.0))
