"""Random nested programs, their meaning in NumPy and in xlamini, and a shrinker.

A program is a nested tuple; it computes a vector of 3 numbers from one. It is printable, so that a failing one can be
pasted into a test. Its forms:

    ("var", i)                          a variable, counted outwards from the innermost function
    ("const", c)
    (operation, a, ...)                 one of UNARY or BINARY
    (call, body, a)                     a function of one more variable, called on `a` in the way that CALLS names
    ("cond", body, other, a)            `body` where the sum of `a` is above EDGE, else `other`
    (derivative, body, a)               one of DERIVATIVES
"""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.special

import xlamini
import xlamini.numpy as jnp
from xlamini import checkpoint_policies, lax
from xlamini.sharding import PartitionSpec

Program = tuple[Any, ...]
Env = tuple[Any, ...]
SIZE = 3
STEPS = [2e-3]
"""The step of finite differences, as its last element."""
OFFSETS = [0.0]
"""How far from its point a finite difference is taken, as the last element."""
EDGE = 0.0123
"""The bound of conditions: not 0, which differences and derivatives of constants are."""
UNEQUAL = np.array([1.0, 0.7, -0.4])
"""Spreads one number to a vector without equal elements, at which a maximum or a sort has no derivative."""


def _regular(xnp: Any, x: Any) -> Any:
    """A positive definite matrix."""
    return xnp.outer(x, x) / (1 + xnp.sum(x * x)) + 2 * np.eye(SIZE)


UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sin": (np.sin, jnp.sin),
    "tanh": (np.tanh, jnp.tanh),
    "bell": (lambda x: np.exp(-x * x), lambda x: jnp.exp(-x * x)),
    "root": (lambda x: np.sqrt(1 + x * x), lambda x: jnp.sqrt(1 + x * x)),
    "cumsum": (np.cumsum, jnp.cumsum),
    "sort": (lambda x: np.sort(x + UNEQUAL), lambda x: jnp.sort(x + UNEQUAL)),
    "flip": (np.flip, jnp.flip),
    "roll": (lambda x: np.roll(x, 1), lambda x: jnp.roll(x, 1)),
    "mean": (lambda x: UNEQUAL * x.mean(), lambda x: UNEQUAL * x.mean()),
    "largest": (lambda x: UNEQUAL + (x + UNEQUAL).max(), lambda x: UNEQUAL + (x + UNEQUAL).max()),
    "softmax": (lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(), xlamini.nn.softmax),
    "leaky": (lambda x: np.where(x > EDGE, x, 0.1 * x), lambda x: jnp.where(x > EDGE, x, 0.1 * x)),
    "set": (lambda x: np.array([x[0], x[2] ** 2, x[2]]), lambda x: x.at[1].set(x[2] ** 2)),
    "add": (lambda x: np.array([x[0] + x[1], x[1], x[2]]), lambda x: x.at[jnp.array([0])].add(x[1])),
    "take": (lambda x: x[[2, 0, 2]] * UNEQUAL, lambda x: x[jnp.array([2, 0, 2])] * UNEQUAL),
    "outer": (lambda x: np.outer(x, x).sum(0), lambda x: jnp.outer(x, x).sum(0)),
    "cummax": (lambda x: np.maximum.accumulate(x + UNEQUAL), lambda x: lax.cummax(x + UNEQUAL)),
    "cumprod": (np.cumprod, jnp.cumprod),
    "logsumexp": (lambda x: UNEQUAL * scipy.special.logsumexp(x), lambda x: UNEQUAL * xlamini.nn.logsumexp(x)),
    "median": (lambda x: UNEQUAL * np.median(x + UNEQUAL), lambda x: UNEQUAL * jnp.median(x + UNEQUAL)),
    "top_k": (lambda x: np.sort(x + UNEQUAL)[[2, 1, 1]], lambda x: lax.top_k(x + UNEQUAL, 2)[0][jnp.array([0, 1, 1])]),
    "convolve": (lambda x: np.convolve(x, UNEQUAL, "same"), lambda x: jnp.convolve(x, UNEQUAL, mode="same")),
    "einsum": (lambda x: np.einsum("i,j,jk->k", x, UNEQUAL, np.outer(x, UNEQUAL)),
               lambda x: jnp.einsum("i,j,jk->k", x, UNEQUAL, jnp.outer(x, UNEQUAL))),
    "segments": (lambda x: np.array([x[1], x[0] + x[2], 0.0]),
                 lambda x: xlamini.ops.segment_sum(x, jnp.array([1, 0, 1]), SIZE)),
    "window": (lambda x: np.convolve(x, [1, 1])[:SIZE],
               lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), [(1, 0)])),
    "slice": (lambda x: np.append(x[1:] if x.sum() > EDGE else x[:2], 1.0),
              lambda x: jnp.append(lax.dynamic_slice(x, ((x.sum() > EDGE).astype(int),), (2,)), 1.0)),
    "solve": (lambda x: np.linalg.solve(_regular(np, x), x), lambda x: jnp.linalg.solve(_regular(jnp, x), x)),
    "cholesky": (lambda x: np.linalg.cholesky(_regular(np, x)).sum(0),
                 lambda x: jnp.linalg.cholesky(_regular(jnp, x)).sum(0)),
    "det": (lambda x: UNEQUAL * np.linalg.det(_regular(np, x)), lambda x: UNEQUAL * jnp.linalg.det(_regular(jnp, x))),
    "turn": (lambda x: (np.exp(1j * x) * (x + 1j)).real, lambda x: (jnp.exp(1j * x) * (x + 1j)).real),
    "modulus": (lambda x: np.abs(x + 1j) + np.angle(x + 2j), lambda x: jnp.abs(x + 1j) + jnp.angle(x + 2j)),
    "fft": (lambda x: np.fft.fft(x).real - np.fft.fft(x).imag, lambda x: jnp.fft.fft(x).real - jnp.fft.fft(x).imag),
    "irfft": (lambda x: np.fft.irfft(np.fft.rfft(x) * (1 + 1j), SIZE),
              lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * (1 + 1j), SIZE)),
    "half": (lambda x: x.astype(np.float16).astype(float), lambda x: x.astype("float16").astype(float)),
    "bfloat16": (lambda x: x.astype(jnp.bfloat16).astype(float), lambda x: x.astype("bfloat16").astype(float)),
    "int8": (lambda x: x + np.round(np.tanh(x)).astype(np.int8), lambda x: x + jnp.round(jnp.tanh(x)).astype("int8")),
    "pad": (lambda x: np.pad(x, 1)[:SIZE] + UNEQUAL, lambda x: jnp.pad(x, 1)[:SIZE] + UNEQUAL),
}
BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "plus": (np.add, jnp.add),
    "minus": (np.subtract, jnp.subtract),
    "times": (np.multiply, jnp.multiply),
    "over": (lambda x, y: x / (1 + y * y), lambda x, y: x / (1 + y * y)),
    "maximum": (np.maximum, jnp.maximum),
    "where": (lambda x, y: np.where(x > y, x, 2 * y), lambda x, y: jnp.where(x > y, x, 2 * y)),
    "angle": (lambda x, y: np.arctan2(x, 1 + y * y), lambda x, y: jnp.arctan2(x, 1 + y * y)),
    "dot": (lambda x, y: UNEQUAL * (x @ y), lambda x, y: UNEQUAL * (x @ y)),
    "matrix": (lambda x, y: np.outer(x, y) @ y, lambda x, y: jnp.outer(x, y) @ y),
}


# --- calls: the body is a function from vectors to vectors


def _iterated(f: Callable[[Any], Any], x: Any, times: int) -> Any:
    for _ in range(times):
        x = f(x)
    return x


def _scan(f: Any, x: Any) -> Any:
    def step(carry: Any, k: Any) -> Any:
        new = f(carry) + 0.1 * k
        return new, new * k

    last, ys = lax.scan(step, x, jnp.arange(3.0))
    return last + ys.sum(0)


def _scanned(f: Any, x: Any) -> Any:
    total = np.zeros(SIZE)
    for k in range(3):
        x = f(x) + 0.1 * k
        total = total + x * k
    return x + total


def _while(f: Any, x: Any) -> Any:
    return lax.while_loop(lambda state: state[0] < 2, lambda state: (state[0] + 1, f(state[1])), (0, x))[1]


def _switch(f: Any, x: Any) -> Any:
    return lax.switch((x.sum() > EDGE).astype(int) + 1, [lambda x: x, f, lambda x: 2 * f(x)], x)


def _with_vjp(f: Any, x: Any) -> Any:
    """`f` with a reverse rule, which closes over what `f` closes over."""
    closed, consts = xlamini.closure_convert(f, x)
    ruled = xlamini.custom_vjp(closed)
    ruled.defvjp(lambda x, *c: xlamini.vjp(closed, x, *c), lambda pull, ct: pull(ct))
    return ruled(x, *consts)


def _with_jvp(f: Any, x: Any) -> Any:
    closed, consts = xlamini.closure_convert(f, x)
    ruled = xlamini.custom_jvp(closed)
    ruled.defjvp(lambda primals, tangents: xlamini.jvp(closed, primals, tangents))
    return ruled(x, *consts)


def _remat(policy: Any) -> Any:
    return lambda f, x: xlamini.checkpoint(lambda x: jnp.sin(f(lax.cos(x) + x)), policy=policy)(x)


def _rematted(f: Any, x: Any) -> Any:
    return np.sin(f(np.cos(x) + x))


def _reference(f: Any, x: Any) -> Any:
    """`f` twice, its values in a mutable array."""
    ref = xlamini.new_ref(x)
    for _ in range(2):
        ref[...] = f(ref[...])
    return ref[...]


def _centered(f: Any, x: Any) -> Any:
    """`f` of two vectors, minus their mean, over a named axis."""
    def less(y: Any) -> Any:
        z = f(y)
        return z - lax.pmean(z, "i")

    return xlamini.vmap(less, axis_name="i")(jnp.stack([x, 2 * x]))[1]


DEVICES = 8
SHARES = np.linspace(-1, 1.1, DEVICES)


def _over_devices(out_spec: Any, last: Callable[[Any], Any]) -> Any:
    """`f` on each of eight devices, of its own multiple of x."""
    def call(f: Any, x: Any) -> Any:
        mesh = xlamini.make_mesh((DEVICES,), ("d",), axis_types=(xlamini.sharding.AxisType.Auto,))
        share = lambda scale: last(f(x * scale[0]))
        out = xlamini.shard_map(share, mesh=mesh, in_specs=PartitionSpec("d"), out_specs=out_spec)(jnp.asarray(SHARES))
        return out.reshape(-1, SIZE).sum(0)

    return call


def _of_shares(f: Any, x: Any) -> Any:
    return sum(f(x * scale) for scale in SHARES)


CALLS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "jit": (lambda f, x: f(x), lambda f, x: xlamini.jit(f)(x)),
    "checkpoint": (lambda f, x: f(x), lambda f, x: xlamini.checkpoint(f)(x)),
    "vmap": (lambda f, x: f(x) + f(2 * x), lambda f, x: xlamini.vmap(f)(jnp.stack([x, 2 * x])).sum(0)),
    "vmap axis 1": (lambda f, x: f(x) - f(x + 1), lambda f, x: jnp.diff(
        xlamini.vmap(f, in_axes=1, out_axes=1)(jnp.stack([x + 1, x], 1)), axis=1)[:, 0]),
    "map": (lambda f, x: f(x) * f(-x), lambda f, x: lax.map(f, jnp.stack([x, -x])).prod(0)),
    "scan": (_scanned, _scan),
    "fori": (lambda f, x: _iterated(f, x, 2), lambda f, x: lax.fori_loop(0, 2, lambda i, c: f(c), x)),
    "while": (lambda f, x: _iterated(f, x, 2), _while),
    "switch": (lambda f, x: 2 * f(x) if x.sum() > EDGE else f(x), _switch),
    "custom_vjp": (lambda f, x: f(x), _with_vjp),
    "custom_jvp": (lambda f, x: f(x), _with_jvp),
    "checkpoint nothing": (_rematted, _remat(checkpoint_policies.nothing_saveable)),
    "checkpoint dots": (_rematted, _remat(checkpoint_policies.dots_with_no_batch_dims_saveable)),
    "checkpoint all": (_rematted, _remat(checkpoint_policies.everything_saveable)),
    "thrice": (lambda f, x: _iterated(f, x, 3), lambda f, x: _iterated(f, x, 3)),
    "named axis": (lambda f, x: (f(2 * x) - f(x)) / 2, _centered),
    "ref": (lambda f, x: _iterated(f, x, 2), _reference),
    "associative_scan": (lambda f, x: f(x) + f(-x) * 2,
                         lambda f, x: lax.associative_scan(jnp.add, jnp.stack([f(x), 2 * f(-x)]))[-1]),
    "shard_map": (_of_shares, _over_devices(PartitionSpec("d"), lambda y: y)),
    "psum": (_of_shares, _over_devices(PartitionSpec(), lambda y: lax.psum(y, "d"))),
}  # fmt: skip


# --- derivatives: each is the gradient of the body's sum, or its product with a vector


def _slopes(f: Any, x: np.ndarray) -> np.ndarray:
    """The Jacobian by finite differences of fourth order: [output, input]."""
    step = STEPS[-1]
    x = x + OFFSETS[-1]
    moved = [[f(x + k * e) for k in (-2, -1, 1, 2)] for e in np.eye(SIZE) * step]
    return np.stack([(8 * (c - b) - d + a) / (12 * step) for a, b, c, d in moved], 1)


def _hvp(f: Any, x: np.ndarray) -> np.ndarray:
    """The Hessian of the sum, times a vector."""
    return _slopes(lambda y: _slopes(f, y).sum(0), x) @ np.cos(x)


DERIVATIVES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "grad": (lambda f, x: _slopes(f, x).sum(0), lambda f, x: xlamini.grad(lambda y: f(y).sum())(x)),
    "jvp": (lambda f, x: _slopes(f, x) @ np.cos(x), lambda f, x: xlamini.jvp(f, (x,), (jnp.cos(x),))[1]),
    "vjp": (lambda f, x: np.cos(x) @ _slopes(f, x), lambda f, x: xlamini.vjp(f, x)[1](jnp.cos(x))[0]),
    "linearize": (lambda f, x: _slopes(f, x) @ np.cos(x), lambda f, x: xlamini.linearize(f, x)[1](jnp.cos(x))),
    "jacfwd": (lambda f, x: _slopes(f, x).sum(1), lambda f, x: xlamini.jacfwd(f)(x).sum(1)),
    "jacrev": (lambda f, x: _slopes(f, x).sum(1), lambda f, x: xlamini.jacrev(f)(x).sum(1)),
    "transpose": (
        lambda f, x: np.cos(x) @ _slopes(f, x),
        lambda f, x: xlamini.linear_transpose(xlamini.linearize(f, x)[1], x)(jnp.cos(x))[0],
    ),
    "hvp": (_hvp, lambda f, x: xlamini.jvp(xlamini.grad(lambda y: f(y).sum()), (x,), (jnp.cos(x),))[1]),
    "hessian": (_hvp, lambda f, x: xlamini.hessian(lambda y: f(y).sum())(x) @ jnp.cos(x)),
    "grad of grad": (_hvp, lambda f, x: xlamini.grad(
        lambda y: xlamini.grad(lambda z: f(z).sum())(y) @ lax.stop_gradient(jnp.cos(x)))(x)),
}
FORWARD = {"jvp", "linearize", "jacfwd", "transpose"}
SECOND = {"hvp", "hessian", "grad of grad"}
ROUNDING = {"half", "bfloat16", "int8"}
"""Forms whose finite differences mean nothing."""
OVER_DEVICES = {"shard_map", "psum"}
TABLE = {**UNARY, **BINARY, **CALLS, **DERIVATIVES}
NUMPY, OURS = 0, 1


def evaluate(program: Program, env: Env, meaning: int) -> Any:
    """The value of a program for these variables, the innermost one first; `meaning` is NUMPY or OURS."""
    form, *parts = program
    if form == "var":
        return env[parts[0] % len(env)]
    if form == "const":
        return (np if meaning == NUMPY else jnp).asarray(UNEQUAL * parts[0])
    if form == "cond":
        return _conditional(parts, env, meaning)
    function = TABLE[form][meaning]
    if form in CALLS or form in DERIVATIVES:
        return function(lambda y: evaluate(parts[0], (y, *env), meaning), evaluate(parts[1], env, meaning))
    return function(*(evaluate(part, env, meaning) for part in parts))


def _conditional(parts: Sequence[Program], env: Env, meaning: int) -> Any:
    x = evaluate(parts[2], env, meaning)
    branches = [lambda y, body=body: evaluate(body, (y, *env), meaning) for body in parts[:2]]
    if meaning == NUMPY:
        return branches[0](x) if x.sum() > EDGE else branches[1](x)
    return lax.cond(x.sum() > EDGE, *branches, x)


def is_near_a_corner(program: Program, x: np.ndarray) -> bool:
    """Whether finite differences in the program depend on their step, or jump beside it."""
    coarse, step = evaluate(program, (x,), NUMPY), STEPS[-1]
    finer, beside = (_with_step(program, x, *how) for how in ((step / 4, 0.0), (step / 16, step / 4)))
    return not (np.allclose(coarse, finer, 1e-7, 1e-7) and np.allclose(coarse, beside, 1e-2, 1e-2))


def _with_step(program: Program, x: np.ndarray, step: float, offset: float) -> Any:
    """The program with finite differences of another step, all of them at points that are moved by `offset`."""
    STEPS.append(step)
    OFFSETS.append(offset)
    try:
        return evaluate(program, (x,), NUMPY)
    finally:
        STEPS.pop()
        OFFSETS.pop()


# --- making and shrinking them


def program_of(seed: int) -> Program:
    """The random program of a seed."""
    chosen = random.Random(seed)
    return ("tanh", _made(chosen, chosen.randint(3, 5), {*CALLS, *DERIVATIVES}))


def _made(chosen: random.Random, depth: int, allowed: set[str]) -> Program:
    """A program of at most this depth, with calls among `allowed`; a derivative contains no other one."""
    roll = chosen.random()
    if depth == 0 or roll < 0.1:
        return ("const", round(chosen.uniform(-1, 1), 2)) if chosen.random() < 0.2 else ("var", chosen.randint(0, 2))
    less = depth - 1
    if roll < 0.3:
        return (chosen.choice([*UNARY]), _made(chosen, less, allowed))
    if roll < 0.5:
        return (chosen.choice([*BINARY]), _made(chosen, less, allowed), _made(chosen, less, allowed))
    if roll < 0.58:
        return ("cond", *(("tanh", _made(chosen, less, allowed)) for _ in range(2)), _made(chosen, less, allowed))
    form = chosen.choice(sorted(allowed))
    inner = allowed
    if form in DERIVATIVES:
        inner = allowed - {*DERIVATIVES} - {"custom_vjp" if form in FORWARD else "while"} - {"while"}
    if form in OVER_DEVICES:
        inner = inner - OVER_DEVICES
    return (form, ("tanh", _made(chosen, less, inner)), _made(chosen, less, allowed))


def forms(program: Program) -> set[str]:
    """The forms that occur in a program."""
    return {program[0]}.union(*(forms(part) for part in program[1:] if isinstance(part, tuple)))


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A smaller program that fails too: each part is replaced by its parts, or a variable, as long as that fails."""
    for smaller in _smaller(program):
        if fails(smaller):
            return shrunk(smaller, fails)
    return program


def _smaller(program: Program) -> Iterator[Program]:
    form, *parts = program
    nested = [part for part in parts if isinstance(part, tuple)]
    yield from nested
    if form not in ("var", "const"):
        yield ("var", 0)
    for i, part in enumerate(parts):
        if isinstance(part, tuple):
            for less in _smaller(part):
                yield (form, *parts[:i], less, *parts[i + 1 :])
