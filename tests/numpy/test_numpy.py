"""xlamini.numpy and xlamini.nn inside transformations, and how arrays come in from outside."""
from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.nn
import xlamini.numpy as jnp
from xlamini.core.flags.jax_flags import warn_of_narrowing

# --- the same inside transformations

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3) / 4 - 0.5
VECTOR = np.array([0.5, -1.5, 2.0], np.float32)
NUMBERS = np.array([2, 0, 1], np.int32)

PROGRAMS = {
    "operators": (lambda a, b: (a + b * 2 - 1) / (abs(b) + 1) ** 2 // 0.5 % 3, (MATRIX, VECTOR)),
    "reflected": (lambda a: (1 - a, 2 / (a + 3), 2**a, 7 // (a + 3), 7 % (a + 3), divmod(7, a + 3)), (MATRIX,)),
    "integers": (lambda n: (n // 2, n % 2, -n // 2, n & 1, n | 4, n ^ 1, ~n, n << 1, n >> 1, 2**n), (NUMBERS,)),
    "comparisons": (lambda a, b: (a < b, a <= b, a == b, a != b, a > b, a >= b), (MATRIX, VECTOR)),
    "matmul": (lambda a, b: (a @ b, a.T @ a), (MATRIX, VECTOR)),
    "elementwise": (
        lambda a: (jnp.sin(a), jnp.hypot(a, 1), jnp.sinc(a), jnp.logaddexp(a, 0), jnp.round(a, 1)),
        (MATRIX,),
    ),
    "choice": (
        lambda a, b: (jnp.where(a > 0, a, b), jnp.clip(a, -0.25, b), jnp.select([a > 0], [a], 9)),
        (MATRIX, VECTOR),
    ),
    "tests": (lambda a, b: (jnp.isclose(a, b), jnp.allclose(a, a), jnp.isnan(a), jnp.signbit(a)), (MATRIX, VECTOR)),
    "shapes": (lambda a: (a.T, a.reshape(3, 2), jnp.ravel(a, "F"), jnp.expand_dims(a, 1), a.swapaxes(0, 1)), (MATRIX,)),
    "joining": (
        lambda a, b: (jnp.concatenate([a, a], 1), jnp.stack([b, b], 1), jnp.vstack([a, b]), jnp.append(a, b)),
        (MATRIX, VECTOR),
    ),
    "splitting": (lambda a: (jnp.split(a, 3, 1), jnp.array_split(a, 2, 1), jnp.unstack(a)), (MATRIX,)),
    "repeating": (lambda a: (jnp.tile(a, (2, 2)), jnp.repeat(a, 2, 1), jnp.broadcast_to(a, (2, 2, 3))), (MATRIX,)),
    "flipping": (lambda a: (jnp.flip(a), jnp.roll(a, 1), jnp.roll(a, (1, 2), (0, 1)), jnp.rot90(a)), (MATRIX,)),
    "roll by a value": (lambda a, n: jnp.roll(a, n[0], 1), (MATRIX, NUMBERS)),
    "padding": (lambda a: (jnp.pad(a, 1), jnp.pad(a, 2, mode="edge"), jnp.pad(a, (1, 3), mode="wrap")), (MATRIX,)),
    "padding by a value": (lambda a, b: jnp.pad(a, 1, constant_values=b[0]), (MATRIX, VECTOR)),
    "repeat by values": (lambda b, n: jnp.repeat(b, n, total_repeat_length=4), (VECTOR, NUMBERS)),
    "matrices": (
        lambda a, b: (jnp.diag(b, 1), jnp.diag(a), jnp.tril(a), jnp.triu(a, 1), jnp.trace(a)),
        (MATRIX, VECTOR),
    ),
    "creation": (lambda a: (jnp.zeros_like(a), jnp.full_like(a, 2), a + jnp.arange(3), jnp.eye(3) + a[0]), (MATRIX,)),
    "arrays of values": (
        lambda a: (jnp.array([a[0, 0], 1.0]), jnp.array([a[0], [1, 2, 3]]), jnp.asarray(a, "int32")),
        (MATRIX,),
    ),
    "linspace": (lambda a: jnp.linspace(a[0], a[1], 4), (MATRIX,)),
    "nonzero": (lambda a: (jnp.nonzero(a > 0, size=4), jnp.argwhere(a, size=2)), (MATRIX,)),
    "searching": (lambda b: jnp.searchsorted(jnp.sort(b), b), (VECTOR,)),
    "bincount": (lambda n: jnp.bincount(n, length=4), (NUMBERS,)),
    "interp": (lambda a, b: jnp.interp(a, jnp.sort(b), b), (MATRIX, VECTOR)),
    "curves": (lambda a: (jnp.diff(a), jnp.trapezoid(a), jnp.diff(a, prepend=0.0)), (MATRIX,)),
    "methods": (
        lambda a: (a.sum(0), a.mean(), a.max(1), a.std(), a.clip(0), a.astype(int), a.conj(), a.real),
        (MATRIX,),
    ),
    "nn": (lambda a: (xlamini.nn.softmax(a), xlamini.nn.gelu(a), xlamini.nn.logsumexp(a, 1)), (MATRIX,)),
    "one_hot": (lambda n: xlamini.nn.one_hot(n, 4), (NUMBERS,)),
    "standardize": (lambda a: xlamini.nn.standardize(a), (MATRIX,)),
}


def same(found: Any, wanted: Any) -> None:
    found, wanted = xlamini.tree.leaves(found), xlamini.tree.leaves(wanted)
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted, strict=True):
        assert (f.dtype, f.shape) == (w.dtype, w.shape)
        np.testing.assert_allclose(f, w, rtol=2e-6, atol=2e-6)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_jit_gives_the_same(name: str) -> None:
    fun, args = PROGRAMS[name]
    arrays = [jnp.asarray(a) for a in args]
    same(xlamini.jit(fun)(*arrays), fun(*arrays))


@pytest.mark.sample(30)
@pytest.mark.parametrize("name", PROGRAMS)
def test_vmap_is_a_loop(name: str) -> None:
    fun, args = PROGRAMS[name]
    batches = [jnp.stack([a, a[::-1] if a.dtype == np.int32 else a * -1.5]) for a in map(jnp.asarray, args)]
    looped = [fun(*(b[i] for b in batches)) for i in range(2)]
    same(xlamini.vmap(fun)(*batches), xlamini.tree.map(lambda *parts: jnp.stack(parts), *looped))


# --- arrays from outside


def test_a_64_bit_array_is_narrowed_with_a_warning_at_the_users_line() -> None:
    with pytest.warns(UserWarning, match=r"asarray: the float64 array is narrowed to float32.*dtype='float32'") as seen:
        jnp.asarray(np.ones(2))
    assert seen[0].filename == __file__
    with pytest.warns(UserWarning, match="array: the int64 array is narrowed to int32"):
        jnp.array(np.array([2**40]))
    with warn_of_narrowing(False):
        assert jnp.asarray(np.ones(2)).dtype == np.float32


def test_nothing_is_said_of_python_numbers_lists_and_wishes() -> None:
    numbers = (jnp.asarray(1.5), jnp.array([1, 2]), jnp.arange(2))
    wishes = (jnp.asarray(np.ones(2), "float32"), jnp.zeros(2, int))
    assert all(made.dtype in (np.float32, np.int32) for made in (*numbers, *wishes))


def test_64_bits_stay_with_x64() -> None:
    with xlamini.enable_x64(True):
        assert jnp.asarray(np.ones(2)).dtype == np.float64
        assert jnp.arange(2).dtype == np.int64
        assert jnp.sin(jnp.int64(1)).dtype == np.float64
        assert jnp.sin(jnp.int8(1)).dtype == np.float32  # as in JAX
        assert (jnp.ones(2) * 2).dtype == np.float64


def test_asarray_shares_and_array_copies() -> None:
    x = jnp.ones(2)
    assert jnp.asarray(x) is x
    assert jnp.array(x) is not x
    assert jnp.array(x, copy=False) is x
    assert jnp.asarray(x, copy=True) is not x


def test_a_changed_ndarray_does_not_change_the_array() -> None:
    source = np.zeros(2, np.float32)
    made = jnp.asarray(source)
    source[0] = 1
    assert made[0] == 0


def test_numpy_operands_on_either_side_give_arrays() -> None:
    for made in (np.ones(2, np.float32) + jnp.ones(2), jnp.ones(2) - np.float32(1), np.float32(2) * jnp.ones(2)):
        assert isinstance(made, xlamini.Array)


def test_scalars_of_equal_value_are_told_apart() -> None:
    x = jnp.ones(2)
    assert (x * 1).dtype == np.float32
    assert (jnp.arange(2) * 1).dtype == np.int32
    assert (jnp.arange(2) * 1.0).dtype == np.float32
    assert math.copysign(1, float((x * -0.0)[0])) == -1
    assert math.copysign(1, float((x * 0.0)[0])) == 1


def test_large_arrays_are_made_on_the_device() -> None:
    assert float(jnp.ones(100_000).sum()) == 100_000
    assert float(jnp.full((300, 300), 2.5).mean()) == 2.5


def test_dtype_functions() -> None:
    assert jnp.result_type("float16", np.int32) == np.float16
    assert jnp.promote_types("uint8", "int8") == np.int16
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)
    assert jnp.isdtype(jnp.float32, "real floating")
    assert not jnp.isdtype(jnp.float32, "integral")
    assert jnp.finfo(jnp.float32).eps == np.finfo(np.float32).eps
    assert jnp.iscomplexobj(jnp.array(1j))
    assert isinstance(jnp.ones(1), jnp.ndarray)


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_of_numpy_is_reshaped_to_one_that_python_reads_in_jit(order: str) -> None:
    read = []

    def halved(x: Any) -> Any:
        rows = jnp.reshape(MATRIX, (3, -1), order=order)
        read.append(bool((rows < 0).any()))
        return x * rows

    np.testing.assert_array_equal(xlamini.jit(halved)(0.5), 0.5 * MATRIX.reshape(3, 2, order=order))
    assert read == [True]
    assert type(jnp.reshape(MATRIX, 6)) is np.ndarray and isinstance(jnp.ravel(MATRIX), xlamini.Array)
    with pytest.raises(ValueError, match="cannot reshape array"):
        jnp.reshape(MATRIX, (4, 2))


def test_neither_arrays_nor_keys_nor_traced_values_say_that_they_are_hashable() -> None:
    traced = []
    xlamini.jit(lambda x: traced.append(isinstance(x, Hashable)))(1.0)
    assert traced == [False]
    assert not isinstance(jnp.ones(3), Hashable) and not isinstance(xlamini.random.key(0), Hashable)


def test_axes_of_transpose_as_an_array() -> None:
    x, axes = jnp.arange(6).reshape(1, 2, 3), np.array([2, 0, 1])
    for turned in (x.transpose(axes), np.transpose(x, axes), x.transpose(2, 0, 1), x.transpose([2, 0, 1])):  # type: ignore[arg-type]
        np.testing.assert_array_equal(turned, np.asarray(x).transpose(axes))
    assert x.transpose(None).shape == x.transpose().shape == (3, 2, 1)


def test_a_range_of_complex_numbers() -> None:
    for made in (jnp.arange(-1, 3, dtype=complex), xlamini.jit(lambda: jnp.arange(-1, 3, dtype=jnp.complex64))()):
        assert made.dtype == np.complex64
        np.testing.assert_array_equal(made, [-1, 0, 1, 2])
    np.testing.assert_array_equal(xlamini.jit(lambda: jnp.arange(3, dtype=jnp.complex64) * 1j)(), [0, 1j, 2j])
