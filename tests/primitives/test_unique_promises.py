"""Scatters that promise XLA unique indices keep the promise: a CPU adds one update after another, a GPU loses some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.rows import all_rows
from tests.rows.row import Row, Sample
from tests.support import checks
from xlamini import lax, numpy as jnp
from xlamini.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal
from xlamini.staging.call.call import jit_p

TABLE, TWICE = np.arange(15, dtype=np.float32).reshape(5, 3), np.array([1, 1, 2])
SLICES = lax.GatherDimensionNumbers((1,), (), (0,))


def cases() -> Iterator[Any]:
    """Each row that has derivatives, with the first dtype and sample of which it has them."""
    for row in all_rows():
        pairs = ((d, s) for d in ("float64", "complex128") if d in row.dtypes for s in row.samples)
        found = next(((d, s) for d, s in pairs if row.differentiable_argnums(s, d)), None)
        if found is not None:
            yield pytest.param(row, *found, id=row.name)


def promises(jaxpr: Jaxpr) -> list[Equation]:
    """The scatters that promise unique indices, also within calls."""
    own = [eqn for eqn in jaxpr.eqns if _promises(eqn)]
    return own + [found for eqn in jaxpr.eqns if eqn.primitive is jit_p for found in promises(eqn.params["jaxpr"])]


def _promises(eqn: Equation) -> bool:
    return eqn.primitive.name.startswith("scatter") and eqn.params.get("unique_indices", False)


def assert_kept(closed: ClosedJaxpr, *operands: Any) -> None:
    """Run the program, and count for each such scatter how many updates an element gets."""
    if promises(closed.jaxpr):
        _run(closed.jaxpr, [*closed.consts, *operands])


def _run(jaxpr: Jaxpr, values: Any) -> list[Any]:
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], values, strict=True))

    def read(x: Any) -> Any:
        return x.val if isinstance(x, Literal) else env[x]

    for eqn in jaxpr.eqns:
        inputs = [read(x) for x in eqn.invars]
        if _promises(eqn):
            assert _most_updates(*inputs[:3], eqn.params) <= 1, eqn
        outs = (
            _run(eqn.params["jaxpr"], inputs)
            if eqn.primitive is jit_p
            else eqn.primitive.bind(*inputs, **eqn.params)
        )
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
    return [read(x) for x in jaxpr.outvars]


def _most_updates(x: Any, indices: Any, updates: Any, params: Any) -> int:
    nothing, ones = jnp.zeros(x.shape, jnp.int32), jnp.ones(updates.shape, jnp.int32)
    counts = lax.scatter_add(nothing, indices, ones, params["dimension_numbers"], mode=params["mode"])
    return int(counts.max(initial=0))


@pytest.mark.sample(24)
@pytest.mark.parametrize("row, dtype, sample", list(cases()))
def test_derivatives(row: Row, dtype: str, sample: Sample) -> None:
    with checks.wide(row, dtype):
        _check(row, checks.Point(row, sample, dtype))


def _check(row: Row, point: checks.Point) -> None:
    def back(*primals: Any) -> Any:
        return xlamini.vjp(point.fun, *primals)[1](point.weights)

    assert_kept(xlamini.make_jaxpr(back)(*point.primals), *point.primals)
    if row.batched:
        stacks = [np.stack([x, x]) for x in point.primals]
        assert_kept(xlamini.make_jaxpr(xlamini.vmap(back))(*stacks), *stacks)


PROGRAMS: dict[str, Any] = {
    "rows of a table": lambda t: xlamini.vmap(lambda i: t[i])(TWICE),
    "rows of rows": lambda t: xlamini.vmap(xlamini.vmap(lambda i: t[i]))(np.stack([TWICE, TWICE])),
    "rows by take": lambda t: xlamini.vmap(lambda i: jnp.take(t, i, axis=0))(TWICE),
    "slices": lambda t: xlamini.vmap(lambda i: lax.dynamic_slice_in_dim(t, i, 2))(TWICE),
    "slices that overlap": lambda t: lax.gather(t[:, 0], np.array([[0], [1]]), SLICES, (2,), unique_indices=True),
    "places moved inside": lambda t: lax.gather(
        t[:, 0], np.array([[7], [8]]), SLICES, (1,), unique_indices=True, mode="clip"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_what_is_read_more_than_once(name: str) -> None:
    gradient = xlamini.grad(lambda t: PROGRAMS[name](t).sum())
    assert_kept(xlamini.make_jaxpr(gradient)(TABLE), TABLE)


def test_one_read_for_each_example_is_promised_to_be_unique() -> None:
    """Else XLA adds atomically, where it need not."""
    gradient = xlamini.grad(lambda t: xlamini.vmap(lambda row, i: row[i])(t, np.array([0, 1, 1, 2, 0])).sum())
    (found,) = promises(xlamini.make_jaxpr(gradient)(TABLE).jaxpr)
    assert found.primitive.name in ("scatter", "scatter-add")


def test_a_broken_promise_is_found() -> None:
    broken = xlamini.make_jaxpr(lambda t: t.at[TWICE].add(1.0, unique_indices=True))(TABLE)
    with pytest.raises(AssertionError, match="unique_indices=True"):
        assert_kept(broken, TABLE)
