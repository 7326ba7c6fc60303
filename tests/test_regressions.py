"""Programs that once gave a wrong answer, each with what it should give."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import xlamini as xl
import xlamini.numpy as jnp
from xlamini import lax

pytestmark = pytest.mark.usefixtures("optimized")


@pytest.mark.parametrize(("x", "y", "quotient"), [(5.0, 0.0, np.inf), (-5.0, 0.0, -np.inf), (7.5, -2.0, -4.0)])
def test_floats_divided_by_zero_and_rounded_down_are_infinite(x, y, quotient):
    assert float(jnp.floor_divide(x, jnp.float32(y))) == quotient
    assert float(jnp.divmod(x, jnp.float32(y))[0]) == quotient


def test_floor_divide_by_zero_has_no_gradient():
    assert float(xl.grad(lambda y: 7.0 // y + y)(0.0)) == 1.0


def test_nanmedian_of_integers():
    assert float(jnp.nanmedian(jnp.array([3, 1]))) == 2.0


def test_trapezoid_of_one_row_of_places_along_another_axis_than_the_last():
    y, x = np.arange(20.0, dtype=np.float32).reshape(4, 5) ** 2, np.float32([0, 1, 3, 4])
    np.testing.assert_allclose(jnp.trapezoid(y, x, axis=0), np.trapezoid(y, x, axis=0))
    np.testing.assert_allclose(jnp.trapezoid(y.T, x, axis=-1), np.trapezoid(y, x, axis=0))


def test_trapezoid_of_distances_in_an_array():
    y, distances = np.array([[1, 2, 4], [3, 1, 0]], np.float32), np.array([1, 3], np.float32)
    np.testing.assert_allclose(jnp.trapezoid(y, dx=distances), np.trapezoid(y, dx=distances))
    np.testing.assert_allclose(jnp.trapezoid(y, dx=np.float32(2)), np.trapezoid(y, dx=2))


def test_trapezoid_of_infinite_ends_and_of_one_sample():
    y = np.array([[np.inf, 1, 2], [3, 4, -np.inf], [1, 2, 3]], np.float32)
    np.testing.assert_array_equal(jnp.trapezoid(y, dx=0.5), np.trapezoid(y, dx=0.5))
    np.testing.assert_array_equal(jnp.trapezoid(y[:, :1]), np.zeros(3))


def test_treedef_pickles():
    treedef = xl.tree.structure({"a": 1, "b": (1, xl.tree_util.Partial(max, 2))})
    assert pickle.loads(pickle.dumps(treedef)) == treedef


def test_equation_prints_as_text():
    (eqn,) = xl.make_jaxpr(jnp.sin)(1.0).eqns
    assert str(eqn) == "a:f32[] = sin b"


@pytest.mark.parametrize(
    ("function", "operands", "message"),
    [
        (jnp.sin, (), r"sin\(\) missing 1 required positional argument: 'x'"),
        (jnp.sin, (1.0, 2.0), r"sin\(\) takes 1 positional argument but 2 were given"),
        (jnp.add, (1.0,), r"add\(\) missing 1 required positional argument: 'y'"),
        (jnp.maximum, (1.0, 2.0, 3.0), r"maximum\(\) takes 2 positional arguments but 3 were given"),
    ],
)
def test_wrong_number_of_operands(function, operands, message):
    with pytest.raises(TypeError, match=message):
        function(*operands)
    with pytest.raises(TypeError, match=message):
        xl.jit(lambda: function(*operands))()


def test_operands_by_name():
    assert float(xl.nn.relu(x=2.0)) == 2.0
    with pytest.raises(TypeError, match="keyword"):
        jnp.sin(x=2.0)


@pytest.mark.parametrize(
    "f", [lambda x: x * jnp.float32(2), lambda x: (x + jnp.ones(3)).sum(), lambda x: jnp.stack([x, x])[0]]
)
def test_gradient_of_a_python_number_promotes_as_the_number_does(f):
    assert xl.grad(f)(3.0).weak_type
    assert xl.jit(xl.grad(f))(3.0).weak_type
    assert xl.vjp(f, 3.0)[1](jnp.float32(1.0))[0].weak_type
    assert not xl.grad(f)(jnp.float32(3.0)).weak_type


@pytest.mark.full
def test_fetching_a_value_does_not_import_jax(tmp_path):
    (tmp_path / "jax.py").write_text("raise SystemExit('jax was imported')")
    program = (
        "import xlamini as xl, xlamini.numpy as jnp, numpy as np; x = jnp.arange(3.0)\n"
        "x.copy_to_host_async(); xl.device_get(x); np.asarray(x); repr(x); x.tolist(); float(x[0])"
    )
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{program}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("function", [jnp.power, jnp.heaviside])
def test_python_numbers_stay_weak(function):
    assert xl.jit(lambda t: function(0.9, t))(1).weak_type
    assert not xl.jit(lambda t: function(0.9, t))(jnp.float32(1)).weak_type


def test_every_face_can_be_named():
    for name in dir(xl):
        getattr(xl, name)
    assert jnp.issubdtype(xl.random.key(0).dtype, xl.dtypes.prng_key)


def test_functions_of_numbers_alone_while_tracing() -> None:
    found = xl.jit(lambda: (xl.nn.relu(2.0), xl.nn.elu(-1.0), xl.nn.hard_tanh(2.0), jnp.sin(0.0)))()
    np.testing.assert_allclose(found, [2.0, np.expm1(-1.0), 1.0, 0.0], rtol=1e-6)


def test_an_update_drops_what_is_out_of_range_traced_or_not() -> None:
    def padded(i: Any) -> Any:
        return jnp.zeros(4).at[i].add(1.0)

    places = jnp.array([0, 0, 9])
    for add in (padded, xl.jit(padded)):
        np.testing.assert_array_equal(add(places), [2, 0, 0, 0])


def test_results_that_are_constants_while_tracing_are_arrays() -> None:
    nothing = np.zeros((0, 0), np.float32)
    assert xl.jit(lambda x: jnp.linalg.det(x).size)(nothing) == 1
    assert xl.jit(lambda x: jnp.linalg.det(x).sum() + x.size)(nothing) == 1
    assert xl.grad(lambda x: jnp.linalg.det(x).astype(float))(nothing).shape == (0, 0)
    assert xl.vmap(lambda x: jnp.linalg.det(x)[None])(np.zeros((3, 0, 0))).tolist() == [[1.0]] * 3


@pytest.mark.full
def test_interp_of_a_wider_place() -> None:
    x, heights = np.arange(3, dtype=np.float16) + np.float16(0.5), jnp.arange(4.0, dtype=jnp.float16)
    found = jnp.interp(x, jnp.arange(4.0), heights)
    assert found.dtype == "float32" and found.tolist() == [0.5, 1.5, 2.5]
    with xl.enable_x64(True):
        wide = jnp.interp(jnp.arange(3.0), np.arange(3, dtype=np.float32), np.arange(3, dtype=np.float32), period=3)
    assert wide.dtype == "float64" and wide.tolist() == [0.0, 1.0, 2.0]


def test_shifts_of_no_axis() -> None:
    x = np.arange(6).reshape(2, 3)
    for shift, axis in (((), ()), (1, ()), ((), 0), ((1, 2), (0, 1)), ((1,), (0, 1)), (2, (0, 1))):
        assert jnp.roll(x, shift, axis).tolist() == np.roll(x, shift, axis).tolist()
    assert jnp.fft.fftshift(jnp.float32(2)) == 2 == jnp.fft.ifftshift(jnp.float32(2))


def test_transforms_of_nothing() -> None:
    for shape in ((0,), (2, 0), (0, 3)):
        x = np.ones(shape, np.float32)
        for back_and_forth in (lambda x: jnp.fft.irfft(jnp.fft.rfft(x)), lambda x: jnp.fft.ifft(jnp.fft.fft(x)).real):
            assert back_and_forth(x).size == 0
            assert xl.grad(lambda x, f=back_and_forth: f(x).sum())(x).shape == shape


def test_narrow_indices_into_longer_axes() -> None:
    x = np.arange(300, dtype=np.int32)
    for index in (5, -1):
        narrow = jnp.int8(index)
        assert jnp.asarray(x)[narrow] == xl.jit(lambda i: jnp.asarray(x)[i])(narrow) == x[index]
        assert jnp.take(x, narrow) == jnp.asarray(x).at[narrow].get() == x[index]
    assert lax.dynamic_slice(x, (jnp.int8(5),), (2,)).tolist() == [5, 6]


def test_places_beyond_int32() -> None:
    """Only the types are made, as the arrays would take gigabytes."""
    huge = xl.ShapeDtypeStruct((2**31 + 8,), "int8")
    assert xl.eval_shape(lambda x: x[2**31 + 3] + x[-1], huge).shape == ()
    for wrong in (lambda x: x[x[0].astype(int)], lambda x: lax.dynamic_slice(x, (2**31 + 3,), (2,)), jnp.argmax):
        with pytest.raises(OverflowError, match=r"enable_x64|out of bounds for int32"):
            xl.eval_shape(wrong, huge)
        with xl.enable_x64(True):
            assert xl.eval_shape(wrong, huge).dtype in ("int8", "int64")
