"""Scatters whose indices are promised to be unique or sorted: a CPU does without the promise, a GPU loses updates.

Every program is run equation by equation; for each such scatter the updates of an element are counted, and the index
vectors compared with those before them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.rows import all_rows
from tests.rows.row import Row
from tests.support import checks
from xlamini import lax, numpy as jnp
from xlamini.core.program.jaxpr import Equation, Jaxpr, Literal, subjaxprs
from xlamini.staging.call.call import jit_p

TABLE, TWICE = np.arange(15, dtype=np.float32).reshape(5, 3), np.array([1, 1, 2])
SLICES = lax.GatherDimensionNumbers((1,), (), (0,))
MOVES = ("gather", "scatter", "dynamic")
"""How the primitives begin from which scatters come."""


def assert_kept(fun: Callable[..., Any], *operands: Any) -> None:
    """Every scatter of `fun(*operands)` keeps its promises."""
    closed = xlamini.make_jaxpr(fun)(*operands)
    if has(closed.jaxpr, ("scatter",)):
        _run(closed.jaxpr, [*closed.consts, *xlamini.tree.leaves(operands)])


def has(jaxpr: Jaxpr, names: tuple[str, ...]) -> bool:
    """Whether some primitive's name begins so."""
    return any(
        eqn.primitive.name.startswith(names) or any(has(inner, names) for inner in subjaxprs(eqn)) for eqn in jaxpr.eqns
    )


def _run(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], values, strict=True))

    def read(x: Any) -> Any:
        return x.val if isinstance(x, Literal) else env[x]

    for eqn in jaxpr.eqns:
        outs = _outputs(eqn, [read(x) for x in eqn.invars])
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
    return [read(x) for x in jaxpr.outvars]


def _outputs(eqn: Equation, inputs: list[Any]) -> Any:
    if eqn.primitive is jit_p:
        return _run(eqn.params["jaxpr"], inputs)
    if eqn.primitive.name.startswith("scatter"):
        _check_promises(eqn, *inputs[:3])
    return eqn.primitive.bind(*inputs, **eqn.params)


def _check_promises(eqn: Equation, x: Any, indices: Any, updates: Any) -> None:
    numbers = eqn.params["dimension_numbers"]
    if eqn.params["unique_indices"]:
        nothing, ones = jnp.zeros(x.shape, jnp.int32), jnp.ones(updates.shape, jnp.int32)
        counts = lax.scatter_add(nothing, indices, ones, numbers, mode=eqn.params["mode"])
        assert int(counts.max(initial=0)) <= 1, f"not unique: {eqn}"
    if eqn.params["indices_are_sorted"]:
        for vectors in _batches(np.asarray(indices), numbers):
            assert vectors == sorted(vectors), f"not sorted: {eqn}"


def _batches(indices: np.ndarray, numbers: lax.ScatterDimensionNumbers) -> Any:
    """For each batch the list of its index vectors, their components in the order of the operand's dimensions."""
    along, order = numbers.scatter_indices_batching_dims, np.argsort(numbers.scatter_dims_to_operand_dims)
    vectors = np.moveaxis(indices, along, range(len(along)))[..., order]
    count = math.prod(vectors.shape[: len(along)])
    return vectors.reshape(count, math.prod(vectors.shape[len(along) : -1]), len(order)).tolist()


def cases() -> Iterator[Any]:
    """Each row, with its first sample in a dtype that has derivatives if there is one."""
    for row in all_rows():
        dtype = next((d for d in ("float64", "complex128") if d in row.dtypes), row.dtypes[0])
        yield pytest.param(row, dtype, id=row.name)


@pytest.mark.sample(24)
@pytest.mark.parametrize("row, dtype", list(cases()))
def test_rows(row: Row, dtype: str) -> None:
    with checks.wide(row, dtype):
        sample = row.samples[0]
        operands = row.arguments(sample, dtype, row.rng("promises"))
        if not has(xlamini.make_jaxpr(checks.flat(row.op))(*operands).jaxpr, MOVES):
            return
        programs = [(checks.flat(row.op), operands)]
        if row.differentiable_argnums(sample, dtype):
            programs.append(_backward(checks.Point(row, sample, dtype)))
        for fun, values in programs:
            _check(fun, values, row.batched)


def _backward(point: checks.Point) -> tuple[Callable[..., Any], Sequence[Any]]:
    return lambda *primals: xlamini.vjp(point.fun, *primals)[1](point.weights), point.primals


def _check(fun: Callable[..., Any], operands: Sequence[Any], batched: bool) -> None:
    """Alone, in a batch, and in a batch of one operand alone, so that its examples share the others."""
    assert_kept(fun, *operands)
    if not batched:
        return
    count = len(operands)
    alone = [tuple(0 if i == j else None for j in range(count)) for i in range(count)]
    for axes in {(0,) * count, *alone}:
        values = [x if a is None else np.stack([x, x]) for x, a in zip(operands, axes, strict=True)]
        assert_kept(xlamini.vmap(fun, axes), *values)


PROGRAMS: dict[str, Any] = {
    "rows of a table": lambda t: xlamini.vmap(lambda i: t[i])(TWICE),
    "rows of rows": lambda t: xlamini.vmap(xlamini.vmap(lambda i: t[i]))(np.stack([TWICE, TWICE])),
    "rows by take": lambda t: xlamini.vmap(lambda i: jnp.take(t, i, axis=0))(TWICE),
    "slices": lambda t: xlamini.vmap(lambda i: lax.dynamic_slice_in_dim(t, i, 2))(TWICE[::-1]),
    "slices that overlap": lambda t: lax.gather(t[:, 0], np.array([[0], [1]]), SLICES, (2,), unique_indices=True),
    "places moved inside": lambda t: lax.gather(
        t[:, 0], np.array([[7], [8]]), SLICES, (1,), unique_indices=True, mode="clip"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_what_is_read_more_than_once(name: str) -> None:
    assert_kept(xlamini.grad(lambda t: PROGRAMS[name](t).sum()), TABLE)


def test_one_read_for_each_example_is_promised_to_be_unique() -> None:
    """Else XLA adds atomically, where it need not."""
    gradient = xlamini.grad(lambda t: xlamini.vmap(lambda row, i: row[i])(t, np.array([0, 1, 1, 2, 0])).sum())
    (found,) = (e for e in xlamini.make_jaxpr(gradient)(TABLE).eqns if e.primitive.name.startswith("scatter"))
    assert found.params["unique_indices"]


@pytest.mark.parametrize(
    "what, promise, rows", [("unique", "unique_indices", [1, 1, 2]), ("sorted", "indices_are_sorted", [1, 0, 2])]
)
def test_a_broken_promise_is_found(what: str, promise: str, rows: list[int]) -> None:
    with pytest.raises(AssertionError, match=f"(?s)not {what}: .*{promise}"):
        assert_kept(lambda t: t.at[np.array(rows)].add(1.0, **{promise: True}), TABLE)
