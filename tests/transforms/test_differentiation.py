"""grad, jvp, vjp, linearize and their kin by hand: arguments and outputs of every kind, control flow on values."""
from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import float0, lax

F32 = np.float32
RAMP = np.arange(1, 4, dtype=F32)


def polynomial(x: Any, y: Any) -> Any:
    return x * x * y + 3 * y


def total(x: Any) -> Any:
    return sum(x[i] for i in range(x.shape[0]))


# --- grad and value_and_grad


@pytest.mark.parametrize(
    "argnums, expected",
    [(0, 12.0), (1, 7.0), (-1, 7.0), ((0,), (12.0,)), ((1, 0), (7.0, 12.0)), ([0, -1], (12.0, 7.0))],
)
def test_argnums(argnums: Any, expected: Any) -> None:
    value, gradient = xlamini.value_and_grad(polynomial, argnums)(2.0, 3.0)
    assert_close(value, 21, 0)
    assert isinstance(gradient, tuple) == isinstance(expected, tuple)
    assert_close(np.stack(xlamini.tree.leaves(gradient)), np.ravel(expected), 0)


def test_gradients_of_pytrees_have_their_structure() -> None:
    gradient = xlamini.grad(lambda p, s: total(p["w"][0] * p["w"][1]) * s)({"w": (RAMP, 2 * RAMP), "unused": RAMP}, 3.0)
    assert_close(gradient["w"][0], 6 * RAMP, 0)
    assert_close(gradient["w"][1], 3 * RAMP, 0)
    assert_close(gradient["unused"], 0 * RAMP, 0)


def test_auxiliary_data() -> None:
    fun = lambda x: (x * x, {"double": 2 * x, "three": 3})
    (value, aux), gradient = xlamini.value_and_grad(fun, has_aux=True)(3.0)
    assert (float(value), float(gradient), float(aux["double"]), int(aux["three"])) == (9, 6, 6, 3)
    gradient, aux = xlamini.grad(fun, has_aux=True)(3.0)
    assert (float(gradient), float(aux["double"])) == (6, 6)
    assert float(xlamini.jit(xlamini.grad(fun, has_aux=True))(3.0)[1]["double"]) == 6


def test_holomorphic_functions() -> None:
    assert_close(xlamini.grad(lambda z: z * z * z, holomorphic=True)(1 + 2j), 3 * (1 + 2j) ** 2, 1e-6)
    with pytest.raises(TypeError, match="holomorphic=True takes complex"):
        xlamini.grad(lambda z: z, holomorphic=True)(1.0)
    with pytest.raises(TypeError, match="real-valued outputs"):
        xlamini.grad(lambda z: z * z)(1j)


def test_real_functions_of_complex_numbers() -> None:
    assert_close(xlamini.grad(lambda z: lax.real(z * z))(1 + 2j), 2 * (1 + 2j), 0)


def test_integers_have_gradients_of_float0() -> None:
    gradient = xlamini.grad(lambda x, n: x * n, argnums=(0, 1), allow_int=True)(2.0, 3)
    assert_close(gradient[0], 3, 0)
    assert gradient[1].dtype == float0 and gradient[1].shape == ()
    with pytest.raises(TypeError, match="allow_int=True"):
        xlamini.grad(lambda n: n * 1.0)(3)


def test_outputs_that_do_not_depend_on_the_argument() -> None:
    assert float(xlamini.grad(lambda x: 3.0)(1.0)) == 0
    assert float(xlamini.grad(lambda x: x)(1.0)) == 1
    assert float(xlamini.grad(lambda x: lax.stop_gradient(x) * x)(3.0)) == 3
    assert float(xlamini.grad(lambda x: lax.floor(x))(1.5)) == 0
    assert_close(xlamini.grad(lambda x: F32(2))(RAMP), 0 * RAMP, 0)


def test_gradients_of_gradients() -> None:
    fun = lambda x: x**4
    for _ in range(4):
        fun = xlamini.grad(fun)
    assert float(fun(2.0)) == 24
    assert float(xlamini.jit(fun)(2.0)) == 24


def test_gradients_over_outer_gradients_keep_apart() -> None:
    def outer(x: Any) -> Any:
        return x * xlamini.grad(lambda y: x * y * y)(1.0) + xlamini.grad(lambda y: x)(2.0)

    assert float(xlamini.grad(outer)(3.0)) == 12  # d/dx of x * 2x


@pytest.mark.full
def test_dtypes_of_gradients() -> None:
    for dtype in ("bfloat16", "float16", "float32"):
        x = lax.convert_element_type(2.0, dtype)
        assert xlamini.grad(lambda x: lax.convert_element_type(x * x * 1.5, "float32"))(x).dtype == dtype


# --- jvp and linearize


def test_jvp_of_trees_and_zero_tangents() -> None:
    fun = lambda d, n: ({"y": d["x"] * d["x"]}, n, 3.0)
    outs, tangents = xlamini.jvp(fun, ({"x": RAMP}, 2), ({"x": np.ones(3, F32)}, np.zeros((), float0)))
    assert_close(outs[0]["y"], RAMP * RAMP, 0)
    assert_close(tangents[0]["y"], 2 * RAMP, 0)
    assert tangents[1].dtype == float0
    assert_close(tangents[2], 0, 0)


def test_jvp_with_auxiliary_data() -> None:
    out, tangent, aux = xlamini.jvp(lambda x: (x * x, x + 1), (3.0,), (2.0,), has_aux=True)
    assert (float(out), float(tangent), float(aux)) == (9, 12, 4)


@pytest.mark.parametrize(
    "primals, tangents, error",
    [
        ((1.0,), (1.0, 2.0), "structure"),
        ((RAMP,), (RAMP[:2],), "shape"),
        ((RAMP,), (np.ones(3, np.float16),), "float16"),
        ((1,), (1,), "float0"),
        (1.0, 1.0, "tuple or list"),
    ],
)
def test_tangents_that_do_not_fit(primals: Any, tangents: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        xlamini.jvp(lambda *x: x[0] * 1.0, primals, tangents)


def test_linearize_evaluates_the_function_once() -> None:
    calls = []
    out, push = xlamini.linearize(lambda x, y: (calls.append(1), x * y)[1], 3.0, 4.0)
    assert float(out) == 12
    assert [float(push(1.0, 0.0)), float(push(0.0, 2.0))] == [4, 6]
    assert len(calls) == 1


def test_linear_maps_and_pullbacks_go_through_jit() -> None:
    push = xlamini.jit(lambda x: xlamini.linearize(lambda y: y * y, x)[1])(3.0)
    pull = xlamini.jit(lambda x: xlamini.vjp(lambda y: {"z": y * y}, x)[1])(3.0)
    assert (float(push(1.0)), float(pull({"z": F32(1)})[0])) == (6, 6)
    assert float(xlamini.jit(lambda p, c: p({"z": c})[0])(pull, F32(2))) == 12


def test_residuals_do_not_follow_the_callers_array() -> None:
    x = RAMP.copy()
    _, pull = xlamini.vjp(lambda x: x * x, x)
    _, push = xlamini.linearize(lambda x: x * x, x)
    x[:] = 100
    assert_close(pull(np.ones(3, F32))[0], 2 * RAMP, 0)
    assert_close(push(np.ones(3, F32)), 2 * RAMP, 0)


def test_residuals_are_not_copied() -> None:
    x, y = xlamini.device_put(RAMP), xlamini.device_put(2 * RAMP)
    out, pull = xlamini.vjp(lambda x, y: lax.exp(x * y), x, y)
    kept = {r.unsafe_buffer_pointer() for r in xlamini.tree.leaves(pull)}
    assert kept == {v.unsafe_buffer_pointer() for v in (out, x, y)}


# --- vjp and linear_transpose


def test_vjp_of_trees() -> None:
    out, pull = xlamini.vjp(lambda a, b: {"u": a["x"] * b, "n": 3}, {"x": RAMP}, 2.0)
    cotangents = pull({"u": np.ones(3, F32), "n": np.zeros((), float0)})
    assert_close(out["u"], 2 * RAMP, 0)
    assert_close(cotangents[0]["x"], np.full(3, 2), 0)
    assert_close(cotangents[1], 6, 0)


def test_vjp_with_auxiliary_data() -> None:
    out, pull, aux = xlamini.vjp(lambda x: (x * x, {"a": x + 1}), 3.0, has_aux=True)
    assert (float(out), float(pull(F32(2))[0]), float(aux["a"])) == (9, 12, 4)


def test_cotangents_that_do_not_fit() -> None:
    _, pull = xlamini.vjp(lambda x: (x, x), RAMP)
    with pytest.raises(ValueError, match="structure"):
        pull(RAMP)
    with pytest.raises(TypeError, match="one type"):
        pull((RAMP, RAMP[:1]))


def test_one_output_may_be_an_input_twice_and_a_number() -> None:
    _, pull = xlamini.vjp(lambda x: (x, x, 2.0, 3 * x), 1.0)
    assert float(pull((F32(1), F32(10), F32(100), F32(1000)))[0]) == 3011


def test_linear_transpose() -> None:
    captured = xlamini.device_put(2 * RAMP)
    transposed = xlamini.linear_transpose(lambda x, y: (captured * x - y, y[0]), RAMP, RAMP)
    x_ct, y_ct = transposed((RAMP, F32(10)))
    assert_close(x_ct, 2 * RAMP * RAMP, 0)
    assert_close(y_ct, -RAMP + np.array([10, 0, 0]), 0)
    assert int(xlamini.linear_transpose(lambda n: 3 * n, 1)(2)[0]) == 6


def test_functions_that_are_not_linear_have_no_transpose() -> None:
    with pytest.raises(TypeError, match="must be linear"):
        xlamini.linear_transpose(lambda x: x * x, 1.0)(1.0)
    with pytest.raises(TypeError, match="output is"):
        xlamini.linear_transpose(lambda x: 2 * x, RAMP)(RAMP[:2])


# --- whole derivatives


def test_jacobians_of_trees() -> None:
    fun = lambda d: {"p": d["a"] * d["b"], "s": d["b"] * d["b"]}
    point = {"a": RAMP, "b": F32(2)}
    for jacobian in (xlamini.jacfwd, xlamini.jacrev, xlamini.jacobian):
        found = jacobian(fun)(point)
        assert_close(found["p"]["a"], 2 * np.eye(3), 0)
        assert_close(found["p"]["b"], RAMP, 0)
        assert_close(found["s"]["a"], np.zeros(3), 0)
        assert_close(found["s"]["b"], 4, 0)


@pytest.mark.full
def test_jacobians_in_several_arguments() -> None:
    for jacobian in (xlamini.jacfwd, xlamini.jacrev):
        found = jacobian(lambda x, y: x * y, argnums=(1, 0))(RAMP, 2 * RAMP)
        assert_close(found[0], np.diag(RAMP), 0)
        assert_close(found[1], np.diag(2 * RAMP), 0)
        out, aux = jacobian(lambda x: (x * x, x), has_aux=True)(RAMP)
        assert_close(out, 2 * np.diag(RAMP), 0)
        assert_close(aux, RAMP, 0)


@pytest.mark.full
def test_hessians() -> None:
    fun = lambda d: total(d["a"] * d["a"] * d["a"]) * d["b"]
    found = xlamini.hessian(fun)({"a": RAMP, "b": F32(2)})
    assert_close(found["a"]["a"], np.diag(12 * RAMP), 0)
    assert_close(found["a"]["b"], 3 * RAMP * RAMP, 0)
    assert_close(found["b"]["b"], 0, 0)
    assert_close(xlamini.jit(xlamini.hessian(fun))({"a": RAMP, "b": F32(2)})["b"]["a"], 3 * RAMP * RAMP, 0)


# --- Python control flow on values


def branching(x: Any) -> Any:
    return x**3 if x > 0 else -x


def halving(x: Any) -> Any:
    while x > 1:
        x = x / 2
    return x


def indexing(x: Any) -> Any:
    values = [x, x * x, x * x * x]
    return values[int(x)] * len(range(operator.index(int(x) + 1)))


def rounding_up(x: Any) -> Any:
    return x * math.ceil(float(lax.floor(x)) + 0.5) + np.asarray(lax.stop_gradient(x)) * 0


CONTROL_FLOW = [
    (branching, 2.0, 12.0),
    (branching, -2.0, -1.0),
    (halving, 12.0, 1 / 16),
    (indexing, 1.5, 6.0),
    (rounding_up, 2.5, 3.0),
]


@pytest.mark.parametrize("fun, x, slope", CONTROL_FLOW)
def test_python_may_ask_for_numbers(fun: Any, x: float, slope: float) -> None:
    assert_close(xlamini.grad(fun)(x), slope, 1e-6)
    assert_close(xlamini.jvp(fun, (x,), (1.0,))[1], slope, 1e-6)
    assert_close(xlamini.vjp(fun, x)[1](F32(1))[0], slope, 1e-6)
    assert_close(xlamini.linearize(fun, x)[1](1.0), slope, 1e-6)
    assert_close(xlamini.grad(lambda y: xlamini.jvp(fun, (y,), (y,))[0])(x), slope, 1e-6)


def test_nested_gradients_may_ask_for_numbers() -> None:
    assert float(xlamini.grad(xlamini.grad(branching))(2.0)) == 12
    assert float(xlamini.grad(lambda x: xlamini.grad(lambda y: branching(x * y))(1.0))(2.0)) == 36


def test_numbers_of_what_a_nested_jit_computed() -> None:
    square = xlamini.jit(lambda x: x * x)
    assert float(xlamini.grad(lambda x: x * square(x) if square(x) > 4 else x)(3.0)) == 27


def test_unmapped_arguments_have_numbers_under_vmap() -> None:
    out = xlamini.vmap(lambda x, up: x + 1 if up > 0 else x, in_axes=(0, None))(RAMP, 1.0)
    assert_close(out, RAMP + 1, 0)


@pytest.mark.parametrize("wrap", [xlamini.jit, xlamini.vmap, lambda f: xlamini.grad(xlamini.jit(f))])
def test_there_is_no_number_under_jit_and_for_mapped_values(wrap: Any) -> None:
    with pytest.raises(xlamini.errors.TracerBoolConversionError, match="argument 'x'"):
        wrap(branching)(RAMP if wrap is xlamini.vmap else 2.0)
