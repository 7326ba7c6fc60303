"""Functions of arrays whose sizes are symbolic: exported once, they give at each size what they give without export."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import ShapeDtypeStruct, export, jit, nn, random
from xlamini.errors import InconclusiveDimensionOperation

SIZES = 1, 2, 5

SLICES = {
    "all but the last": lambda x: x[:-1],
    "at most two": lambda x: x[-2:],
    "beyond the end": lambda x: x[1:9],
    "every second": lambda x: x[1::2],
    "backwards": lambda x: x[::-1],
    "every second backwards": lambda x: x[::-2],
    "inner ones backwards": lambda x: x[-2:0:-1],
    "last": lambda x: x[-1],
    "last by its size": lambda x: x[len_of(x) - 1],
    "first half": lambda x: x[: len_of(x) // 2],
    "a table up to the size": lambda x: jnp.arange(9)[: len_of(x)],
}
RANGES = {
    "arange": lambda x: jnp.arange(len_of(x)),
    "arange of floats": lambda x: jnp.arange(0.0, len_of(x)),
    "arange by steps": lambda x: jnp.arange(1, 2 * len_of(x), 2),
    "arange down": lambda x: jnp.arange(len_of(x) - 1, -1, -1),
    "linspace": lambda x: jnp.linspace(0, 1, len_of(x), retstep=True),
    "linspace without its end": lambda x: jnp.linspace(0, 1, len_of(x), endpoint=False),
    "geomspace": lambda x: jnp.geomspace(1, 8, len_of(x)),
    "eye": lambda x: jnp.eye(len_of(x), k=1),
    "tril": lambda x: jnp.tril(x @ x.T, -1),
    "triangles beyond the edge": lambda x: (jnp.tril(x @ x.T, -2), jnp.triu(x, 2), jnp.tril(x.T, 2**40)),
    "tri": lambda x: jnp.tri(len_of(x)),
    "diagonal": lambda x: jnp.diagonal(x @ x.T, -1),
    "trace": lambda x: jnp.trace(x @ x.T),
    "diagonal of a label": lambda x: jnp.einsum("ii,ij->j", x @ x.T, x),
    "fftfreq": lambda x: jnp.fft.fftfreq(len_of(x)),
}
REDUCTIONS = {
    "mean": lambda x: x.mean(),
    "var": lambda x: x.var(0, ddof=1),
    "median": lambda x: jnp.median(x, 0),
    "median of all": lambda x: jnp.median(x),
    "quantile": lambda x: jnp.quantile(x, 0.3, axis=0),
    "trapezoid": lambda x: jnp.trapezoid(x, axis=0),
    "cov": lambda x: jnp.cov(x.T),
    "searchsorted": lambda x: jnp.searchsorted(jnp.sort(x[:, 0]), x),
    "segment_sum": lambda x: xlamini.ops.segment_sum(x, jnp.arange(len_of(x)) // 2, len_of(x)),
    "determinant": lambda x: jnp.linalg.det(x @ x.T + jnp.eye(len_of(x))),
}
ARRANGED = {
    "pad": lambda x: jnp.pad(x, ((1, 2), (0, 0)), constant_values=7),
    "pad by the size": lambda x: jnp.pad(jnp.arange(3), (0, len_of(x))),
    "pad to whole blocks": lambda x: jnp.pad(x, ((0, -len_of(x) % 4), (0, 0))),
    "pad by the edge": lambda x: jnp.pad(x, 2, mode="edge"),
    "pad by wrapping": lambda x: jnp.pad(x, 7, mode="wrap"),
    "pad by reflection": lambda x: jnp.pad(x, 7, mode="reflect"),
    "pad by symmetry": lambda x: jnp.pad(x, 7, mode="symmetric"),
    "roll": lambda x: jnp.roll(x, 3, axis=0),
    "roll by the size": lambda x: jnp.roll(jnp.arange(4), len_of(x)),
    "concatenate": lambda x: jnp.concatenate([x, x[:1], jnp.ones((2, 3))]),
    "tile": lambda x: jnp.tile(jnp.arange(3), (len_of(x), 2)),
    "repeat": lambda x: jnp.repeat(jnp.arange(3), len_of(x)),
    "resize": lambda x: jnp.resize(x, (2, 4)),
    "take": lambda x: jnp.take(x, jnp.array([0, -1, 9]), axis=0),
    "take along an axis": lambda x: jnp.take_along_axis(x, jnp.argsort(x, 0), 0),
    "one_hot": lambda x: nn.one_hot(jnp.arange(3), len_of(x)),
    "set": lambda x: x.at[::2].set(0).at[len_of(x) - 1].add(1),
    "delete": lambda x: jnp.delete(x, -1, axis=0),
    "split": lambda x: jnp.split(x, [1, len_of(x)])[1],
    "convolve": lambda x: jnp.convolve(x[:, 0], jnp.arange(2.0), "valid"),
    "permutation": lambda x: random.permutation(random.key(0), x),
}


def len_of(x: Any) -> Any:
    return x.shape[0]


def exported(fun: Callable[..., Any], shape: str = "n, 3", constraints: tuple[str, ...] = ()) -> Any:
    return export.export(jit(fun))(ShapeDtypeStruct(export.symbolic_shape(shape, constraints=constraints), "float32"))


@pytest.mark.parametrize(
    "group", (SLICES, RANGES, REDUCTIONS, ARRANGED), ids=("slices", "ranges", "reductions", "arranged")
)
def test_values_at_each_size_are_those_without_export(group: dict[str, Callable[..., Any]]) -> None:
    def all_of(x: Any) -> dict[str, Any]:
        return {name: fun(x) for name, fun in group.items()}

    once = exported(all_of)
    for n in SIZES:
        x = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
        found, wanted = once.call(x), jit(all_of)(x)
        for name in group:
            for f, w in zip(xlamini.tree.leaves(found[name]), xlamini.tree.leaves(wanted[name]), strict=True):
                assert (f.dtype, f.shape) == (w.dtype, w.shape), name
                np.testing.assert_allclose(f, w, 1e-5, 1e-5, err_msg=f"{name} at {n}")


MISTAKES = {
    "a loop over rows": (lambda x: sum(x[i] for i in range(len_of(x))), "the size n is symbolic.*lax.fori_loop"),
    "a number of the size": (lambda x: x * float(len_of(x)), "the size n is symbolic, and a number is needed"),
    "a branch": (lambda x: x if len_of(x) > 3 else -x, r"n > 3 depends.*constraints=\['n >= 4'\]"),
    "too few samples": (lambda x: jnp.gradient(x, axis=0), r"constraints=\['n >= 2'\]"),
    "unequal parts": (lambda x: jnp.split(x, 2), r"the constraint 'mod\(n, 2\) == 0' says that they do"),
    "a fractional step": (lambda x: jnp.arange(0, len_of(x), 0.5), "takes whole bounds and steps, got 0.5"),
    "two arrays": (lambda x: x + jnp.ones((4, 3)), r"float32\[n,3\], float32\[4,3\]; sizes must be equal or 1"),
}


def test_two_sizes_of_one_array() -> None:
    def of_both(x: Any) -> Any:
        return jnp.eye(*x.shape, k=1), jnp.linalg.matrix_rank(x), jnp.triu(x, 3), jnp.diff(x[:, :3], n=2, axis=1)

    once = exported(of_both, "n, m + 2")
    for shape in ((1, 3), (4, 3), (3, 6)):
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        for found, wanted in zip(once.call(x), of_both(x), strict=True):
            np.testing.assert_allclose(found, wanted, 1e-5)


@pytest.mark.parametrize("name", MISTAKES)
def test_an_error_says_what_to_do(name: str) -> None:
    fun, text = MISTAKES[name]
    with pytest.raises((InconclusiveDimensionOperation, TypeError, ValueError), match=text):
        exported(fun)


def test_a_constraint_decides() -> None:
    once = exported(lambda x: jnp.gradient(x, axis=0), constraints=("n >= 2",))
    halves = exported(lambda x: jnp.split(x, 2)[1], constraints=("mod(n, 2) == 0",))
    x = np.arange(12.0, dtype=np.float32).reshape(4, 3) ** 2
    np.testing.assert_allclose(once.call(x), np.gradient(x, axis=0))
    np.testing.assert_allclose(once.call(x[:2]), np.gradient(x[:2], axis=0))
    np.testing.assert_array_equal(halves.call(x), x[2:])
