"""Products over several dimensions on the CPU, as products of matrices: values beside NumPy's, and forms."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.sharding import AxisType, NamedSharding, PartitionSpec

pytestmark = [pytest.mark.sample(4), pytest.mark.usefixtures("optimized")]

JOINED: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any, str]] = {
    "weights of a dense layer": ((2, 3, 4), (2, 3, 5), (((0, 1), (0, 1)), ((), ())), "abm,abn->mn"),
    "in another order": ((2, 3, 4), (2, 3, 5), (((1, 0), (1, 0)), ((), ())), "abm,abn->mn"),
    "weights of heads": ((2, 3, 4, 5), (2, 3, 6), (((0, 1), (0, 1)), ((), ())), "abhm,abn->hmn"),
    "batch last": ((2, 3, 4, 5), (2, 3, 6, 5), (((0, 1), (0, 1)), ((3,), (3,))), "abmk,abnk->kmn"),
    "one sum, several free": ((3, 4, 5), (6, 3), (((0,), (1,)), ((), ())), "amn,pa->mnp"),
    "from heads": ((2, 3, 4, 5), (4, 5, 6), (((2, 3), (0, 1)), ((), ())), "abhm,hmn->abn"),
    "batches": ((4, 2, 3, 5), (4, 2, 3, 6), (((1, 2), (1, 2)), ((0,), (0,))), "kabm,kabn->kmn"),
    "all of one": ((2, 3), (2, 3, 4), (((0, 1), (0, 1)), ((), ())), "ab,abn->n"),
    "no terms": ((0, 3, 4), (0, 3, 5), (((0, 1), (0, 1)), ((), ())), "abm,abn->mn"),
}
APART: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any, str]] = {
    "a free dimension between": ((2, 4, 3, 5), (2, 3, 6), (((0, 2), (0, 1)), ((), ())), "ambn,abp->mnp"),
    "different orders": ((2, 3, 4), (3, 2, 5), (((0, 1), (1, 0)), ((), ())), "abm,ban->mn"),
    "rows by a matrix": ((2, 3, 4), (4, 5), (((2,), (0,)), ((), ())), "abm,mn->abn"),
}
DTYPES = ["float32", "float64", "complex64", "int8", "int32", "bfloat16"]


def numbers_of(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Whole numbers, whose products all dtypes hold exactly."""
    return np.random.default_rng(len(shape)).integers(-3, 4, shape).astype(dtype)


def lowered(product: Any, platform: str, *operands: Any) -> str:
    return xlamini.jit(product).trace(*operands).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*JOINED, *APART])
def test_values_are_those_of_numpy(name: str, dtype: str) -> None:
    left, right, numbers, sums = {**JOINED, **APART}[name]
    x, y = numbers_of(left, "int64"), numbers_of(right, "int64")
    with xlamini.enable_x64(True):
        a, b = jnp.asarray(x, dtype), jnp.asarray(y, dtype)
        found = xlamini.jit(lambda a, b: lax.dot_general(a, b, numbers))(a, b)
        wanted = np.einsum(sums, x, y)
        assert found.dtype == dtype and found.shape == wanted.shape
        np.testing.assert_array_equal(found.astype("complex128"), wanted.astype(dtype).astype("complex128"))


@pytest.mark.parametrize("name", [*JOINED, *APART])
def test_form_and_its_platform(name: str) -> None:
    left, right, numbers, _ = {**JOINED, **APART}[name]
    x, y = numbers_of(left, "float32"), numbers_of(right, "float32")
    product = lambda a, b: lax.dot_general(a, b, numbers)
    joins = ["stablehlo.reshape" in lowered(product, platform, x, y) for platform in ("cpu", "cuda", "tpu")]
    assert joins == [name in JOINED, False, False]


def test_gradients_of_a_dense_layer_are_products_of_matrices() -> None:
    """In both orders of `vmap` and `grad`, beside the sums that they are."""
    x, w, ct = numbers_of((2, 3, 4), "float32"), numbers_of((4, 5), "float32"), numbers_of((2, 3, 5), "float32")
    grad = xlamini.grad(lambda w, x, ct: jnp.vdot(x @ w, ct))
    np.testing.assert_array_equal(xlamini.jit(grad)(w, x, ct), np.einsum("abm,abn->mn", x, ct))
    text = lowered(grad, "cpu", w, x, ct)
    assert re.search(r"dot_general .*contracting_dims = \[0\] x \[0\]", text) and "transpose" not in text
    each = xlamini.jit(xlamini.vmap(grad, (None, 0, 0)))(w, x[None], ct[None])
    np.testing.assert_array_equal(each[0], np.einsum("abm,abn->mn", x, ct))
    of_all = xlamini.jit(xlamini.grad(lambda w: jnp.sum(xlamini.vmap(lambda x, ct: jnp.vdot(x @ w, ct))(x, ct))))(w)
    np.testing.assert_array_equal(of_all, np.einsum("abm,abn->mn", x, ct))


@pytest.mark.parametrize("kind", list(AxisType)[:2])
def test_products_over_a_mesh_stay_as_they_are(kind: AxisType) -> None:
    mesh = xlamini.make_mesh((2,), ("x",), axis_types=(kind,))
    x, y = numbers_of((2, 3, 4), "float32"), numbers_of((2, 3, 5), "float32")
    product = xlamini.jit(lambda a, b: lax.dot_general(a, b, (((0, 1), (0, 1)), ((), ()))))
    divided = xlamini.device_put(x, NamedSharding(mesh, PartitionSpec(None, None, "x")))
    assert ["stablehlo.reshape" in product.lower(a, y).as_text() for a in (x, divided, x)] == [True, False, True]
    np.testing.assert_array_equal(product(divided, y), np.einsum("abm,abn->mn", x, y))


def test_large_products_of_columns_of_float64_are_of_rows() -> None:
    columns = (((0,), (0,)), ((), ()))
    with xlamini.enable_x64(True):
        product = lambda a, b: lax.dot_general(a, b, columns)
        x, y = numbers_of((128, 96), "float64"), numbers_of((128, 112), "float64")
        np.testing.assert_array_equal(xlamini.jit(product)(x, y), x.T @ y)
        places = [("cpu", x, y), ("cuda", x, y), ("cpu", x[:4], y[:4])]
        assert ["stablehlo.transpose" in lowered(product, *place) for place in places] == [True, False, False]
        dense = xlamini.grad(lambda w, x, ct: jnp.vdot(x @ w, ct))
        w, x, ct = numbers_of((96, 112), "float64"), x.reshape(4, 32, 96), y.reshape(4, 32, 112)
        np.testing.assert_array_equal(xlamini.jit(dense)(w, x, ct), np.einsum("abm,abn->mn", x, ct))
        assert "stablehlo.transpose" in lowered(dense, "cpu", w, x, ct)
