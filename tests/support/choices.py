"""Programs that choose, in two languages: xlamini with `lax.cond` and `lax.switch`, and plain Python with NumPy.

A program is `program(xp, choose, s, v)` of a number and a vector of three, and returns a number. `choose(index,
functions, *operands)` is the only way it branches. `straight` follows the choices that plain Python made, so what it
gives is free of conditionals and can be differentiated as a reference.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini import jit, lax, numpy as jnp

Program = Callable[..., Any]


def by_switch(index: Any, functions: Sequence[Program], *operands: Any) -> Any:
    """The choice, staged: two functions by cond, more by switch."""
    if len(functions) == 2:
        return lax.cond(index, functions[1], functions[0], *operands)
    return lax.switch(jnp.asarray(index).astype(jnp.int32), functions, *operands)


def by_python(index: Any, functions: Sequence[Program], *operands: Any) -> Any:
    return functions[min(max(int(index), 0), len(functions) - 1)](*operands)


def plain(program: Program, s: Any, v: Any) -> Any:
    """The program's value by NumPy."""
    with np.errstate(all="ignore"):
        return program(np, by_python, np.float64(s), np.asarray(v, np.float64))


def straight(program: Program, s: Any, v: Any) -> Program:
    """The program with the choices that it makes for these numbers, for any (s, v) nearby."""
    made: list[int] = []

    def recording(index: Any, functions: Sequence[Program], *operands: Any) -> Any:
        made.append(min(max(int(index), 0), len(functions) - 1))
        return functions[made[-1]](*operands)

    program(np, recording, np.float64(s), np.asarray(v, np.float64))

    def repeated(s: Any, v: Any) -> Any:
        choices = iter(made)
        return program(jnp, lambda index, functions, *operands: functions[next(choices)](*operands), s, v)

    return repeated


def staged(program: Program) -> Program:
    """The program by xlamini."""
    return lambda s, v: program(jnp, by_switch, s, v)


def operands(xp: Any, choose: Any, s: Any, v: Any) -> Any:
    return choose(s > 0, [lambda s, v: xp.sin(v).sum() * s, lambda s, v: (v * v * v).sum() + s * s], s, v)


def captured(xp: Any, choose: Any, s: Any, v: Any) -> Any:
    table, w = xp.arange(3.0), v * s
    return choose(s > 0, [lambda: (xp.sin(w) * table).sum(), lambda: xp.exp(w).sum() * s])


def nested(xp: Any, choose: Any, s: Any, v: Any) -> Any:
    def inner(x: Any) -> Any:
        return choose(x.sum() > 0.8, [lambda y: xp.cos(y) * s, lambda y: y * x], x * x)

    return choose(s > 0, [lambda x: xp.tanh(x) * x, inner], v).sum()


def trees(xp: Any, choose: Any, s: Any, v: Any) -> Any:
    def first(x: Any) -> Any:
        return {"a": x["w"] * 2.0, "b": [x["s"], x["w"] * x["s"]]}

    def second(x: Any) -> Any:
        return {"a": x["w"], "b": [xp.sin(x["s"]), x["w"] * x["w"]]}

    def third(x: Any) -> Any:
        return {"a": xp.ones(3), "b": [x["s"] * x["s"], xp.zeros(3)]}

    out = choose(s * 2, [first, second, third], {"w": v, "s": s})
    return (out["a"] * out["b"][1]).sum() * out["b"][0]


def integers(xp: Any, choose: Any, s: Any, v: Any) -> Any:
    def left(n: Any, x: Any, on: Any) -> Any:
        return n + 1, x * n, on

    def right(n: Any, x: Any, on: Any) -> Any:
        return n, xp.sin(x), ~on

    n, x, on = choose(s > 0, [left, right], xp.arange(3), v, v > 0)
    return (xp.where(on, x, x * x) * n).sum()


def in_sequence(xp: Any, choose: Any, s: Any, v: Any) -> Any:
    for i in range(3):
        v = choose(v[i] > s, [lambda x, i=i: x * (i + 1.0), lambda x: xp.sin(x) * s], v)
    return v.sum()


def constant(xp: Any, choose: Any, s: Any, v: Any) -> Any:
    return choose(s > 0, [lambda x: 2.0, lambda x: (x * x).sum()], v) + s * s * s


def called(xp: Any, choose: Any, s: Any, v: Any) -> Any:
    wrap = jit if xp is jnp else lambda f: f
    f = wrap(lambda x: choose(x[0] > 0, [lambda y: y * s, lambda y: xp.exp(y)], x))
    return choose(s > 0, [lambda x: f(x) * x, lambda x: f(x * x)], v).sum()


PROGRAMS = [operands, captured, nested, trees, integers, in_sequence, constant, called]


def random_program(seed: int) -> Program:
    """A program of nested choices, with functions that read operands and what is around them."""
    return lambda xp, choose, s, v: _term(random.Random(seed), xp, choose, s, v, 4).sum()


def _term(rng: random.Random, xp: Any, choose: Any, s: Any, v: Any, depth: int) -> Any:
    kind = rng.choice(["choice", "choice", "choice", "sin", "product", "scaled"]) if depth else "leaf"
    seeds = [rng.getrandbits(32) for _ in range(3)]

    def part(i: int, s: Any, v: Any) -> Any:
        return _term(random.Random(seeds[i]), xp, choose, s, v, depth - 1)

    if kind == "leaf":
        return rng.choice([lambda: v, lambda: v * s, lambda: xp.cos(v), lambda: xp.ones(3) * s, lambda: xp.ones(3)])()
    if kind == "sin":
        return xp.sin(part(0, s, v))
    if kind == "product":
        return part(0, s, v) * part(1, s, v)
    if kind == "scaled":
        return part(0, s * 0.5, v + 0.25)
    return _choice(rng, xp, choose, s, v, part)


def _choice(rng: random.Random, xp: Any, choose: Any, s: Any, v: Any, part: Program) -> Any:
    count, where = rng.choice([2, 3]), rng.randrange(3)
    index = v[where] > s * 0.3 if count == 2 else xp.floor(v[where] * 2.0)
    passed = rng.random() < 0.5
    functions = [
        (lambda s, v, i=i: part(i, s, v)) if passed else (lambda _s, _v, i=i: part(i, s, v)) for i in range(count)
    ]
    return choose(index, functions, s, v * 1.5)
