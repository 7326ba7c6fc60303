"""Linear maps of programs: jvp of vjp and the reverse, transposes, float0, complex functions, Jacobians of trees.

Numbers, dtypes and weak types that are no plain mathematics are JAX 0.10.2's.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import float0, lax, numpy as jnp

grad, jit, vmap, jvp, vjp = xlamini.grad, xlamini.jit, xlamini.vmap, xlamini.jvp, xlamini.vjp
jacfwd, jacrev, linearize = xlamini.jacfwd, xlamini.jacrev, xlamini.linearize
linear_transpose = xlamini.linear_transpose
NO_TANGENT = np.zeros((), float0)
COMPLEX = np.array([1 + 2j, 3 - 1j], "complex64")
DIRECTION = np.array([1.0, -1.0], "float32")


def energy(x: Any) -> Any:
    return jnp.sum(jnp.sin(x) * x)


def curvature(x: Any) -> np.ndarray:
    """The diagonal of energy's Hessian."""
    return 2 * np.cos(np.asarray(x, "float64")) - np.asarray(x, "float64") * np.sin(np.asarray(x, "float64"))


def typed(x: Any) -> tuple:
    return x.dtype.name, np.shape(x), getattr(x, "weak_type", False)


# --- Hessian-vector products, and nested linear maps

HVP = {
    "forward over reverse": lambda x, v: jvp(grad(energy), (x,), (v,))[1],
    "reverse over forward": lambda x, v: grad(lambda x: jvp(energy, (x,), (v,))[1])(x),
    "reverse over reverse": lambda x, v: grad(lambda x: jnp.vdot(grad(energy)(x), v))(x),
    "vjp of grad": lambda x, v: vjp(grad(energy), x)[1](v)[0],
    "linearize of grad": lambda x, v: linearize(grad(energy), x)[1](v),
    "hessian": lambda x, v: xlamini.hessian(energy)(x) @ v,
    "jacrev of jacfwd": lambda x, v: jacrev(jacfwd(energy))(x) @ v,
    "grad of linearize": lambda x, v: grad(lambda x: linearize(energy, x)[1](v))(x),
    "grad of vjp": lambda x, v: grad(lambda x: jnp.vdot(vjp(energy, x)[1](1.0)[0], v))(x),
    "transpose of linearize of grad": lambda x, v: linear_transpose(linearize(grad(energy), x)[1], x)(v)[0],
}


@pytest.mark.parametrize("product", HVP.values(), ids=HVP)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_hessian_vector_products(wrap: Any, product: Any) -> None:
    x = jnp.array([0.5, 2.0])
    np.testing.assert_allclose(wrap(product)(x, DIRECTION), curvature(x) * DIRECTION, rtol=2e-6)


@pytest.mark.parametrize("product", HVP.values(), ids=HVP)
def test_hessian_vector_products_of_a_batch(product: Any) -> None:
    x = jnp.array([[0.5, 2.0], [1.0, -1.0]])
    np.testing.assert_allclose(vmap(product, (0, None))(x, DIRECTION), curvature(x) * DIRECTION, rtol=2e-6)


def test_a_linear_map_is_its_own_derivative() -> None:
    push = linearize(energy, jnp.ones(2))[1]
    out, tangent = jvp(push, (jnp.ones(2),), (DIRECTION,))
    np.testing.assert_allclose(tangent, push(DIRECTION), atol=1e-6)
    np.testing.assert_allclose(out, push(jnp.ones(2)))
    pull = vjp(jnp.sin, 1.0)[1]
    assert float(jvp(pull, (1.0,), (3.0,))[1][0]) == pytest.approx(3 * np.cos(1.0))
    assert float(vjp(pull, 1.0)[1]((2.0,))[0]) == pytest.approx(2 * np.cos(1.0))
    assert float(linearize(linearize(jnp.sin, 1.0)[1], 5.0)[1](2.0)) == pytest.approx(2 * np.cos(1.0))


# --- linear_transpose


def test_transposes_of_trees() -> None:
    mixed = lambda d, y: (d["a"] * 3 - y, y * 2)
    bars = linear_transpose(mixed, {"a": jnp.ones(2)}, jnp.ones(2))((jnp.ones(2), jnp.ones(2)))
    np.testing.assert_array_equal(bars[0]["a"], [3.0, 3.0])
    np.testing.assert_array_equal(bars[1], [1.0, 1.0])
    unused = linear_transpose(lambda x, y: x * 2, 1.0, jnp.ones(3))(1.0)
    np.testing.assert_array_equal(unused[1], np.zeros(3))
    assert float(linear_transpose(lambda x: jnp.zeros(3), 1.0)(jnp.ones(3))[0]) == 0.0


def test_transposes_hold_fixed_what_they_close_over() -> None:
    of_matrix = lambda w: linear_transpose(lambda x: w @ x, jnp.ones(3))(jnp.ones(2))[0]
    w = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(jit(of_matrix)(w), w.sum(0))
    np.testing.assert_array_equal(grad(lambda w: of_matrix(w)[0])(w), [[1, 0, 0], [1, 0, 0]])
    of_batch = vmap(lambda w, c: linear_transpose(lambda x: w * x, 1.0)(c)[0])(w[0], w[1])
    np.testing.assert_array_equal(of_batch, [0, 4, 10])


@pytest.mark.parametrize("wrap", [jit, xlamini.checkpoint, lambda f: f])
def test_transposes_of_calls(wrap: Any) -> None:
    assert float(linear_transpose(wrap(lambda x: x * 3), 1.0)(2.0)[0]) == 6.0
    assert float(linear_transpose(linear_transpose(wrap(lambda x: x * 3), 1.0), 1.0)((2.0,))[0]) == 6.0


def test_transposes_by_types_alone_and_of_other_dtypes() -> None:
    struct = xlamini.ShapeDtypeStruct((3,), "float32")
    np.testing.assert_array_equal(linear_transpose(lambda x: x * 2.0, struct)(jnp.ones(3))[0], [2, 2, 2])
    assert typed(linear_transpose(lambda x: x * 2, np.int32(1))(np.int32(1))[0]) == ("int32", (), False)
    assert complex(linear_transpose(lambda z: (1 + 2j) * z, 1j)(1.0 + 0j)[0]) == 1 + 2j
    assert complex(linear_transpose(jnp.conj, 1j)(1 + 2j)[0]) == 1 - 2j
    assert float(linear_transpose(lambda x: x * (1 + 2j), 1.0)(1 + 1j)[0]) == -1.0
    assert linear_transpose(lambda x: x.astype("float16"), jnp.ones(2))(jnp.ones(2, "float16"))[0].dtype == np.float32


# --- float0


def times(x: Any, n: Any) -> Any:
    return x * n, n


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_integers_have_tangents_of_float0(wrap: Any) -> None:
    outs, tangents = wrap(lambda x, n: jvp(times, (x, n), (1.0, NO_TANGENT)))(2.0, 3)
    assert ([float(x) for x in outs], float(tangents[0])) == ([6.0, 3.0], 3.0)
    assert typed(tangents[1])[1] == () and tangents[1].dtype == float0
    pushed = wrap(lambda x, n: linearize(times, x, n)[1](1.0, NO_TANGENT))(2.0, 3)
    assert float(pushed[0]) == 3.0 and pushed[1].dtype == float0


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("ct", [NO_TANGENT, 0, 1.0])
def test_integers_have_cotangents_of_float0(wrap: Any, ct: Any) -> None:
    bars = wrap(lambda x, n: vjp(times, x, n)[1]((1.0, ct)))(2.0, 3)
    assert float(bars[0]) == 3.0 and bars[1].dtype == float0


def test_gradients_of_integers() -> None:
    gradient = grad(lambda d: (d["i"] * d["x"]).sum(), allow_int=True)
    given = {"i": jnp.arange(3), "x": jnp.ones(3)}
    for found in (gradient(given), jit(gradient)(given)):
        assert (found["i"].dtype, found["i"].shape) == (float0, (3,))
        np.testing.assert_array_equal(found["x"], [0, 1, 2])
    batched = vmap(grad(lambda x: x * 2.0, allow_int=True))(jnp.arange(3))
    assert (batched.dtype, batched.shape) == (float0, (3,))
    assert grad(lambda b: jnp.where(b, 1.0, 2.0), allow_int=True)(True).dtype == float0
    second = grad(lambda x, n: grad(lambda x, n: x**3 * n, (0, 1), allow_int=True)(x, n)[0], (0, 1), allow_int=True)
    assert (float(second(2.0, 3)[0]), second(2.0, 3)[1].dtype) == (36.0, float0)


def test_float0_passes_through_programs() -> None:
    zeros = np.zeros(3, float0)
    assert jit(lambda t: t)(zeros).dtype == float0
    assert jit(lambda t: (t, 1.0))(zeros)[0].shape == (3,)
    assert vmap(lambda t: t)(zeros).shape == (3,)
    for _ in range(2):  # the second call goes by what the first one left
        assert float(jit(lambda x, t: (x, t))(2.0, zeros)[0]) == 2.0


def test_jacobians_of_integers_are_zeros_of_their_dtype() -> None:
    assert typed(jacrev(lambda x: x * 2.0, allow_int=True)(jnp.arange(3))) == ("int32", (3, 3), False)
    blocks = jacrev(lambda d: d["i"] * d["x"], allow_int=True)({"i": jnp.arange(3), "x": jnp.ones(3)})
    np.testing.assert_array_equal(blocks["x"], np.diag([0, 1, 2]))
    np.testing.assert_array_equal(blocks["i"], np.zeros((3, 3), int))
    whole, doubled = jacfwd(lambda x: (x.astype(int), x * 2))(jnp.ones(2))
    assert typed(whole) == ("int32", (2, 2), False)
    np.testing.assert_array_equal(doubled, 2 * np.eye(2))


# --- complex functions


@pytest.mark.full
def test_holomorphic_functions() -> None:
    assert complex(grad(lambda z: z**3, holomorphic=True)(1 + 2j)) == pytest.approx(3 * (1 + 2j) ** 2)
    for jacobian in (jacfwd, jacrev):
        np.testing.assert_allclose(jacobian(lambda z: z**2, holomorphic=True)(COMPLEX), np.diag(2 * COMPLEX))
    hessian = xlamini.hessian(lambda z: (z**3).sum(), holomorphic=True)(COMPLEX)
    np.testing.assert_allclose(hessian, np.diag(6 * COMPLEX), rtol=1e-6)


@pytest.mark.full
def test_functions_that_are_not_holomorphic() -> None:
    square = lambda z: jnp.sum(jnp.abs(z) ** 2)
    np.testing.assert_allclose(grad(square)(COMPLEX), 2 * np.conj(COMPLEX), rtol=1e-6)
    np.testing.assert_allclose(jacrev(lambda z: jnp.abs(z) ** 2)(COMPLEX), np.diag(2 * np.conj(COMPLEX)), rtol=1e-6)
    np.testing.assert_array_equal(jacfwd(lambda x: x * (1 + 2j))(jnp.ones(2)), np.eye(2) * (1 + 2j))
    assert complex(vjp(jnp.conj, 1 + 2j)[1](1j)[0]) == -1j
    assert complex(vjp(jnp.imag, 1 + 2j)[1](3.0)[0]) == -3j
    assert float(vjp(lambda x: x * (1 + 2j), 1.0)[1](1 + 1j)[0]) == -1.0
    assert complex(jvp(lambda z: z**2, (1 + 2j,), (1j,))[1]) == 2j * (1 + 2j)
    assert float(jvp(jnp.imag, (1 + 2j,), (3 + 4j,))[1]) == 4.0
    assert float(linearize(jnp.abs, 3 + 4j)[1](1 + 1j)) == pytest.approx(1.4)


# --- Jacobians of trees

TREE = {"x": jnp.array([1.0, 2.0]), "y": jnp.ones((2, 2))}


def of_tree(p: Any, q: Any) -> Any:
    return {"a": p["x"] * q, "b": jnp.sum(p["y"]) * p["x"]}


@pytest.mark.parametrize("jacobian", [jacfwd, jacrev, lambda *a, **k: jit(jacfwd(*a, **k))])
def test_jacobians_of_trees(jacobian: Any) -> None:
    found = jacobian(of_tree)(TREE, 3.0)
    np.testing.assert_array_equal(found["a"]["x"], 3 * np.eye(2))
    np.testing.assert_array_equal(found["a"]["y"], np.zeros((2, 2, 2)))
    np.testing.assert_array_equal(found["b"]["x"], 4 * np.eye(2))
    np.testing.assert_array_equal(found["b"]["y"], np.ones((2, 2, 2)) * np.array([1, 2])[:, None, None])
    of_both = jacobian(of_tree, argnums=(0, 1))(TREE, 3.0)
    np.testing.assert_array_equal(of_both["a"][1], [1, 2])
    assert isinstance(jacobian(of_tree, argnums=[1])(TREE, 3.0)["a"], tuple)
    np.testing.assert_array_equal(jacobian(of_tree, argnums=-1)(TREE, 3.0)["b"], [0, 0])


@pytest.mark.parametrize("jacobian", [jacfwd, jacrev])
def test_jacobians_of_jacobians_with_aux_and_of_batches(jacobian: Any) -> None:
    cubes = jacobian(jacobian(lambda x: x**3))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(cubes, 6 * np.einsum("ij,jk,j->ijk", np.eye(2), np.eye(2), [1, 2]))
    found, aux = jacobian(lambda p, q: (p["x"] * q, {"kept": p["y"], "name": "text"}), has_aux=True)(TREE, 2.0)
    np.testing.assert_array_equal(found["x"], 2 * np.eye(2))
    assert aux["name"] == "text" and aux["kept"].shape == (2, 2)
    np.testing.assert_allclose(vmap(jacobian(jnp.sin))(jnp.arange(3.0)), np.cos(np.arange(3.0)), rtol=1e-6)
    half = jacobian(lambda x: x.astype("float32") * 2)(jnp.ones(2, "float16"))
    assert half.dtype == (np.float32 if jacobian is jacfwd else np.float16)


@pytest.mark.full
def test_hessians_of_trees() -> None:
    found = xlamini.hessian(lambda p: jnp.sum(p["x"] ** 2) * jnp.sum(p["y"]))(TREE)
    np.testing.assert_array_equal(found["x"]["x"], 8 * np.eye(2))
    np.testing.assert_array_equal(found["x"]["y"][:, 0, 0], 2 * TREE["x"])
    assert float(xlamini.hessian(lambda x, y: x**2 * y, (0, 1))(1.0, 2.0)[0][1]) == 2.0
    value, aux = xlamini.hessian(lambda x: (x**2, (x, "text")), has_aux=True)(1.0)
    assert (float(value), aux[1]) == (2.0, "text")


# --- auxiliary data

AUX = {
    "grad": lambda f: grad(f, has_aux=True)(1.0)[1],
    "value_and_grad": lambda f: xlamini.value_and_grad(f, has_aux=True)(1.0)[0][1],
    "vjp": lambda f: vjp(f, 1.0, has_aux=True)[2],
    "jvp": lambda f: jvp(f, (1.0,), (1.0,), has_aux=True)[2],
    "linearize": lambda f: linearize(f, 1.0, has_aux=True)[2],
    "jacrev": lambda f: jacrev(f, has_aux=True)(1.0)[1],
    "jacfwd": lambda f: jacfwd(f, has_aux=True)(1.0)[1],
}


@pytest.mark.parametrize("of", AUX.values(), ids=AUX)
def test_auxiliary_data_that_are_no_arrays_come_back_as_they_are(of: Any) -> None:
    ndarray, thing = np.ones(2), object()
    plain = {"n": 3, "b": True, "none": None, "text": "a", "thing": thing, "np": ndarray}
    aux = of(lambda x: (x * 2, {**plain, "x": x + 1}))
    assert (aux["n"], aux["b"], aux["none"], aux["text"]) == (3, True, None, "a")
    assert type(aux["n"]) is int and aux["b"] is True and aux["thing"] is thing and aux["np"] is ndarray
    assert float(aux["x"]) == 2.0


def test_auxiliary_data_inside_jit_and_as_a_list() -> None:
    found = jit(lambda x: grad(lambda x: [x * 2, ("a", x)], has_aux=True)(x)[1][1])(3.0)
    assert float(found) == 3.0
    assert float(vmap(lambda x: grad(lambda x: (x * 2, "a"), has_aux=True)(x)[0])(jnp.ones(2))[0]) == 2.0


# --- types of what comes back


def test_weak_types() -> None:
    assert typed(grad(lambda x: x * jnp.float32(2))(1.0)) == ("float32", (), True)
    assert typed(grad(lambda x: x * 2)(jnp.float32(1))) == ("float32", (), False)
    assert typed(jvp(lambda a: a * 2, (jnp.float32(1.0),), (1.0,))[1]) == ("float32", (), False)
    assert typed(jvp(lambda a: a * 2, (1.0,), (jnp.float32(1),))[1]) == ("float32", (), True)
    assert typed(jvp(vjp(jnp.sin, 1.0)[1], (1.0,), (3.0,))[1][0]) == ("float32", (), True)
    half = jnp.ones(2, "bfloat16")
    assert typed(vjp(lambda a: a * 2, half)[1](half)[0]) == ("bfloat16", (2,), False)


def test_gradients_of_numpy_scalars() -> None:
    assert typed(grad(lambda x: x * 2)(np.float64(1))) == ("float32", (), False)
    assert typed(grad(lambda x: x.sum())(np.ones(2))) == ("float32", (2,), False)


def test_cotangents_of_python_numbers() -> None:
    assert float(vjp(lambda x: x * 2, jnp.ones(()))[1](1)[0]) == 2.0
    assert typed(vjp(lambda a, b: a, 1.0, jnp.ones(3))[1](1.0)[1]) == ("float32", (3,), False)
    assert vjp(lambda: 3.0)[1](1.0) == ()


# --- fwd_and_bwd


@pytest.mark.parametrize("jitted", [True, False])
def test_fwd_and_bwd(jitted: bool) -> None:
    fwd, bwd = xlamini.fwd_and_bwd(lambda x, y: (x * y, {"a": x}), argnums=0, jitted=jitted)
    out, residuals = fwd(2.0, 3.0)
    assert (float(out[0]), float(out[1]["a"]), float(bwd(residuals, (1.0, {"a": 2.0})))) == (6.0, 2.0, 5.0)
    fwd, bwd = xlamini.fwd_and_bwd(lambda x, y: (x * y, {"a": x}), argnums=(1, 0), has_aux=True, jitted=jitted)
    out, residuals, aux = fwd(2.0, 3.0)
    assert (float(aux["a"]), [float(x) for x in bwd(residuals, 1.0)]) == (2.0, [2.0, 3.0])


def test_the_backward_pass_is_compiled_once() -> None:
    fwd, bwd = xlamini.fwd_and_bwd(lambda x, k=3.0: jnp.sin(x) * k, argnums=0)
    for i in range(3):
        _, residuals = fwd(jnp.float32(i), k=2.0)
        assert float(bwd(residuals, jnp.float32(1))) == pytest.approx(2 * np.cos(i))
    assert (fwd._cache_size(), bwd._cache_size()) == (1, 1)
    batched = vmap(lambda x: bwd(fwd(x)[1], 1.0))(jnp.arange(3.0))
    np.testing.assert_allclose(batched, 3 * np.cos(np.arange(3.0)), rtol=1e-6)
    assert float(grad(lambda x: bwd(fwd(x)[1], 1.0))(1.0)) == pytest.approx(-3 * np.sin(1.0))


def test_derivatives_that_nobody_needs_are_not_asked_for() -> None:
    """A dead equation without a derivative does not keep an eager program from running."""
    made = xlamini.custom_vjp(lambda x: x)
    made.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    assert float(jvp(lambda x: (made(x), x * 2)[1], (1.0,), (1.0,))[1]) == 2.0
    assert float(jvp(lambda x: lax.stop_gradient(made(x)) + x, (1.0,), (1.0,))[1]) == 1.0
