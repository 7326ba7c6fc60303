"""Branches, loops, custom rules and checkpoints: single eager calls, and programs with hundreds of them.

An eager call takes either new function objects in each iteration, as in a loop of a script, or the same ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.timing import Measurement, Settings, each_per_call, once

TARGET = 1.0
QUICK_PART = 10
WIDTH, STEPS = 8, 100
Function = Callable[..., Any]
Step = Callable[[Any], Any]


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure eager calls, then trace + lower of long programs (a tenth of the length when quick)."""
    jax = load()
    rows = each_per_call(jax, _eager_calls(jax), settings, TARGET)
    for what, count, program in _programs(jax):
        length = count // QUICK_PART if settings.quick else count
        jitted = jax.jit(program(length))
        seconds, _ = once(functools.partial(jitted.lower, np.linspace(0.1, 1, WIDTH, dtype=np.float32)))
        rows.append(Measurement(f"{length} {what}: trace + lower", seconds, target=TARGET))
    return rows


def _eager_calls(jax: ModuleType) -> Iterator[tuple[str, Callable[[], Any]]]:
    lax, jnp = jax.lax, jax.numpy
    x, xs, true = jnp.ones(WIDTH), jnp.ones((STEPS, WIDTH)), jnp.asarray(True)
    same_functions = _functions(jax)
    calls: dict[str, Function] = {
        "cond": lambda f: lax.cond(true, f["sine"], f["cosine"], x),
        "switch": lambda f: lax.switch(jnp.int32(1), [f["sine"], f["cosine"], f["sine"]], x),
        "scan": lambda f: lax.scan(f["body"], x, xs),
        "while_loop": lambda f: lax.while_loop(f["condition"], f["advance"], (0, x)),
        "fori_loop": lambda f: lax.fori_loop(0, STEPS, f["step"], x),
        "map": lambda f: lax.map(f["sine"], xs),
        "checkpoint": lambda f: jax.checkpoint(f["sine"])(x),
        "grad of custom_jvp": lambda f: jax.grad(f["with_jvp"])(x),
        "grad of custom_vjp": lambda f: jax.grad(f["with_vjp"])(x),
        "grad of scan": lambda f: jax.grad(f["scanned"])(x, xs),
        "vmap of cond": lambda f: jax.vmap(f["branch"])(xs),
    }
    for what, call in calls.items():
        yield f"eager {what}, same functions", lambda call=call: call(same_functions)
        yield f"eager {what}, new functions", lambda call=call: call(_functions(jax))
    double = jax.jit(lambda x: jax.pure_callback(_doubled, jax.ShapeDtypeStruct((WIDTH,), np.float32), x))
    added = jax.jit(_adding_to(jax.new_ref(jnp.zeros(WIDTH))))
    yield "jitted pure_callback", lambda: double(x)
    yield "jitted function that adds to a ref", lambda: added(x)


def _functions(jax: ModuleType) -> dict[str, Function]:
    """The functions that users pass to control flow, as new function objects."""
    lax, jnp = jax.lax, jax.numpy
    with_jvp, with_vjp = _custom_sines(jax)

    def body(carry: Any, x: Any) -> tuple[Any, Any]:
        return carry * 0.9 + x, carry.sum()

    return {
        "sine": lambda x: jnp.sin(x) * 2,
        "cosine": lambda x: jnp.cos(x) + 1,
        "body": body,
        "condition": lambda state: state[0] < STEPS,
        "advance": lambda state: (state[0] + 1, jnp.tanh(state[1])),
        "step": lambda i, x: jnp.tanh(x) + i,
        "with_jvp": lambda x: with_jvp(x).sum(),
        "with_vjp": lambda x: with_vjp(x).sum(),
        "scanned": lambda x, xs: lax.scan(body, x, xs)[1].sum(),
        "branch": lambda x: lax.cond(x[0] > 0, lambda y: y * 2, lambda y: y + 1, x),
    }


@functools.cache
def _custom_sines(jax: ModuleType) -> tuple[Function, Function]:
    sin, cos = jax.numpy.sin, jax.numpy.cos
    forward, backward = jax.custom_jvp(lambda x: sin(x)), jax.custom_vjp(lambda x: sin(x))
    forward.defjvp(lambda primals, tangents: (sin(primals[0]), cos(primals[0]) * tangents[0]))
    backward.defvjp(lambda x: (sin(x), x), lambda x, ct: (cos(x) * ct,))
    return forward, backward


def _doubled(x: Any) -> Any:
    return np.asarray(x) * 2


def _adding_to(ref: Any) -> Step:
    def added(x: Any) -> Any:
        ref[...] = ref[...] + x
        return x * 2

    return added


def _programs(jax: ModuleType) -> Iterator[tuple[str, int, Callable[[int], Step]]]:
    lax, jnp, grad = jax.lax, jax.numpy, jax.grad
    weights, xs = np.ones((WIDTH, WIDTH), np.float32), np.ones((10, WIDTH), np.float32)
    sine, _ = _custom_sines(jax)

    def branch(x: Any) -> Any:
        return lax.cond(x[0] > 0, lambda y: jnp.sin(y) * 2, lambda y: jnp.cos(y) + 1, x)

    def loop(x: Any) -> Any:
        return lax.scan(lambda carry, y: (carry * 0.9 + y, carry.sum()), x, xs)[0]

    def layer(x: Any) -> Any:
        return jax.checkpoint(lambda y: jnp.tanh(weights @ y))(x)

    yield "conds", 300, lambda n: _repeated(branch, n)
    yield "scans", 300, lambda n: _repeated(loop, n)
    yield "conds, differentiated", 300, lambda n: grad(_repeated(branch, n))
    yield "scans, differentiated", 300, lambda n: grad(_repeated(loop, n))
    yield "custom_jvp calls, differentiated", 1000, lambda n: grad(_repeated(sine, n))
    yield "checkpointed layers, differentiated", 300, lambda n: grad(_repeated(layer, n))


def _repeated(step: Step, count: int) -> Step:
    def program(x: Any) -> Any:
        for _ in range(count):
            x = step(x)
        return x.sum()

    return program
