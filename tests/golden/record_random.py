"""Records what JAX's random functions return, for xlamini to return the same.

Run it where JAX is installed; the tests need only the file it writes:

    python tests/golden/record_random.py

The generator is JAX's default: threefry2x32, with the partitionable layout of counters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
from replay import replay, summary

SHAPES = ([], [1], [3], [5, 7], [2, 3, 4], [0], [3, 0])
WIDE = 10**12

Call = dict[str, Any]


def call(name: str, seed: int | None, *args: Any, x64: bool = False, **kwargs: Any) -> Call:
    """One call in the form that `replay` understands."""
    return {"call": name, "seed": seed, "args": list(args), "kwargs": kwargs, "x64": x64}


def array(values: list[Any], dtype: str) -> dict[str, Any]:
    """An array argument."""
    return {"array": values, "dtype": dtype}


def keys() -> Iterator[Call]:
    """How seeds become keys, and keys become other keys."""
    for name in ("key", "PRNGKey"):
        for seed in (0, 1, 42, -1, 2**31, 2**32 - 1, 2**32 + 5, 2**63 - 1):
            yield call(name, None, seed)
            yield call(name, None, seed, x64=True)
    yield call("PRNGKey", None, array(7, "uint32"))
    for num in (1, 2, 3, 5, 8, 0, [2, 3], [4], []):
        yield call("split", 0, num)
    yield call("split", 42)
    for data in (0, 1, 7, 2**31, 2**32 - 1):
        yield call("fold_in", 0, data)
    yield call("fold_in", 42, array(-3, "int32"))


def bits() -> Iterator[Call]:
    """Raw bits of every width, in odd and empty shapes."""
    for shape in SHAPES:
        for width in (8, 16, 32):
            yield call("bits", 0, shape, dtype=f"uint{width}")
        yield call("bits", 0, shape, dtype="uint64", x64=True)
    yield call("bits", 1, [1000])
    yield call("bits", 0, [3], x64=True)


def uniform() -> Iterator[Call]:
    """Uniform floats of every width, with and without bounds."""
    for shape in SHAPES:
        yield call("uniform", 0, shape)
    for dtype in ("float32", "bfloat16", "float16"):
        yield call("uniform", 42, [6], dtype=dtype)
        yield call("uniform", 42, [6], dtype=dtype, minval=-2.0, maxval=5.0)
    yield call("uniform", 0, [6], dtype="float64", x64=True)
    yield call("uniform", 0, [6], x64=True, minval=-1.5, maxval=3.0)
    yield call("uniform", 0, [2, 3], minval=array([[0.0], [10.0]], "float32"), maxval=20.0)


def normal() -> Iterator[Call]:
    """Normal and truncated normal values."""
    for shape in ([], [3], [2, 3]):
        yield call("normal", 0, shape)
    for dtype in ("bfloat16", "float16", "complex64"):
        yield call("normal", 42, [4], dtype=dtype)
    yield call("normal", 0, [4], x64=True)
    yield call("truncated_normal", 0, -1.0, 2.0, [4])
    yield call("truncated_normal", 0, -2.0, 2.0, [2, 3], dtype="bfloat16")
    yield call("truncated_normal", 0, -2.0, 2.0, [3], x64=True)


def randint() -> Iterator[Call]:
    """Integers: ranges that are a power of two or not, full, empty, per element; every width."""
    for low, high in ((0, 10), (-5, 5), (0, 256), (0, 2**31 - 1), (-(2**31), 2**31 - 1), (5, 5)):
        yield call("randint", 0, [6], low, high)
    for dtype in ("int8", "int16", "uint8", "uint16", "uint32"):
        yield call("randint", 42, [2, 3], 0, 100, dtype=dtype)
    yield call("randint", 0, [6], -128, 128, dtype="int8")
    yield call("randint", 0, [6], 0, 256, dtype="uint8")
    yield call("randint", 0, [3], array([0, 10, 20], "int32"), array([5, 15, 1000], "int32"))
    yield call("randint", 0, [4], 0, 10, x64=True)
    yield call("randint", 0, [4], -WIDE, WIDE, x64=True)
    yield call("randint", 0, [4], -(2**63), 2**63 - 1, x64=True)
    yield call("randint", 0, [4], 0, WIDE, dtype="uint64", x64=True)
    yield call("randint", 0, [4], 0, 10, dtype="int32", x64=True)


def permutation() -> Iterator[Call]:
    """Shuffles: from 1626 elements on they take a second round of sorting."""
    for size in (0, 1, 2, 10, 1625, 1626, 5000):
        yield call("permutation", 0, size)
    matrix = array([[row * 10 + column for column in range(4)] for row in range(3)], "int32")
    yield call("permutation", 1, array([0.5, 1.5, 2.5, 3.5, 4.5], "float32"))
    for axis in (0, 1, -1):
        yield call("permutation", 1, matrix, axis=axis)
        yield call("permutation", 1, matrix, axis=axis, independent=True)
    yield call("permutation", 0, 10, x64=True)


def discrete() -> Iterator[Call]:
    """Draws from given probabilities or from an array."""
    yield call("bernoulli", 0, shape=[8])
    yield call("bernoulli", 0, 0.2, [8])
    yield call("bernoulli", 0, array([0.1, 0.5, 0.9], "float32"), [4, 3])
    logits = array([[0.1, 2.0, -1.0, 0.5], [1.0, 1.0, 1.0, 1.0]], "float32")
    yield call("categorical", 0, logits)
    yield call("categorical", 0, logits, axis=0)
    yield call("categorical", 0, logits, shape=[5, 2])
    yield call("gumbel", 0, [4])
    letters = array([10, 20, 30, 40, 50], "int32")
    yield call("choice", 0, letters, [6])
    yield call("choice", 0, letters, [3], replace=False)
    yield call("choice", 0, 7, [4])
    weights = array([0.1, 0.2, 0.3, 0.2, 0.2], "float32")
    yield call("choice", 0, letters, [6], p=weights)
    yield call("choice", 0, letters, [3], replace=False, p=weights)


def continuous() -> Iterator[Call]:
    """Floats through an elementary inverse distribution function."""
    for name in ("exponential", "laplace", "logistic", "cauchy", "gumbel"):
        yield call(name, 0, [6])
        yield call(name, 42, [2, 3], dtype="bfloat16")
        yield call(name, 0, [4], x64=True)
    yield call("gumbel", 0, [6], mode="high")
    yield call("lognormal", 0, 0.5, [4])


def coins() -> Iterator[Call]:
    """Signs, fine coins, and draws that do not repeat."""
    yield call("rademacher", 0, [8])
    yield call("rademacher", 0, [8], dtype="float32")
    yield call("bernoulli", 0, 0.3, [8], mode="high")
    logits = array([[0.1, 2.0, -1.0, 0.5], [1.0, 1.0, 1.0, 1.0]], "float32")
    yield call("categorical", 0, logits, shape=[3, 2], replace=False)
    yield call("categorical", 0, logits, axis=0, shape=[2, 4], replace=False)
    yield call("categorical", 0, logits, mode="high")
    matrix = array([[0, 1, 2], [3, 4, 5]], "int32")
    yield call("choice", 0, matrix, [2, 3], axis=1)
    yield call("choice", 0, matrix, [2], axis=1, replace=False)


def gammas() -> Iterator[Call]:
    """Gamma floats and what is made of them."""
    small, wide = array([0.5, 1.0, 3.0], "float32"), array([[2.0], [30.0]], "float32")
    for name in ("gamma", "loggamma"):
        yield call(name, 0, small, [4, 3])
    yield call("gamma", 42, wide, [2, 3], dtype="bfloat16")
    yield call("loggamma", 0, 2.5, [4], x64=True)
    yield call("loggamma", 0, 1e-4, [4])
    yield call("gamma", 0, array([0.0, -1.0, float("inf")], "float32"))
    yield call("beta", 0, small, wide)
    yield call("dirichlet", 0, array([[1.0, 2.0], [0.01, 0.02]], "float32"), [3, 2])
    yield call("chisquare", 0, small, [2, 3])
    yield call("f", 0, small, small)
    yield call("t", 0, 2, [5], dtype="float16")
    yield call("generalized_normal", 0, 1.5, [5])
    yield call("ball", 0, 2, 1.5, [3])


def families() -> Iterator[Call]:
    """Floats made of uniform or normal ones."""
    small, wide = array([0.5, 1.0, 3.0], "float32"), array([[2.0], [30.0]], "float32")
    for name in ("pareto", "rayleigh", "wald"):
        yield call(name, 0, small)
        yield call(name, 0, small, [2, 3])
        yield call(name, 42, 2, [4], dtype="float16")
    yield call("triangular", 0, 0, small, wide)
    yield call("weibull_min", 0, small, wide)
    yield call("weibull_min", 0, 2.0, 3.0, [4])
    yield call("maxwell", 0, [4])
    yield call("double_sided_maxwell", 0, small, wide, [2])


def counts() -> Iterator[Call]:
    """Whole numbers by waiting times and by rejection."""
    means = array([0.0, 0.001, 9.9, 10.0, 1000.0], "float32")
    yield call("poisson", 0, means)
    yield call("poisson", 7, 4.0, [20])
    yield call("poisson", 0, 40.0, [20], dtype="int16")
    yield call("poisson", 0, 20.0, [4], x64=True)
    chances = array([[0.2], [0.5], [0.99]], "float32")
    yield call("binomial", 0, array([0.0, 5.0, 300.0], "float32"), chances)
    yield call("binomial", 7, 100, 0.3, [20])
    yield call("binomial", 0, 9, 0.4, [20])
    yield call("binomial", 0, array([1.0, 1.0, -1.0, float("inf")], "float32"), array([0.0, -0.1, 0.5, 0.5], "float32"))
    yield call("multinomial", 0, 50, array([0.2, 0.3, 0.5], "float32"), shape=[4, 3])
    yield call("geometric", 0, array([0.1, 0.5, 1.0], "float32"), [3, 3])
    yield call("geometric", 0, 0.01, [6], dtype="int8")


def matrices() -> Iterator[Call]:
    """Correlated normal vectors and orthogonal matrices."""
    mean = array([1.0, 2.0, 3.0], "float32")
    cov = array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 0.5]], "float32")
    yield call("multivariate_normal", 0, mean, cov)
    yield call("multivariate_normal", 0, mean, cov, [2, 2])
    for size in ([3, [], None, None], [2, [2], None, 4], [4, [], None, 2], [2, [], "complex64", None]):
        yield call("orthogonal", 0, *size)


def generators() -> Iterator[Call]:
    """The other generators, whose bits are XLA's on this platform."""
    for impl in ("rbg", "unsafe_rbg"):
        yield call("key", None, 42, impl=impl)
        yield call("split", 0, 3, impl=impl)
        yield call("split", 0, [2, 2], impl=impl)
        yield call("fold_in", 0, 7, impl=impl)
        for width in (8, 16, 32):
            yield call("bits", 0, [2, 3], dtype=f"uint{width}", impl=impl)
        yield call("normal", 0, [3], impl=impl)
        yield call("randint", 0, [6], 0, 100, impl=impl)


def main() -> None:
    """Make every call and write the calls with their results, one a line."""
    groups = (keys, bits, uniform, normal, randint, permutation, discrete, continuous, coins)
    groups += (gammas, families, counts, matrices, generators)
    records = [
        {"group": group.__name__, **made, "result": summary(replay(jax, made))}
        for group in groups
        for made in group()
    ]
    lines = ",\n".join(json.dumps(record) for record in records)
    head = f'{{"jax": "{jax.__version__}", "records": [\n'
    path = Path(__file__).with_name("random.json")
    path.write_text(f"{head}{lines}\n]}}\n")
    print(f"{len(records)} calls, {path.stat().st_size:,} bytes in {path.name}")


if __name__ == "__main__":
    main()
