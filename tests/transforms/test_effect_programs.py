"""Random programs with effects in loops, branches and calls: compiled, they do what they do operation by operation."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import ShapeDtypeStruct, debug, effects_barrier, jit, lax, numpy as jnp
from xlamini.experimental import io_callback

SCALAR = ShapeDtypeStruct((), "float32")
Program = Callable[[Any], Any]


class Programs:
    """Makes programs of a float32; their ordered effects write what they see to `seen`."""

    def __init__(self, seed: int):
        self.random, self.seen = random.Random(seed), []

    def note(self, x: Any = 0.0) -> Any:
        self.seen.append(float(x))
        return x

    def effect(self) -> Program:
        ordered = self.random.random() < 0.6
        note = self.note if ordered else lambda x=0.0: x
        return self.random.choice([
            lambda x: io_callback(note, SCALAR, x, ordered=ordered),
            lambda x: io_callback(note, SCALAR, ordered=ordered) + x,
            lambda x: (debug.callback(note, x, ordered=ordered), x)[1],
            lambda x: x * 0.0 + jnp.zeros(4)[0] + jnp.float32(0),
            jnp.sin,
        ])  # fmt: skip

    def straight(self) -> Program:
        effects = [self.effect() for _ in range(self.random.randrange(1, 4))]

        def run(x: Any) -> Any:
            for effect in effects:
                x = effect(x)
            return x

        return run

    def program(self, depth: int) -> Program:
        if not depth:
            return self.straight()
        f, g, h = (self.program(depth - 1) for _ in range(3))
        length, flag = self.random.choice([0, 1, 2, 2, 3]), self.random.random() < 0.5
        return self.random.choice([
            lambda x: lax.scan(lambda c, y: (f(c) + y * 0, c * 0.0), x, jnp.zeros(length))[0],
            lambda x: lax.scan(lambda c, _: (f(c), g(0 * x)), x * 0.0, None, length=length)[0] + x,
            lambda x: lax.cond(flag, f, g, x),
            lambda x: lax.cond(h(x) > 0.5, f, g, x),
            lambda x: lax.fori_loop(0, length, lambda i, c: f(c) * 0.5, x),
            lambda x: lax.while_loop(lambda c: c[0] < length, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
            lambda x: jit(f)(jit(f)(x)),
            self.straight(),
        ])  # fmt: skip


@pytest.mark.sample(13)
@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed: int) -> None:
    programs = Programs(seed)
    program = programs.program(3)
    found = []
    for run in (jit(program), jit(jit(program)), program):
        programs.seen.clear()
        result = run(jnp.float32(0.3))
        effects_barrier()
        found.append([float(result), *programs.seen])
    assert [len(x) for x in found] == [len(found[-1])] * 3
    assert np.allclose(found[:2], found[-1:], atol=1e-5)


@pytest.mark.full
def test_the_random_programs_have_effects() -> None:
    counts = []
    for seed in range(25):
        programs = Programs(seed)
        with xlamini.disable_jit():
            programs.program(3)(jnp.float32(0.3))
        counts.append(len(programs.seen))
    assert sum(count > 2 for count in counts) > 6
