"""Calls and the stages of compilation share their programs, and C++ dispatch runs both."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.core.flags.compile_flags import compiler_enable_remat_pass
from xlamini.errors import DeletedArrayError
from xlamini.runtime.execution import dispatch
from xlamini.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

X = np.linspace(0.1, 0.9, 89, dtype=np.float32)


def of_x(**options: Any) -> Any:
    def shared(x: Any) -> Any:
        return jnp.sin(x) * 3

    return xlamini.jit(shared, **options)


def test_a_call_runs_what_was_compiled_ahead_of_time(compiled: list[str]) -> None:
    f = of_x()
    program = f.lower(xlamini.ShapeDtypeStruct(X.shape, X.dtype)).compile()
    np.testing.assert_array_equal(f(X), program(X))
    np.testing.assert_allclose(f(X), np.sin(X) * 3, rtol=1e-6)
    assert compiled.count("shared") == 1
    assert [entry.cause.kind for entry in f.compilations()] == ["first call"]


def test_a_program_of_a_call_is_not_compiled_again_to_be_looked_at(compiled: list[str]) -> None:
    f = of_x()
    f(X)
    assert "sine" in f.lower(X).compile().as_text()
    assert compiled.count("shared") == 1


def with_other_flags(f: Any) -> Any:
    with compiler_enable_remat_pass(False):
        return f.lower(X).compile()


def with_flags_changed_since(f: Any) -> Any:
    lowered = f.lower(X)
    with compiler_enable_remat_pass(False):
        return lowered.compile()


def with_options(f: Any) -> Any:
    return f.lower(X).compile({"xla_cpu_enable_fast_math": False})


@pytest.mark.parametrize("other", [with_other_flags, with_flags_changed_since, with_options])
def test_other_programs_are_not_shared(other: Callable[[Any], Any], compiled: list[str]) -> None:
    f = of_x()
    np.testing.assert_allclose(other(f)(X), f(X), rtol=1e-6)
    assert compiled.count("shared") == 2


def test_a_program_that_donates_is_not_shared_with_calls_that_look_for_nans() -> None:
    f = of_x(donate_argnums=0)
    lowered = f.lower(X)
    with xlamini.debug_nans(True):
        lowered.compile()
        x = jnp.asarray(X)
        f(x)
        assert not x.is_deleted()


def test_a_program_for_another_device_is_not_shared(compiled: list[str]) -> None:
    if xlamini.device_count() < 2:
        pytest.skip("one device")
    f = of_x()
    f.lower(X).compile()
    f(xlamini.device_put(X, xlamini.devices()[1]))
    assert compiled.count("shared") == 2


# Calls of Compiled through C++.


def seen_in_cpp(call: Callable[[], Any]) -> int:
    """How many calls C++ dispatch ran by itself."""
    seen: list[Any] = []
    dispatch.post_hook.set_global(lambda *call: seen.append(call))
    try:
        call()
    finally:
        dispatch.post_hook.set_global(None)
    return len(seen)


def test_cpp_runs_a_compiled_program() -> None:
    program = of_x().lower(X).compile()
    x = jnp.asarray(X)
    assert [seen_in_cpp(lambda: program(x)) for _ in range(3)] == [0, 1, 1]


def test_what_cpp_ran_is_refused_as_before() -> None:
    program = xlamini.jit(lambda x, y: x + y).lower(X, X).compile()
    x, y = jnp.asarray(X), jnp.asarray(X)
    program(x, y), program(x, y)
    with pytest.raises(TypeError, match=r"y: compiled for f32\[89\], called with f32\[3\]"):
        program(x, jnp.ones(3))
    with pytest.raises(TypeError, match="of another structure"):
        program(x)
    with pytest.raises(TypeError, match="cannot be transformed or traced"):
        xlamini.jit(program)(x, y)
    y.delete()
    with pytest.raises(DeletedArrayError, match="the argument 'y' of <lambda>"):
        program(x, y)


def test_donated_arrays_are_deleted_by_cpp_too() -> None:
    program = of_x(donate_argnums=0).lower(X).compile()
    for _ in range(3):
        x = jnp.asarray(X) + 0
        program(x)
        with pytest.raises(DeletedArrayError, match="the argument 'x' of shared"):
            program(x)


def test_captured_arrays_and_static_arguments_are_compiled_in() -> None:
    scale = jnp.arange(89.0)
    program = xlamini.jit(lambda x, n: x**n * scale, static_argnums=1).lower(X, 2).compile()
    for _ in range(3):
        np.testing.assert_allclose(program(X), X**2 * np.arange(89), rtol=1e-6)


def test_numbers_are_converted_as_the_first_time() -> None:
    program = xlamini.jit(lambda x: x * 2).lower(1.0).compile()
    values = [2.0, 2.0, np.float32(3), jnp.float32(4), jnp.float32(4)]
    assert [float(program(x)) for x in values] == [4, 4, 6, 8, 8]
    with pytest.raises(TypeError, match=r"compiled for f32\[\], called with i32\[\]"):
        program(2)


def test_keys_go_in_and_out() -> None:
    program = xlamini.jit(lambda key: xlamini.random.split(key, 2)[1]).lower(xlamini.random.key(0)).compile()
    expected = xlamini.random.key_data(xlamini.random.split(xlamini.random.key(5))[1])
    for _ in range(3):
        np.testing.assert_array_equal(xlamini.random.key_data(program(xlamini.random.key(5))), expected)


def test_it_runs_compiled_where_jit_is_disabled() -> None:
    program = of_x().lower(X).compile()
    with xlamini.disable_jit():
        np.testing.assert_allclose(program(X), np.sin(X) * 3, rtol=1e-6)


# Where it runs: as JAX 0.10.2 says for the same programs.


def other_device() -> Any:
    if xlamini.device_count() < 2:
        pytest.skip("one device")
    return xlamini.devices()[1]


def test_results_are_committed_where_arguments_are() -> None:
    here, there = jnp.asarray(X), xlamini.device_put(X, other_device())
    fun = of_x()
    for _ in range(3):
        assert not fun.lower(here).compile()(here).committed
        result = fun.lower(there).compile()(here)
        assert result.committed and result.devices() == {other_device()}


def test_types_and_outputs_may_name_the_device() -> None:
    sharding = SingleDeviceSharding(other_device())
    of_type = of_x().lower(xlamini.ShapeDtypeStruct(X.shape, X.dtype, sharding=sharding)).compile()
    for result in (of_type(X), of_x(out_shardings=sharding)(X), of_x(out_shardings=sharding).lower(X).compile()(X)):
        assert result.committed and result.devices() == {other_device()}


def test_an_array_on_a_mesh_of_one_device_is_on_that_device() -> None:
    device = xlamini.devices()[0]
    on_mesh = NamedSharding(Mesh([device], ("x",)), PartitionSpec("x"))
    alone, meshed = xlamini.device_put(X, device), xlamini.device_put(X, on_mesh)
    for compiled_for, given in [(alone, meshed), (meshed, alone), (X, meshed)]:
        program = of_x().lower(compiled_for).compile()
        for _ in range(2):
            np.testing.assert_allclose(program(given), np.sin(X) * 3, rtol=1e-6)


def test_an_array_committed_elsewhere_is_refused() -> None:
    x = xlamini.device_put(X, other_device())
    program = of_x().lower(X).compile()
    for _ in range(2):
        program(X)
        with pytest.raises(ValueError, match=r"compiled shared takes 'x' on .*move it with xlamini.device_put"):
            program(x)


def test_outputs_elsewhere_than_the_arguments_are_refused() -> None:
    fun = of_x(out_shardings=SingleDeviceSharding(other_device()))
    with pytest.raises(ValueError, match=r"out_shardings asks for output 0 on .*, but the program runs on"):
        fun(xlamini.device_put(X, xlamini.devices()[0]))
