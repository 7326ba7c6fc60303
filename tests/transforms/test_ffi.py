"""ffi_call: compiled functions in programs: values, attributes, transformations, side effects."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.ffi_library import library, needs_compiler
from xlamini import ShapeDtypeStruct, effects_barrier, ffi, grad, jit, lax, numpy as jnp, vmap
from xlamini.core.program.avals import ShapedArray
from xlamini.core.program.bindable import primitives
from xlamini.core.program.primitive import Primitive
from xlamini.errors import JaxRuntimeError
from xlamini.ffi import ffi_call

X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)
Y = np.arange(4, dtype=np.float32)
EPS = np.float32(0.25)
METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")
SCALAR = ShapeDtypeStruct((), "float32")

pytestmark = [needs_compiler, pytest.mark.sample(3)]


@pytest.fixture(autouse=True)
def handlers() -> Iterator[Any]:
    yield library()
    effects_barrier()


def like(x: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(np.shape(x), x.dtype)


def rms(x: Any, **options: Any) -> Any:
    return ffi_call("test_rms", like(x), **options)(x, eps=EPS, mode="rms")


def rms_in_numpy(x: Any) -> Any:
    x = np.asarray(x, np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS)


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found, np.float64), wanted, rtol=1e-6, atol=1e-6)


# Values, results, attributes.


@pytest.mark.parametrize("mode", [lambda f: f, jit, lambda f: jit(jit(f, inline=True))], ids=["eager", "jit", "inline"])
def test_values(mode: Any) -> None:
    found = mode(lambda x: rms(x * 2) + 1)(X)
    assert (found.dtype, found.shape) == (jnp.float32, X.shape)
    close(found, rms_in_numpy(X * 2) + 1)


def test_results_come_as_they_were_asked_for() -> None:
    same = ShapeDtypeStruct((), "bool")
    for kind in (tuple, list):
        found = ffi_call("test_copy", kind([like(X), same]))(X)
        assert type(found) is kind and len(found) == 2
        np.testing.assert_array_equal(found[0], X)
    assert xlamini.eval_shape(lambda x: ffi_call("test_rms", [like(x)])(x), X) == [like(X)]
    assert ffi_call("test_note", ())(1.0) == ()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "complex64", "int4"])
def test_dtypes(dtype: str) -> None:
    x = jnp.asarray([[0, 1], [1, 1]]).astype(dtype)
    found, _ = ffi_call("test_copy", (ShapeDtypeStruct(x.shape, x.dtype), ShapeDtypeStruct((), "bool")))(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(found), np.asarray(x))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_scalars_and_empty_arrays(shape: tuple[int, ...]) -> None:
    types = (ShapeDtypeStruct(shape, "float32"), ShapeDtypeStruct((), "bool"))
    found, _ = ffi_call("test_copy", types)(jnp.ones(shape))
    np.testing.assert_array_equal(found, np.ones(shape))


def test_attributes_arrive() -> None:
    call = functools.partial(ffi_call("test_attributes", ShapeDtypeStruct((11,), "float32")), byte=np.uint8(200))
    found = call(
        flag=True, number=-3, real=0.5, text='a"\\\né', ints=np.int32([7, 8, 9])[::2],
        floats=np.float32([[1, 2], [3, 4]]), dtype=np.dtype("bfloat16"), inner={"scale": np.float32("inf")},
    )  # fmt: skip
    assert found.tolist() == [1, -3, 0.5, 6, 2, 9, 4, 3, 16, 200, np.inf]


def test_attributes_are_part_of_the_program() -> None:
    """An int, a float and a bool of one value are three attributes, and a later call does not get the earlier one's."""
    with pytest.raises(JaxRuntimeError, match="Wrong scalar data type: expected F32 but got F64"):
        ffi_call("test_rms", like(X))(X, eps=0.25, mode="rms")
    with pytest.raises(JaxRuntimeError, match="expected F32 but got S64"):
        ffi_call("test_rms", like(X))(X, eps=1, mode="rms")
    for eps in (1, 4, 0):
        found = ffi_call("test_rms", like(X))(X, eps=np.float32(eps), mode="rms")
        close(found, X / np.sqrt((X * X).mean(-1, keepdims=True) + eps))


def test_the_jaxpr_shows_target_and_attributes() -> None:
    text = str(xlamini.make_jaxpr(lambda x: ffi_call("test_rms", like(x))(x, eps=EPS, mode="rms"))(X))
    assert 'attributes={eps = 0.25 : f32, mode = "rms"}' in text and "target_name=test_rms" in text


def test_layouts() -> None:
    """A column-major operand's memory, read row by row, is that of the transposed matrix."""
    types = (ShapeDtypeStruct((4, 3), "float32"), ShapeDtypeStruct((), "bool"))
    np.testing.assert_array_equal(ffi_call("test_copy", types, input_layouts=[(1, 0)])(X)[0], X.T)
    np.testing.assert_array_equal(ffi_call("test_copy", types, output_layouts=[[0, 1], ()])(X)[0], X.reshape(4, 3))
    column_major = ffi_call("test_copy", types, output_layouts=[(1, 0), None])(X)[0]
    np.testing.assert_array_equal(column_major, X.reshape(-1).reshape((4, 3), order="F"))


def test_aliases() -> None:
    call = ffi_call("test_copy", (like(X), ShapeDtypeStruct((), "bool")), input_output_aliases={0: 0})
    copied, same = jit(lambda x: call(x + 1))(X)
    assert same
    np.testing.assert_array_equal(copied, X + 1)
    x = jnp.asarray(X)
    np.testing.assert_array_equal(call(x)[0], X)
    np.testing.assert_array_equal(x, X)  # the caller's array is not overwritten
    assert not ffi_call("test_copy", (like(X), ShapeDtypeStruct((), "bool")))(X)[1]


def test_random_keys_pass_their_words() -> None:
    key = xlamini.random.key(7)
    call = ffi_call("test_copy", (ShapeDtypeStruct((2,), "uint32"), ShapeDtypeStruct((), "bool")))
    np.testing.assert_array_equal(jit(call)(key)[0], xlamini.random.key_data(key))


def test_state_is_made_once_for_each_executable() -> None:
    call = ffi_call("test_count", ShapeDtypeStruct((), "int32"), has_side_effect=True)
    one, other = jit(lambda: call()), jit(lambda: call() * 10)
    assert [int(one()) for _ in range(3)] == [1, 2, 3] and int(other()) == 10 and int(one()) == 4


def test_earlier_interfaces() -> None:
    assert float(ffi_call("test_twice", SCALAR, custom_call_api_version=1)(3.0)) == 6
    opaque = ffi_call("test_length_of_opaque", SCALAR, custom_call_api_version=3, legacy_backend_config='a"b')
    assert float(jit(opaque)(0.0)) == 3


# vmap.


def added(x: Any, y: Any, **options: Any) -> Any:
    return ffi_call("test_sum", like(x), **options)(x, y)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (2, 0), (2, None)])
def test_vmap(method: str, in_axes: tuple[int, int | None]) -> None:
    xs = np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 2
    f = vmap(functools.partial(added, vmap_method=method), in_axes)
    y = np.arange(np.delete(xs.shape, in_axes[0]).prod(), dtype=np.float32).reshape(np.delete(xs.shape, in_axes[0]))
    ys = y if in_axes[1] is None else np.stack([y + i for i in range(xs.shape[in_axes[0]])])
    wanted = np.moveaxis(xs, in_axes[0], 0) + ys
    for g in (f, jit(f)):
        np.testing.assert_array_equal(g(xs, ys), wanted)


def test_number_of_calls_under_vmap(handlers: Any) -> None:
    xs = jnp.ones((5, 3))
    for method in METHODS:
        before = handlers.count_of_sums()
        vmap(functools.partial(added, vmap_method=method), (0, None))(xs, xs[0]).block_until_ready()
        assert handlers.count_of_sums() - before == (5 if method.startswith("sequential") else 1)


def test_shapes_under_vmap() -> None:
    """What JAX passes: an unmapped operand has an axis of size 1, of the batch's size, or none."""
    wanted = {"expand_dims": (1, 3), "broadcast_all": (5, 3), "legacy_vectorized": (3,)}
    for method, shape in wanted.items():
        f = vmap(functools.partial(added, vmap_method=method), (0, None))
        call = xlamini.make_jaxpr(f)(np.ones((5, 3), np.float32), np.ones(3, np.float32)).jaxpr.eqns[-1]
        assert call.primitive.name == "ffi_call" and [v.aval.shape for v in call.invars] == [(5, 3), shape]


@pytest.mark.parametrize("method", METHODS)
def test_vmap_keeps_layouts_and_aliases(method: str) -> None:
    xs = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    options = {"vmap_method": method, "input_layouts": [(1, 0)], "output_layouts": [(1, 0), None]}
    call = ffi_call("test_copy", (like(xs[0]), ShapeDtypeStruct((), "bool")), input_output_aliases={0: 0}, **options)
    np.testing.assert_array_equal(jit(vmap(lambda x: call(x + 1)[0]))(xs), xs + 1)


def test_an_unmapped_operand_that_a_result_overwrites_is_repeated() -> None:
    f = vmap(lambda x, y: added(y, x, vmap_method="expand_dims", input_output_aliases={0: 0}), (0, None))
    np.testing.assert_array_equal(f(np.ones((3, 2), np.float32), np.float32([5, 6])), [[6, 7]] * 3)


def test_vmap_of_vmap_and_of_nothing() -> None:
    xs = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for method in ("sequential", "broadcast_all"):
        f = vmap(vmap(functools.partial(rms, vmap_method=method)))
        close(jit(f)(xs), rms_in_numpy(xs))
    np.testing.assert_array_equal(vmap(lambda x: x + added(Y, Y))(xs), xs + 2 * Y)


def test_vmap_without_a_method() -> None:
    with pytest.raises(NotImplementedError, match=r"ffi_call: under vmap .* FFI target test_rms: pass vmap_method"):
        vmap(rms)(X)


# Derivatives, loops.


@xlamini.custom_vjp
def norm(x: Any) -> Any:
    return rms(x, vmap_method="broadcast_all")


def norm_fwd(x: Any) -> tuple[Any, Any]:
    return norm(x), x


def norm_bwd(x: Any, ct: Any) -> tuple[Any]:
    return vjp_of_formula(x, ct)


def formula(x: Any) -> Any:
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + EPS)


def vjp_of_formula(x: Any, ct: Any) -> tuple[Any]:
    return xlamini.vjp(formula, x)[1](ct)


norm.defvjp(norm_fwd, norm_bwd)


def test_grad_with_custom_vjp() -> None:
    def loss(f: Any, x: Any) -> Any:
        return (f(x) ** 3).sum()

    wanted = grad(functools.partial(loss, formula))(X)
    close(grad(functools.partial(loss, norm))(X), wanted)
    close(jit(grad(functools.partial(loss, norm)))(X), wanted)
    close(vmap(grad(functools.partial(loss, norm)))(X), wanted)
    close(grad(lambda x: vmap(functools.partial(loss, norm))(x).sum())(X), wanted)
    close(grad(functools.partial(loss, xlamini.checkpoint(norm)))(X), wanted)


def test_jvp_with_custom_jvp() -> None:
    @xlamini.custom_jvp
    def f(x: Any) -> Any:
        return rms(x)

    f.defjvp(lambda primals, tangents: xlamini.jvp(formula, primals, tangents))
    close(xlamini.jvp(f, (X,), (X,))[1], xlamini.jvp(formula, (X,), (X,))[1])


@pytest.mark.parametrize("derivative", [
    lambda f, x: grad(lambda x: f(x).sum())(x),
    lambda f, x: xlamini.jvp(f, (x,), (x,)),
    lambda f, x: jit(grad(lambda x: f(x).sum()))(x),
    lambda f, x: xlamini.linear_transpose(f, x)(x),
])  # fmt: skip
def test_without_a_rule_there_is_no_derivative(derivative: Any) -> None:
    with pytest.raises(ValueError, match=r"FFI target test_rms cannot be differentiated; .* custom_vjp or custom_jvp"):
        derivative(rms, X)


def test_what_does_not_depend_on_the_argument_needs_no_derivative() -> None:
    close(grad(lambda x: (rms(X) * x).sum())(X), rms_in_numpy(X))
    close(grad(lambda x: (rms(lax.stop_gradient(x)) * x).sum())(X), rms_in_numpy(X))


def test_loops_and_branches() -> None:
    carry, ys = jit(lambda x: lax.scan(lambda c, row: (c + 1, rms(row + c)), 0.0, x))(X)
    assert float(carry) == 3
    close(ys, np.stack([rms_in_numpy(row + i) for i, row in enumerate(X)]))
    close(lax.fori_loop(0, 3, lambda i, x: rms(x), X), rms_in_numpy(rms_in_numpy(rms_in_numpy(X))))
    close(jit(lambda p, x: lax.cond(p, rms, lambda x: x, x))(True, X), rms_in_numpy(X))


# Side effects.


def note(x: Any) -> None:
    ffi_call("test_note", (), has_side_effect=True)(x)


def test_side_effects_happen_once_per_call(handlers: Any) -> None:
    handlers.take_noted()

    @jit
    def f(x: Any) -> Any:
        note(x)
        ffi_call("test_note", ())(x + 4)  # without side effect and unused: dropped
        return x * 2

    assert [float(f(1.0)), float(f(2.0))] == [2, 4]
    note(jnp.float32(3))
    effects_barrier()
    assert handlers.take_noted() == 123


def test_side_effects_in_a_loop_and_under_vmap(handlers: Any) -> None:
    handlers.take_noted()
    jit(lambda xs: lax.scan(lambda c, x: (c, note(x)), 0, xs))(jnp.float32([1, 2, 3]))
    effects_barrier()
    assert handlers.take_noted() == 123
    call = ffi_call("test_note", (), has_side_effect=True, vmap_method="sequential")
    vmap(lambda x: call(x))(jnp.float32([4, 5]))
    effects_barrier()
    assert handlers.take_noted() == 45


def test_a_failure_with_side_effects() -> None:
    f = jit(lambda x: ffi_call("test_rms", like(x), has_side_effect=True)(x, eps=EPS, mode="bad"))
    with pytest.raises(JaxRuntimeError, match="the mode must be rms, got bad"):
        f(X).block_until_ready()
    with contextlib.suppress(JaxRuntimeError):  # reported again if the program did not run in this thread
        effects_barrier()


# Targets of jaxlib, and the lowering rule.


def test_targets_of_jaxlib() -> None:
    a = np.float32([[4, 2], [2, 3]])
    types = (like(a), ShapeDtypeStruct((), "int32"))
    column_major = {"input_layouts": [(1, 0)], "output_layouts": [(1, 0), None]}
    factor, info = ffi_call("lapack_spotrf_ffi", types, **column_major)(a, uplo=np.uint8(ord("L")))
    close(np.tril(factor), np.linalg.cholesky(a))
    assert int(info) == 0


def test_ffi_lowering_is_a_rule_of_a_primitive() -> None:
    class Normalize(Primitive):
        name = "normalize"

        def shape_rule(self, x: ShapedArray, **params: Any) -> ShapedArray:
            return x

        lower = staticmethod(ffi.ffi_lowering("test_rms", backend_config={"mode": "rms"}))

    try:
        p = Normalize()
        close(jit(lambda x: p.bind(x, eps=EPS))(X), rms_in_numpy(X))
        assert "mode" in jit(lambda x: p.bind(x, eps=EPS)).lower(X).as_text()
    finally:
        primitives.remove(p)
    with pytest.raises(TypeError, match="ffi_lowering: unknown arguments has_sideeffect; it takes api_version"):
        ffi.ffi_lowering("test_rms", has_sideeffect=True)
