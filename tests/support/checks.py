"""How a row of tests/rows is checked, and how arrays are compared.

Each check takes a row, one of its samples and a dtype, and raises AssertionError where the operation, its derivatives
or its batching are wrong. tests/test_rows.py runs them on all rows, and on operations that are wrong on purpose.
"""
from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import xlamini
from tests.rows.row import Array, Row, Sample, to_dtype
from xlamini.core.program.avals import ShapedArray
from xlamini.core.program.jaxpr import Jaxpr, subjaxprs
from xlamini.core.program.primitive import Primitive
from xlamini.core.program.tangents import is_differentiable, tangent_aval
from xlamini.interpreters.jvp import jvp as jvp_of_jaxpr
from xlamini.interpreters.linearize import linearize as linearize_jaxpr
from xlamini.interpreters.transpose import transpose
from xlamini.primitives.shape.shape import sum_over

STEP = 1e-5
"""Of finite differences in double precision: their error is about STEP² plus 1e-16 / STEP."""
FINITE, EXACT = 3e-6, 1e-9
"""Tolerances beside finite differences, and between two ways to the same number in double precision."""
BATCH = 3

UNOPTIMIZED = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""XLA options for short compile times, for programs of which only the values are checked."""


WIDE = (np.int64, np.uint64, np.float64, np.complex128)


def wide(row: Row, dtype: str) -> Any:
    """The context in which arrays of this dtype exist."""
    return xlamini.enable_x64(True) if row.x64 or to_dtype(dtype) in WIDE else contextlib.nullcontext()


def leaves(out: Any) -> list[Any]:
    """The arrays of a result."""
    return list(out) if isinstance(out, tuple | list) else [out]


def flat(fun: Callable[..., Any]) -> Callable[..., list[Any]]:
    """The same function with a list of arrays as its result."""
    return lambda *args: leaves(fun(*args))


def comparable(x: Any) -> Array:
    """A NumPy array in a dtype that NumPy compares well."""
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind in "Vf" and x.dtype.names is None else x


def assert_close(found: Any, expected: Any, tolerance: float, what: str = "") -> None:
    """Equal shapes, and values equal up to the tolerance, relative and absolute."""
    found, expected = comparable(found), comparable(expected)
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}"
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=what)


def assert_all_close(found: Sequence[Any], expected: Sequence[Any], tolerance: float, what: str = "") -> None:
    assert len(found) == len(expected), f"{what}: {len(found)} results, expected {len(expected)}"
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert_close(a, b, tolerance, f"{what}, result {i}")


# --- values


def check_values(row: Row, sample: Sample, dtype: str, under_jit: bool = True) -> None:
    """The operation equals its reference, eagerly and under jit, and its result has the dtype it should."""
    arguments = row.arguments(sample, dtype, row.rng(dtype, key_of(sample)))
    _check_values_of(row, arguments, dtype, under_jit)
    if row.specials and to_dtype(dtype).kind == "f":
        _check_values_of(row, row.special_arguments(sample, dtype), dtype, False)


def key_of(sample: Sample) -> Any:
    """What tells samples apart, the same in every run."""
    return [(arg.shape, arg.domain, arg.dtype) for arg in sample]


def _check_values_of(row: Row, arguments: Sequence[Array], dtype: str, under_jit: bool) -> None:
    with wide(row, dtype):
        arrays = xlamini.device_put(list(arguments))
        eager = flat(row.op)(*arrays)
        tolerance = row.tolerance_of(_computed_in(eager[0].dtype, to_dtype(dtype)))
        if under_jit:
            jitted = flat(xlamini.jit(row.op))(*arrays)
            assert [x.dtype for x in jitted] == [x.dtype for x in eager], "jit changes the dtype"
            assert_all_close(jitted, eager, tolerance, "jit beside eager")
    if row.reference is not None:
        _check_beside_reference(row, arguments, eager, tolerance, to_dtype(dtype))


def _check_beside_reference(
    row: Row, arguments: Sequence[Array], found: Sequence[Any], tolerance: float, dtype: np.dtype
) -> None:
    with np.errstate(all="ignore"):
        expected = [np.asarray(x) for x in leaves(row.expected(arguments))]
        for x, reference in zip(found, expected, strict=True):
            _check_dtype(x.dtype, reference.dtype, dtype)
        rounded = [e.astype(x.dtype) for x, e in zip(found, expected, strict=True)]
    assert_all_close(found, rounded, tolerance, f"{row.name} of {dtype}")


def _computed_in(found: np.dtype, asked: np.dtype) -> np.dtype:
    """The narrower of the result's dtype and the dtype under test, both in floating point."""
    inexact = [d for d in (found, asked) if is_differentiable_dtype(d)]
    return min(inexact, key=lambda d: d.itemsize / (1 + (d.kind == "c")), default=found)


def is_differentiable_dtype(dtype: np.dtype) -> bool:
    return is_differentiable(ShapedArray((), dtype))


def _check_dtype(found: np.dtype, reference: np.dtype, asked: np.dtype) -> None:
    """That of the reference; or of its kind and, if both are inexact, as wide as the argument."""
    if found == reference:
        return
    kinds = {"V": "f", "u": "i"}
    found_kind, kind = (kinds.get(d.kind, d.kind) for d in (found, reference))
    assert found_kind == kind, f"the result has dtype {found}, the reference {reference}"
    if kind in "fc" and is_differentiable_dtype(asked):
        widths = [d.itemsize / (1 + (d.kind == "c")) for d in (found, asked)]
        assert widths[0] == max(widths[1], 4 if kind == "c" else 0), f"the result has dtype {found} for {asked}"


# --- derivatives


def check_derivatives(row: Row, sample: Sample, dtype: str, options: Any = None) -> None:
    """jvp equals finite differences, linearize equals jvp, vjp is the transpose of jvp; so again for the gradient.

    All of it is one program, because compiling is what takes time; `options` are the compiler's.
    """
    with wide(row, dtype):
        point = Point(row, sample, dtype)
        check_types_of_rewrites(point.fun, point.primals)
        first, second, linear = xlamini.jit(
            lambda *args: _derivatives(point, row, *args), compiler_options=options
        )(*point.operands)
        _check_first_order(point, first)
        if second:
            _check_second_order(point, second)
        if linear:
            assert_all_close(linear[0], linear[1], EXACT, "linear_transpose beside vjp")


def _derivatives(point: Point, row: Row, primals: Any, tangents: Any, others: Any, cotangents: Any) -> Any:
    first = _first_order(point, primals, tangents, cotangents)
    second = _second_order(point, primals, tangents, others) if row.order > 1 else None
    if not row.linear:
        return first, second, None
    transposed = xlamini.linear_transpose(point.fun, *primals)(cotangents)
    return first, second, (transposed, xlamini.vjp(point.fun, *primals)[1](cotangents))


class Point:
    """A row's function of its differentiable arguments, a place, and directions on both sides."""

    def __init__(self, row: Row, sample: Sample, dtype: str, salt: Any = 0):
        rng = row.rng("derivatives", dtype, key_of(sample), salt)
        arguments = row.arguments(sample, dtype, rng)
        chosen = row.differentiable_argnums(sample, dtype)
        self.primals = [arguments[i] for i in chosen]
        self.tangents, self.others = ([_direction(x, rng) for x in self.primals] for _ in range(2))
        self.fun = _float_results(_partly_applied(row.op, arguments, chosen))
        shapes = xlamini.eval_shape(self.fun, *self.primals)
        self.weights = [_direction(np.zeros(s.shape, s.dtype), rng) for s in shapes]

    @property
    def operands(self) -> Any:
        return tuple(self.primals), tuple(self.tangents), tuple(self.others), self.weights

    def scalar(self, *primals: Any) -> Any:
        """A real number that depends on every element of every result, not linearly."""
        return total([real(w * y * (1 + 0.3 * y)) for w, y in zip(self.weights, self.fun(*primals), strict=True)])


def real(x: Any) -> Any:
    return xlamini.lax.real(x) if x.dtype.kind == "c" else x


def total(terms: Sequence[Any]) -> Any:
    """The sum of all elements of all arrays."""
    return sum((summed(t) for t in terms), np.float64(0))


def summed(x: Any) -> Any:
    return sum_over(x, range(x.ndim))


def _partly_applied(op: Callable[..., Any], arguments: Sequence[Any], chosen: Sequence[int]) -> Callable[..., Any]:
    def applied(*values: Any) -> Any:
        every = list(arguments)
        for i, value in zip(chosen, values, strict=True):
            every[i] = value
        return op(*every)

    return applied


def _float_results(fun: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Only the results that have derivatives."""
    return lambda *args: [x for x in leaves(fun(*args)) if is_differentiable_dtype(x.dtype)]


def _direction(x: Array, rng: np.random.Generator) -> Array:
    parts = rng.uniform(-1, 1, (2, *x.shape))
    return (parts[0] + 1j * parts[1] if x.dtype.kind == "c" else parts[0]).astype(x.dtype)


def finite_difference(fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """The derivative of `fun` along `tangents`, by central differences."""
    ahead, behind = (
        fun(*(x + sign * STEP * v for x, v in zip(primals, tangents, strict=True))) for sign in (1, -1)
    )
    return [(a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]


def _pairing(cotangents: Sequence[Any], tangents: Sequence[Any]) -> float:
    """The number that a cotangent gives to a tangent, of real or complex values."""
    pairs = zip(cotangents, tangents, strict=True)
    return sum((np.sum(np.asarray(c) * np.asarray(t)).real for c, t in pairs), 0.0)


def _first_order(point: Point, primals: Any, tangents: Any, cotangents: Any) -> dict[str, Any]:
    """All ways to first derivatives."""
    outs, pushed = xlamini.jvp(point.fun, primals, tangents)
    same_outs, push = xlamini.linearize(point.fun, *primals)
    also_outs, pullback = xlamini.vjp(point.fun, *primals)
    return {
        "values": [point.fun(*primals), outs, same_outs, also_outs],
        "differences": finite_difference(point.fun, primals, tangents),
        "pushed": [pushed, push(*tangents)],
        "pulled": pullback(cotangents),
    }


def _check_first_order(point: Point, found: dict[str, Any]) -> None:
    outs, *every_outs = found["values"]
    for same in every_outs:
        assert_all_close(same, outs, EXACT, "values beside derivatives")
    pushed, pushed_again = found["pushed"]
    assert_all_close(pushed, found["differences"], FINITE * scale_of(pushed), "jvp beside finite differences")
    assert_all_close(pushed_again, pushed, EXACT * scale_of(pushed), "linearize beside jvp")
    assert [x.dtype for x in found["pulled"]] == [x.dtype for x in point.primals], "dtypes of cotangents"
    ahead, back = _pairing(point.weights, pushed), _pairing(found["pulled"], point.tangents)
    assert_close(back, ahead, EXACT * scale_of([ahead]), "vjp beside jvp")


def scale_of(arrays: Sequence[Any]) -> float:
    """The largest number, or 1: what an absolute error is compared with."""
    return max([1.0, *(float(np.max(np.abs(a), initial=0)) for a in arrays)])


def _second_order(point: Point, primals: Any, tangents: Any, others: Any) -> Any:
    """Both orders of forward and reverse, and differences of the gradient."""
    argnums = tuple(range(len(primals)))
    gradient = xlamini.grad(point.scalar, argnums)
    forward_over_reverse = xlamini.jvp(gradient, primals, tangents)[1]
    reverse_over_forward = xlamini.grad(lambda *x: xlamini.jvp(point.scalar, x, tangents)[1], argnums)(*primals)
    reverse_over_reverse = xlamini.vjp(gradient, *primals)[1](others)
    differences = finite_difference(gradient, primals, tangents)
    return forward_over_reverse, reverse_over_forward, reverse_over_reverse, differences


def _check_second_order(point: Point, found: Any) -> None:
    forward, reverse, twice, differences = found
    size = scale_of(differences)
    assert_all_close(forward, differences, FINITE * size, "second derivative beside differences of the gradient")
    assert_all_close(reverse, forward, EXACT * size, "reverse over forward beside forward over reverse")
    symmetric = _pairing(forward, point.others), _pairing(twice, point.tangents)
    assert_close(symmetric[1], symmetric[0], 10 * EXACT * size, "symmetry of the second derivative")


def check_types_of_rewrites(fun: Callable[..., Any], primals: Sequence[Any]) -> None:
    """Tangents and cotangents have the types of what they belong to, and nothing is captured."""
    traced = xlamini.jit(fun).trace(*primals).jaxpr
    jaxpr = traced.jaxpr.replace(constvars=[], invars=[*traced.jaxpr.constvars, *traced.jaxpr.invars])
    count = len(jaxpr.invars) - len(primals)
    nonzero = (False,) * count + (True,) * len(primals)
    pushed, nonzero_out = jvp_of_jaxpr(jaxpr, nonzero)
    expected = [tangent_aval(a) for a, nz in zip(jaxpr.out_avals, nonzero_out, strict=True) if nz]
    _assert_types(pushed.out_avals[len(jaxpr.outvars) :], expected, "tangents")
    lin = linearize_jaxpr(jaxpr, nonzero)
    tangents = lin.tangent.in_avals[lin.num_residuals :]
    linear = (False,) * lin.num_residuals + (True,) * len(tangents)
    pulled, nonzero_in = transpose(lin.tangent, linear, (True,) * len(lin.tangent.outvars))
    _assert_types(pulled.out_avals, [a for a, nz in zip(tangents, nonzero_in, strict=True) if nz], "cotangents")


def _assert_types(found: Sequence[Any], expected: Sequence[Any], what: str) -> None:
    types = [[(a.shape, a.dtype) for a in avals] for avals in (found, expected)]
    assert types[0] == types[1], f"{what} are {list(found)}, expected {list(expected)}"


# --- batching


def in_axes_of(arguments: Sequence[Array]) -> Iterator[tuple[int | None, ...]]:
    """Every way to batch the arguments: not, along the first axis, along the last."""
    choices = [(None, 0, -1) if np.ndim(x) else (None, 0) for x in arguments]
    return (axes for axes in itertools.product(*choices) if any(a is not None for a in axes))


def check_batching(row: Row, sample: Sample, dtype: str, every_in_axes: Sequence[tuple[int | None, ...]]) -> None:
    """vmap equals a Python loop over single examples, for each choice of `in_axes`."""
    rng = row.rng("batch", dtype, key_of(sample))
    examples = [row.arguments(sample, dtype, rng) for _ in range(BATCH)]
    batched = [_batched(examples, in_axes) for in_axes in every_in_axes]
    with wide(row, dtype):
        single = xlamini.jit(flat(row.op))
        looped = [[single(*e) for e in _unbatched(examples, in_axes)] for in_axes in every_in_axes]
        mapped = xlamini.jit(
            lambda calls: [
                xlamini.vmap(flat(row.op), axes, out_axes=-1)(*args)
                for axes, args in zip(every_in_axes, calls, strict=True)
            ]
        )(batched)
    tolerance = 2 * row.tolerance_of(_computed_in(looped[0][0][0].dtype, to_dtype(dtype)))
    for in_axes, outs, loop in zip(every_in_axes, mapped, looped, strict=True):
        expected = [np.stack([comparable(x) for x in results], -1) for results in zip(*loop, strict=True)]
        assert_all_close(outs, expected, tolerance, f"vmap of {row.name} with in_axes={in_axes}")


def _batched(examples: Sequence[Sequence[Array]], in_axes: Sequence[int | None]) -> list[Array]:
    return [
        examples[0][i] if axis is None else np.stack([e[i] for e in examples], axis) for i, axis in enumerate(in_axes)
    ]


def _unbatched(examples: Sequence[Sequence[Array]], in_axes: Sequence[int | None]) -> list[list[Array]]:
    return [[e[i] if a is not None else examples[0][i] for i, a in enumerate(in_axes)] for e in examples]


# --- compositions


def check_compositions(row: Row, sample: Sample, dtype: str, options: Any = None) -> None:
    """vmap of grad, grad of vmap, vmap of jvp and jvp of vmap equal a loop over examples."""
    with wide(row, dtype):
        points = [Point(row, sample, dtype, salt) for salt in range(BATCH)]
        primals, tangents = (
            [np.stack(xs) for xs in zip(*xs, strict=True)]
            for xs in ([p.primals for p in points], [p.tangents for p in points])
        )
        mapped, of_sum, pushed, pushed_all, looped = xlamini.jit(
            lambda *args: _compositions(points[0], *args), compiler_options=options
        )(primals, tangents, [p.primals for p in points])
    expected = [np.stack(list(map(np.asarray, gs))) for gs in zip(*looped, strict=True)]
    tolerance = EXACT * scale_of(expected)
    assert_all_close(mapped, expected, tolerance, "vmap of grad")
    assert_all_close(of_sum, expected, tolerance, "grad of a sum of vmap")
    slopes = [_pairing(looped[0], p.tangents) for p in points]
    assert_close(pushed, slopes, 10 * tolerance, "vmap of jvp over tangents alone")
    slopes = [_pairing(g, p.tangents) for g, p in zip(looped, points, strict=True)]
    assert_close(pushed_all, slopes, 10 * tolerance, "jvp of vmap")


def _compositions(point: Point, primals: Any, tangents: Any, each: Any) -> Any:
    argnums = tuple(range(len(primals)))
    gradient, mapped = xlamini.grad(point.scalar, argnums), xlamini.vmap(point.scalar)
    return (
        xlamini.vmap(gradient)(*primals),
        xlamini.grad(lambda *xs: summed(mapped(*xs)), argnums)(*primals),
        xlamini.vmap(lambda *ts: xlamini.jvp(point.scalar, tuple(point.primals), ts)[1])(*tangents),
        xlamini.jvp(mapped, tuple(primals), tuple(tangents))[1],
        [gradient(*example) for example in each],
    )


# --- programs


def primitives_of(jaxpr: Jaxpr) -> set[Primitive]:
    """The primitives of a jaxpr and of those inside it."""
    found = {eqn.primitive for eqn in jaxpr.eqns}
    return found.union(*(primitives_of(inner) for eqn in jaxpr.eqns for inner in subjaxprs(eqn)))


def primitives_of_row(row: Row) -> set[Primitive]:
    """The primitives that a row's operation, its derivative and its batching are made of."""
    found: set[Primitive] = set()
    for dtype in row.dtypes[:1]:
        with wide(row, dtype):
            for sample in row.samples:
                arguments = row.arguments(sample, dtype, row.rng())
                found |= primitives_of(xlamini.make_jaxpr(row.op)(*arguments).jaxpr)
    return found
