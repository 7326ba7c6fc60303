"""buffer_callback: Python functions that write into the memory of a program's results."""
from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import ShapeDtypeStruct, effects_barrier, export, grad, jit, lax, numpy as jnp, vmap
from xlamini.errors import CallbackError
from xlamini.experimental.buffer_callback import Buffer, ExecutionContext, ExecutionStage, buffer_callback

pytestmark = pytest.mark.sample(3)

X = np.arange(6, dtype=np.float32).reshape(2, 3)
METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    yield
    effects_barrier()


def like(x: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(np.shape(x), x.dtype)


def add(ctx: Any, out: Any, x: Any, y: Any) -> None:
    np.asarray(out)[...] = np.asarray(x) + np.asarray(y)


def double(ctx: Any, out: Any, x: Any) -> None:
    np.multiply(np.asarray(x), 2, out=np.asarray(out))


@pytest.mark.parametrize("mode", [lambda f: f, jit, lambda f: jit(jit(f))], ids=["eager", "jit", "nested"])
def test_values(mode: Any) -> None:
    found = mode(lambda x: buffer_callback(double, like(X))(x + 1))(X)
    np.testing.assert_array_equal(found, (X + 1) * 2)


def test_what_the_function_gets() -> None:
    seen: list[Any] = []

    def look(ctx: Any, out: Any, tree: Any, *, k: Any) -> None:
        seen.extend([type(ctx), ctx.stage, type(tree["a"]), tree["a"].shape, tree["b"][0].dtype, tree["a"].writeable])
        seen.extend([out["y"].writeable, out["y"].ndim, np.asarray(k).item()])
        np.asarray(out["y"])[...] = 7
        np.asarray(out["z"][0])[...] = np.asarray(tree["a"])

    types = {"y": ShapeDtypeStruct((4,), "int32"), "z": (like(X),)}
    found = buffer_callback(look, types)({"a": X, "b": (np.int32(1), 2.0)}, k=5)
    assert seen == [ExecutionContext, ExecutionStage.EXECUTE, Buffer, (2, 3), np.int32, False, True, 1, 5]
    assert found["y"].tolist() == [7] * 4
    np.testing.assert_array_equal(found["z"][0], X)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "complex64"])
def test_dtypes(dtype: str) -> None:
    x = jnp.asarray([0, 1, 1]).astype(dtype)
    found = buffer_callback(lambda ctx, out, x: np.copyto(np.asarray(out), np.asarray(x)), like(x))(x)
    np.testing.assert_array_equal(found, x)


def test_aliases() -> None:
    addresses: list[int] = []

    def note(ctx: Any, out: Any, x: Any) -> None:
        addresses.extend(np.asarray(b).__array_interface__["data"][0] for b in (out, x))
        np.asarray(out)[...] += 1

    f = jit(lambda x: buffer_callback(note, like(X), input_output_aliases={0: 0})(x * 2))
    np.testing.assert_array_equal(f(X), X * 2 + 1)
    assert addresses[0] == addresses[1]
    with pytest.raises(ValueError, match="buffer_callback: input_output_aliases has 0: 0, but the input is float32"):
        buffer_callback(note, ShapeDtypeStruct((2,), "float32"), input_output_aliases={0: 0})(X)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("in_axes", [(0, 0), (1, None)])
def test_vmap(method: str, in_axes: Any) -> None:
    xs = np.arange(12, dtype=np.float32).reshape(3, 4)
    ys = xs if in_axes[1] == 0 else np.float32([5, 6, 7])
    call = vmap(lambda x, y: buffer_callback(add, like(x), vmap_method=method)(x, y), in_axes)
    for f in (call, jit(call)):
        np.testing.assert_array_equal(f(xs, ys), xs + ys if in_axes[1] == 0 else xs.T + ys)


def test_loops_and_custom_derivatives() -> None:
    twice = xlamini.custom_vjp(lambda x: buffer_callback(double, like(x), vmap_method="broadcast_all")(x))
    twice.defvjp(lambda x: (twice(x), None), lambda _, ct: (2 * ct,))
    np.testing.assert_array_equal(grad(lambda x: (twice(x) ** 2).sum())(X), 8 * X)
    np.testing.assert_array_equal(vmap(grad(lambda x: (twice(x) ** 2).sum()))(X), 8 * X)
    found = jit(lambda x: lax.scan(lambda c, row: (twice(c) + row, None), jnp.zeros(3), x)[0])(X)
    np.testing.assert_array_equal(found, X[0] * 2 + X[1])


def test_side_effects() -> None:
    seen: list[float] = []

    def note(ctx: Any, out: Any, x: Any) -> None:
        assert out is None
        seen.append(np.asarray(x).item())

    f = jit(lambda x: (buffer_callback(note, None, has_side_effect=True)(x), buffer_callback(note, None)(x + 4), x)[2])
    f(1.0), f(2.0)
    effects_barrier()
    assert seen == [1, 2]


def boom(ctx: Any, out: Any, x: Any) -> None:
    raise ArithmeticError("no luck")


def test_errors_of_the_function() -> None:
    for f in (buffer_callback(boom, like(X)), jit(buffer_callback(boom, like(X)))):
        with pytest.raises(CallbackError, match=r"buffer_callback: boom raised ArithmeticError: no luck") as caught:
            f(X).block_until_ready()
        assert isinstance(caught.value.__cause__, ArithmeticError)


def test_wrong_calls() -> None:
    with pytest.raises(ValueError, match=r"buffer_callback: double cannot be differentiated; .* custom_vjp"):
        grad(lambda x: buffer_callback(double, like(x))(x).sum())(X)
    with pytest.raises(NotImplementedError, match="buffer_callback: under vmap it must be known how to call double"):
        vmap(buffer_callback(double, ShapeDtypeStruct((3,), "float32")))(X)
    with pytest.raises(ValueError, match="buffer_callback: vmap_method must be one of sequential"):
        buffer_callback(double, like(X), vmap_method="all")
    with pytest.raises(TypeError, match="result_shape_dtypes is 3, without shape and dtype"):
        buffer_callback(double, 3)
    with pytest.raises(TypeError, match="buffer_callback"):
        buffer_callback(3, like(X))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"argument 'x' of double .* is 'a' of type str"):
        buffer_callback(double, like(X))("a")


def test_python_functions_are_not_in_files() -> None:
    f = jit(buffer_callback(double, like(X)))
    with pytest.raises(ValueError, match="calls Python functions"):
        f.lower(X).compile().serialize()
    with pytest.raises(NotImplementedError, match="calls Python functions"):
        export.export(f)(X)


def test_other_platforms() -> None:
    f = jit(functools.partial(buffer_callback(double, like(X), command_buffer_compatible=True)))
    with pytest.raises(NotImplementedError, match="programs on tpu cannot call Python functions"):
        f.trace(X).lower(lowering_platforms=("tpu",))
    assert "xla_buffer_python_gpu_callback_cmd_buffer" in f.trace(X).lower(lowering_platforms=("cuda",)).as_text()
