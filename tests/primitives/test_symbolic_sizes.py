"""Programs with symbolic sizes: exported once, they give at each size what the function gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import export, lax, numpy as jnp
from xlamini.errors import InconclusiveDimensionOperation

SIZES = 1, 2, 5
Function = Callable[..., Any]


def exported(function: Function, shapes: tuple[str, ...], *constraints: str) -> Any:
    scope = export.SymbolicScope(constraints)
    structs = [xlamini.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), "float32") for s in shapes]
    return export.export(xlamini.jit(function))(*structs)


def check(function: Function, shapes: tuple[str, ...], *constraints: str) -> None:
    program, rng = exported(function, shapes, *constraints), np.random.default_rng(0)
    for b in SIZES[1:] if constraints else SIZES:
        sizes = [[b if n.strip() == "b" else 3 if n.strip() == "n" else int(n) for n in s.split(",")] for s in shapes]
        args = [jnp.asarray(rng.normal(size=size), "float32") for size in sizes]
        wanted, found = (xlamini.tree.leaves(f(*args)) for f in (function, program.call))
        for x, y in zip(found, wanted, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


def gradient(function: Function, count: int) -> Function:
    def total(*args: Any) -> Any:
        return sum(jnp.sum(jnp.square(x)) for x in xlamini.tree.leaves(function(*args)))

    return xlamini.grad(total, tuple(range(count)))


def positive(x: Any) -> Any:
    return x @ jnp.swapaxes(x, -1, -2) + 3 * jnp.eye(x.shape[-1])


def running(x: Any) -> Any:
    return lax.scan(lambda c, row: (c + jnp.sin(row).sum(), c * row), 0.0, x, unroll=2)


def looped(x: Any) -> Any:
    rows = x.shape[0]
    return lax.fori_loop(0, rows, lambda i, c: c * 1.1 + jnp.sin(lax.dynamic_index_in_dim(x, i)).sum(), 0.0)


OPERATIONS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "dot_general": (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), ("b, 2, n", "b, n, 4")),
    "conv": (lambda x, k: lax.conv_general_dilated(x, k, (2,), "SAME"), ("2, 2, b", "3, 2, 3")),
    "reduce_window": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (3, 2), (2, 1), "SAME"), ("b, n",)),
    "gather": (lambda x: x[jnp.arange(x.shape[0] * 2) % x.shape[0], 0], ("b, n",)),
    "scatter": (lambda x: jnp.zeros((4, 3)).at[jnp.arange(x.shape[0]) % 4].add(x), ("b, 3",)),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (x.shape[0] - 1, 1), (1, 2)), ("b, 3",)),
    "dynamic_update_slice": (lambda x: lax.dynamic_update_slice(x, x[:1], (x.shape[0] - 1, 0)), ("b, n",)),
    "sort": (lambda x: lax.sort((x, x * 2), dimension=0), ("b, n",)),
    "top_k": (lambda x: lax.top_k(x, 2), ("b, 3",)),
    "argmax": (lambda x: jnp.argmax(x, 0), ("b, 3",)),
    "pad": (lambda x: lax.pad(x, 0.0, ((1, 2, 1), (-1, x.shape[0], 0))), ("b, 3",)),
    "stride": (lambda x: x[::2], ("b, 3",)),
    "cumsum": (lambda x: lax.cumsum(x, 0, reverse=True), ("b, n",)),
    "associative_scan": (lambda x: lax.associative_scan(jnp.multiply, x, axis=1, reverse=True), ("2, b",)),
    "scan": (running, ("b, n",)),
    "fori_loop": (looped, ("b, 3",)),
    "map in blocks": (lambda x: lax.map(jnp.sin, x, batch_size=2), ("b, n",)),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c * c + 1, x), ("b, n",)),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda c: c * c, lambda c: -c, x), ("b, n",)),
    "cholesky": (lambda x: jnp.linalg.cholesky(positive(x)), ("b, 3, 3",)),
    "solve": (lambda x, y: jnp.linalg.solve(positive(x), y), ("b, n, n", "b, n, 2")),
    "eigvalsh": (lambda x: jnp.linalg.eigvalsh(positive(x)), ("b, b",)),
    "qr": (lambda x: jnp.linalg.qr(positive(x)), ("b, 3, 3",)),
    "svd": (lambda x: jnp.linalg.svd(x, compute_uv=False), ("b, 3",)),
    "slogdet": (lambda x: jnp.linalg.slogdet(positive(x))[1], ("b, b",)),
    "rfft": (lambda x: jnp.abs(jnp.fft.rfft(x)), ("b, 6",)),
    "bits": (lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, "uint8"), "float32"), ("b, 3",)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_values(name: str) -> None:
    check(*OPERATIONS[name])


@pytest.mark.parametrize("name", ["dot_general", "conv", "reduce_window", "gather", "scan", "fori_loop", "cholesky"])
def test_gradients(name: str) -> None:
    function, shapes = OPERATIONS[name]
    check(gradient(function, len(shapes)), shapes)


@pytest.mark.parametrize("name", ["dot_general", "scatter", "sort", "scan", "svd"])
def test_a_batch_of_symbolic_size(name: str) -> None:
    function, shapes = OPERATIONS[name]
    check(xlamini.vmap(function), tuple(f"n, {shape}" for shape in shapes))


def test_collectives_along_a_batch_of_symbolic_size() -> None:
    def centred(x: Any) -> Any:
        return (x - lax.pmean(x, "i")) * lax.axis_index("i") / lax.psum(1, "i")

    check(xlamini.vmap(centred, axis_name="i"), ("b, 3",))


def test_a_constraint_decides() -> None:
    check(lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 1), (1, 1), "VALID"), ("b, 3",), "b >= 2")
    check(lambda x: lax.top_k(x.T, 2)[0], ("b, 3",), "b >= 2")


REFUSALS: dict[str, tuple[Function, str]] = {
    "a >= 2": (lambda x: lax.top_k(x.T, 2), r"a constraint decides it: .*b >= 2"),
    "fft": (lambda x: lax.fft(x + 0j, "FFT", x.shape), r"the transformed dimensions have the sizes \(b, 3\)"),
    "hessenberg": (lambda x: lax.linalg.hessenberg(positive(x.T @ x + x @ x.T)), r"hessenberg: LAPACK takes the size"),
    "conv": (
        xlamini.vmap(lambda x: lax.conv_general_dilated(x[None, None], x[None, None], (1,), "SAME")),
        r"a batch of b operands, each with its own kernel, .* use lax.map",
    ),
    "prod": (xlamini.grad(lambda x: jnp.prod(x)), r"derivative of reduce_prod .*lax.scan"),
    "cumprod": (xlamini.grad(lambda x: lax.cumprod(x).sum()), r"derivative of cumprod .*associative_scan"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    function, text = REFUSALS[name]
    shape = "b, b" if name == "hessenberg" else "b, 3"
    with pytest.raises((InconclusiveDimensionOperation, NotImplementedError), match=text):
        exported(function, (shape,))
