"""A row of the tests: an operation beside a NumPy reference, and the arguments to try both on.

    Row("tanh", lax.tanh, np.tanh)                                           one array, of every float dtype
    Row("atan2", lax.atan2, np.arctan2, samples=pairs())                     two arrays, or an array and a scalar
    Row("sqrt", lax.sqrt, np.sqrt, samples=singles(domain=(0.1, 4)))         positive numbers only
    Row("reverse", lambda x: lax.rev(x, (1,)), lambda x: x[:, ::-1], samples=[[Arg((2, 3))]], dtypes=FLOATS + INTS)
    Row("take", take, reference, samples=[[Arg((5,)), Arg((3,), domain=(0, 5), dtype="int32")]])

A row of a public function is named by its path below xlamini, with what is special about it after a colon, as in
"numpy.median: axis"; a name without a dot is one of `lax`. `python -m tests.support.report` counts them by that.

`op` takes arrays only: what is static is bound into it with a lambda. For each row, dtype in `row.dtypes` and sample in
`row.samples`, a test calls `row.op` on `row.arguments(sample, dtype, rng)` and compares with `row.expected(arguments)`,
which widens floats that NumPy cannot compute with.
"""
from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

HALVES = ("bfloat16", "float16")
SINGLES = ("float32",)
FLOATS = (*HALVES, "float32", "float64")
COMPLEXES = ("complex64", "complex128")
SIGNEDS = ("int8", "int16", "int32", "int64")
UNSIGNEDS = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNEDS + UNSIGNEDS
BOOLS = ("bool",)

_TOLERANCES = {
    "bfloat16": 2e-2,
    "float16": 2e-3,
    "float32": 2e-6,
    "float64": 1e-13,
    "complex64": 5e-6,
    "complex128": 1e-13,
}

Array = np.ndarray
Domain = tuple[float, float]


@dataclass(frozen=True)
class Arg:
    """One argument: an array of random numbers in `domain` (both parts of a complex number; -4 is 0 for unsigned).

    `dtype` None means the dtype under test; `diff` False that no derivative in it is asked; with `values` the array
    is made by hand: `values(rng, dtype)`.
    """

    shape: tuple[int, ...] = (2, 3)
    domain: Domain = (-4, 4)
    dtype: str | None = None
    diff: bool = True
    values: Callable[[np.random.Generator, np.dtype], Array] | None = None

    def make(self, dtype: str, rng: np.random.Generator) -> Array:
        """A random array as described."""
        kind = to_dtype(self.dtype or dtype)
        if self.values is not None:
            return np.asarray(self.values(rng, kind), kind)
        return random_array(self.shape, self.domain, kind, rng)


Sample = Sequence[Arg]


@dataclass(frozen=True)
class Row:
    """An operation and what is expected of it; the module's docstring has examples."""

    name: str
    op: Callable[..., Any]
    reference: Callable[..., Any] | None
    """None where no simple reference exists: then only derivatives, batching and shapes are checked."""
    samples: Sequence[Sample] = ((Arg(),),)
    dtypes: Sequence[str] = FLOATS
    differentiable: bool = True
    """Whether derivatives in inexact arguments are compared with finite differences, in float64 or complex128."""
    order: int = 2
    """Up to which order of derivative."""
    linear: bool = False
    """Whether it is linear in all its differentiable arguments together (so that linear_transpose serves)."""
    batched: bool = True
    """Whether vmap is compared with a loop."""
    tolerance: Mapping[str, float] = field(default_factory=dict)
    """Relative and absolute tolerance per dtype, where it is not the usual one."""
    exact: bool = False
    """Whether results equal the reference's exactly, in every dtype."""
    x64: bool = False
    """Whether it needs 64-bit dtypes also when its arguments are narrower."""
    specials: bool = False
    """Whether real float arguments may be replaced by 0.0, -0.0, 1, inf, -inf, nan (see `special_arguments`)."""

    def __repr__(self) -> str:
        return self.name

    def tolerance_of(self, dtype: Any) -> float:
        """For results computed in `dtype`."""
        name = np.dtype(dtype).name
        return 0.0 if self.exact else self.tolerance.get(name, _TOLERANCES.get(name, 0.0))

    def rng(self, *salt: Any) -> np.random.Generator:
        """Random numbers that are the same in every run."""
        return np.random.default_rng(zlib.crc32(repr((self.name, *salt)).encode()))

    def arguments(self, sample: Sample, dtype: str, rng: np.random.Generator) -> list[Array]:
        """The arguments of one call."""
        return [arg.make(dtype, rng) for arg in sample]

    def special_arguments(self, sample: Sample, dtype: str) -> list[Array]:
        """As many vectors of special values as the sample has arguments, every combination once."""
        values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])
        grids = np.meshgrid(*[values] * len(sample), indexing="ij")
        return [g.reshape(-1).astype(to_dtype(dtype)) for g in grids]

    def differentiable_argnums(self, sample: Sample, dtype: str) -> tuple[int, ...]:
        """Positions of the arguments in which derivatives are asked."""
        kinds = [np.dtype(to_dtype(arg.dtype or dtype)).kind for arg in sample]
        return tuple(i for i, arg in enumerate(sample) if self.differentiable and arg.diff and kinds[i] in "fcV")

    def expected(self, arguments: Sequence[Array]) -> Any:
        """The reference's result; the narrow floats are computed in float32 and rounded by the caller."""
        assert self.reference is not None
        return self.reference(*(widened(x) for x in arguments))


def to_dtype(name: str) -> np.dtype:
    """The dtype of this name, also one of ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name, name))


def widened(x: Array) -> Array:
    """Floats narrower than 32 bits as float32."""
    return x.astype(np.float32) if x.dtype.kind in "fV" and x.dtype.itemsize < 4 else x


def random_array(shape: tuple[int, ...], domain: Domain, dtype: np.dtype, rng: np.random.Generator) -> Array:
    """Uniform numbers in `domain`: integers for integer dtypes, both parts for complex ones."""
    low, high = domain
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    if dtype.kind in "iu":
        low = 0 if dtype.kind == "u" and low < 0 else low
        return np.asarray(rng.integers(int(np.ceil(low)), int(high), shape, endpoint=high > low + 1), dtype)
    numbers = rng.uniform(low, high, shape)
    if dtype.kind == "c":
        numbers = numbers + 1j * rng.uniform(low, high, shape)
    return np.asarray(numbers, dtype)


def singles(shape: tuple[int, ...] = (2, 3), **options: Any) -> list[Sample]:
    """Samples of one array: of this shape, of rank 0, and without elements."""
    return [[Arg(s, **options)] for s in (shape, (), (0, 2))]


def pairs(shape: tuple[int, ...] = (2, 3), **options: Any) -> list[Sample]:
    """Samples of two arrays: of one shape, and each a scalar beside the other."""
    return [[Arg(a, **options), Arg(b, **options)] for a, b in ((shape, shape), (shape, ()), ((), shape))]
