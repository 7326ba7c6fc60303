"""Bodies of scans, and the loop in plain Python that a scan is compared with.

A body is `body(w, carry, x)` of a captured vector, a carry and a slice. `by_python` runs it by a Python loop, on arrays
of whatever kind; so its derivatives are those of straight-line programs.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import xlamini
from tests.support.checks import assert_close
from xlamini import grad, jit, lax, numpy as jnp

Body = Callable[[Any, Any, Any], Any]


class Case(NamedTuple):
    """A body with its operands; carry and slices may be any containers."""

    body: Body
    init: Any
    xs: Any


W = np.array([0.3, -0.7, 0.4])
ROWS = np.array([[0.1, 0.5, -0.2], [0.7, -0.4, 0.3], [-0.6, 0.2, 0.9], [0.4, 0.8, -0.5], [0.2, -0.3, 0.6]])


def by_python(f: Callable[[Any, Any], Any], init: Any, xs: Any, reverse: bool = False) -> Any:
    """What `lax.scan` returns, by a loop in Python."""
    steps = range(xlamini.tree.leaves(xs)[0].shape[0])
    carry, ys = init, []
    for i in reversed(steps) if reverse else steps:
        carry, y = f(carry, xlamini.tree.map(lambda x: x[i], xs))  # noqa: B023
        ys.append(y)
    ordered = ys[::-1] if reverse else ys
    return carry, xlamini.tree.map(lambda *slices: jnp.stack(slices), *ordered)


def recurrent(w: Any, h: Any, x: Any) -> Any:
    new = jnp.tanh(w * h + x)
    return new, new * h


def counting(w: Any, carry: Any, x: Any) -> Any:
    i, h = carry
    return (i + 1, jnp.sin(h) * w + x * i), (i, h.sum())


def trees(w: Any, carry: Any, x: Any) -> Any:
    new = {"a": carry["a"] * jnp.cos(x["u"]), "b": [carry["b"][0] + x["v"] * w, carry["b"][0]]}
    return new, {"y": (new["a"] * w).sum(), "z": [x["v"], None]}


def fixed_carry(w: Any, carry: Any, x: Any) -> Any:
    scale, h = carry
    return (scale, h * scale + jnp.sin(x)), (scale, h)


def swapped(w: Any, carry: Any, x: Any) -> Any:
    a, b, c = carry
    return (b, c * w, a + x), a * b


def hoistable(w: Any, h: Any, x: Any) -> Any:
    return h * jnp.exp(w) + x * jnp.sin(w) * h, h


def linear(w: Any, h: Any, x: Any) -> Any:
    return h * w + x, h + 2.0 * x


def linear_counting(w: Any, carry: Any, x: Any) -> Any:
    i, h = carry
    return (i + 1, h * w * jnp.sin(i * 1.0) + x), h * i


def unused(w: Any, carry: Any, x: Any) -> Any:
    a, b = carry
    return (a * w, b + a), (jnp.ones(3) * 2.0, jnp.sin(b))


def called(w: Any, h: Any, x: Any) -> Any:
    inner = jit(lambda w, h: jnp.sin(w) * h + jnp.cos(w).sum())
    return inner(w, h) + x, inner(w, x)


def branching(w: Any, h: Any, x: Any) -> Any:
    return lax.cond(x[0] > 0.3, lambda h: jnp.sin(h) * w, lambda h: h * x, h), h


def nested(w: Any, h: Any, x: Any) -> Any:
    h, ys = lax.scan(lambda c, u: (jnp.sin(c) * u + x.sum(), c * w[0]), h[0], x, reverse=True)
    return ys + h, ys * w


def written_out(w: Any, h: Any, x: Any) -> Any:
    return lax.scan(lambda c, _: (jnp.sin(c) * w + x, c), h, None, length=2, unroll=True)


def checkpointed(w: Any, h: Any, x: Any) -> Any:
    return xlamini.checkpoint(recurrent)(w, h, x)


def mapped(w: Any, h: Any, x: Any) -> Any:
    return xlamini.vmap(lambda w, h, x: h * w + jnp.sin(x) * h)(w, h, x), x.sum()


CASES = {
    "recurrent": Case(recurrent, W * 2, ROWS),
    "counting": Case(counting, (0, W + 0.1), ROWS),
    "trees": Case(trees, {"a": W, "b": [W * 2, W - 1]}, {"u": ROWS, "v": ROWS[:, ::-1] * 2}),
    "fixed carry": Case(fixed_carry, (W + 1, W), ROWS),
    "swapped": Case(swapped, (W, W * W, W + 2), ROWS),
    "hoistable": Case(hoistable, W + 0.2, ROWS),
    "linear": Case(linear, W + 0.2, ROWS),
    "linear counting": Case(linear_counting, (1, W + 0.2), ROWS),
    "unused": Case(unused, (W, W * 3), ROWS),
    "called": Case(called, W * 3, ROWS),
    "branching": Case(branching, W * 3, ROWS),
    "nested": Case(nested, W * 3, ROWS),
    "written out": Case(written_out, W * 3, ROWS),
    "checkpointed": Case(checkpointed, W * 2, ROWS),
    "mapped": Case(mapped, W * 2, ROWS),
}


# --- a scan as a function of one number and the floats that it depends on

EXACT = 1e-9
"""The tolerance between two ways to the same number in double precision."""


def all_close(found: Any, expected: Any, tolerance: float = EXACT) -> None:
    """Equal trees of arrays, up to the tolerance."""
    paths, tree = xlamini.tree_util.tree_flatten_with_path(found)
    assert tree == xlamini.tree.structure(expected)
    for (path, a), b in zip(paths, xlamini.tree.leaves(expected), strict=True):
        if a.dtype == xlamini.dtypes.float0:
            assert a.shape == b.shape
            continue
        assert_close(a, b, tolerance, xlamini.tree_util.keystr(path))


def loop(case: Case, scan: Callable[..., Any] = lax.scan, **options: Any) -> Callable[..., Any]:
    """The scan as a function of (w, init, xs)."""
    return lambda w, init, xs: scan(lambda carry, x: case.body(w, carry, x), init, xs, **options)


def differentiable(case: Case, run: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the floating-point leaves of w, init and xs to one number, and these leaves."""
    leaves, tree = xlamini.tree.flatten((W, case.init, case.xs))

    def loss(*floats: Any) -> Any:
        given = iter(floats)
        args = xlamini.tree.unflatten(tree, [x if isinstance(x, int) else next(given) for x in leaves])
        outs = xlamini.tree.leaves(run(*args))
        return sum((jnp.sin(y * (i + 1.0)) * 0.5).sum() for i, y in enumerate(outs))

    return loss


def floats_of(case: Case) -> list[Any]:
    return [x for x in xlamini.tree.leaves((W, case.init, case.xs)) if not isinstance(x, int)]


def both(case: Case, **options: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The number that a scan gives, and the same by a loop in Python."""
    reverse = {"reverse": True} if options.get("reverse") else {}
    return differentiable(case, loop(case, **options)), differentiable(case, loop(case, by_python, **reverse))


def some(choices: Sequence[Any], count: int) -> list[Any]:
    """Pairs of a case's name and a choice: `count` for each case, others for the next case, so that all come up."""
    pairs = []
    for i, name in enumerate(CASES):
        pairs += [(name, choices[(i + k * (len(choices) // count)) % len(choices)]) for k in range(count)]
    return pairs


@functools.cache
def python_values(name: str, reverse: bool) -> Any:
    """What the loop in Python gives."""
    case = CASES[name]
    return jit(loop(case, by_python, reverse=reverse))(W, case.init, case.xs)


@functools.cache
def python_loss(name: str) -> Callable[..., Any]:
    """The number of a loop in Python, compiled."""
    return jit(both(CASES[name])[1])


@functools.cache
def python_gradient(name: str) -> Callable[..., Any]:
    """The gradient of a loop in Python, compiled."""
    return jit(grad(both(CASES[name])[1], tuple(range(len(floats_of(CASES[name]))))))
