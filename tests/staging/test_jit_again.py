"""`jit` of the same function again, as in `jit(f)(x)` in a loop, finds what the first one has traced and compiled."""
from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.runtime.execution.program_limit import crowd


def counted() -> tuple[Any, list[Any]]:
    traces: list[Any] = []

    def fun(x: Any, scale: Any = 2) -> Any:
        traces.append(x)
        return jnp.sin(x) * scale

    return fun, traces


def test_in_a_loop_it_is_traced_and_compiled_once() -> None:
    fun, traces = counted()
    before = len(crowd.loaded)
    for i in range(4):
        assert xlamini.jit(fun)(jnp.float32(i)).shape == ()
    assert len(traces) == 1
    assert len(crowd.loaded) <= before + 2  # itself, and the conversion of the number


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"outline": False}, {"donate_argnums": 0}])
def test_other_options_are_another_program(options: dict[str, Any]) -> None:
    fun, traces = counted()
    xlamini.jit(fun)(jnp.ones(3), 3)
    xlamini.jit(fun, **options)(jnp.ones(3), 3)
    assert len(traces) == 2


@pytest.mark.full
def test_clear_caches_forgets_it() -> None:
    fun, traces = counted()
    xlamini.jit(fun)(1.0)
    xlamini.clear_caches()
    xlamini.jit(fun)(1.0)
    assert len(traces) == 2


def test_errors_name_the_arguments_each_time() -> None:
    fun, _ = counted()
    for _ in range(2):
        x = jnp.ones(3)
        xlamini.jit(fun)(x)
        x.delete()
        with pytest.raises(RuntimeError, match="the argument 'x' of fun"):
            xlamini.jit(fun, donate_argnums=())(x)


@pytest.mark.full
def test_it_ends_with_the_function() -> None:
    fun, traces = counted()
    xlamini.jit(fun)(jnp.ones(3))
    alive = weakref.ref(fun)
    del fun, traces
    gc.collect()
    assert alive() is None


def test_a_function_made_anew_as_static_argument_is_compiled_once(no_cache: None) -> None:
    scale = jnp.ones(3)

    def repeated(step: Any, count: int, x: Any) -> Any:
        return xlamini.lax.fori_loop(0, count, lambda _, carry: step(carry), x)

    jitted = xlamini.jit(repeated, static_argnums=(0, 1))

    def run(shift: Any, count: int) -> Any:
        return jitted(lambda x: jnp.sin(x) * scale + shift, count, jnp.ones(3))

    first, second = jnp.zeros(3), jnp.ones(3)
    outs = [run(shift, 2) for shift in (first, second, first, second)]
    assert [entry.compiled for entry in jitted.compilations()] == [True, False, False, False]
    np.testing.assert_allclose(outs[0], np.sin(np.sin(np.ones(3))), rtol=1e-6)
    np.testing.assert_allclose(outs[1], np.sin(np.sin(np.ones(3)) + 1) + 1, rtol=1e-6)
    np.testing.assert_allclose(outs[:2], outs[2:])
    run(first, 3)
    assert [entry.compiled for entry in jitted.compilations()][-1]


def test_flags_that_lowering_reads_are_another_program(no_cache: None) -> None:
    jitted = xlamini.jit(lambda step, x: step(x @ x), static_argnums=0)
    for precision in ("float32", "bfloat16"):
        with xlamini.default_matmul_precision(precision):
            jitted(lambda x: x, jnp.ones((2, 2)))
    assert [entry.compiled for entry in jitted.compilations()] == [True, True]


class Sorted:
    """A node whose children are those of its values that are arrays; the others are metadata."""

    def __init__(self, *values: Any):
        self.values = values

    def tree_flatten(self) -> Any:
        places = [i for i, x in enumerate(self.values) if hasattr(x, "shape")]
        rest = tuple(None if i in places else x for i, x in enumerate(self.values))
        return [self.values[i] for i in places], (tuple(places), rest)

    @classmethod
    def tree_unflatten(cls, metadata: Any, children: Any) -> Any:
        values = list(metadata[1])
        for place, child in zip(metadata[0], children, strict=True):
            values[place] = child
        return cls(*values)


xlamini.tree_util.register_pytree_node_class(Sorted)


def test_a_class_that_makes_other_leaves_of_numbers_is_an_argument() -> None:
    x = np.arange(3, dtype=np.float32)
    found = xlamini.jit(lambda s, y: s.values[0] * s.values[1] + y)(Sorted(x, 2.0), x)
    np.testing.assert_array_equal(found, 3 * x)
    with pytest.raises(TypeError, match="argument 'leaf 1' of <lambda> is 'text'"):
        xlamini.jit(lambda s, y: s)(Sorted(x, 2.0), "text")
