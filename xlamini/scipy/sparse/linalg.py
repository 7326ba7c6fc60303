"""Iterative solvers of A x = b, where A may be a function: `cg`, `bicgstab` and `gmres`.

A vector may be a pytree of arrays; inside it is one flat array. Derivatives are those of the solution, by further
solves (`lax.custom_linear_solve`), not of the iteration.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini import numpy as jnp
from xlamini.core import ShapeError, flatten_from_user, unflatten
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.linalg.arguments import inexact
from xlamini.transforms.control_flow.fori_loop import fori_loop
from xlamini.transforms.solvers.custom_linear_solve import custom_linear_solve
from xlamini.transforms.while_loop.api import while_loop

__all__ = ["bicgstab", "cg", "gmres"]

_Map = Callable[[Any], Any]


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """The x with `A x = b` by conjugate gradients, for Hermitian positive definite A, and None.

    A is a matrix or a function of what is like `b`, an array or a pytree of them. The iteration starts from `x0`, by
    default zeros, and ends when `norm(b - A x) <= max(tol * norm(b), atol)`, or after `maxiter` steps, by default 10
    times the size of b. `M` approximates the inverse of A. ValueError where `x0` or `A(x)` is not like b.

    >>> cg(jnp.array([[4.0, 1.0], [1.0, 3.0]]), jnp.array([5.0, 4.0]))[0].round(3)
    Array([1., 1.], dtype=float32)
    """
    return _solved("cg", _cg, True, A, b, x0, tol, atol, maxiter, M)


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """The x with `A x = b` by stabilized biconjugate gradients, for any A, and None; arguments as of `cg`.

    >>> bicgstab(jnp.array([[4.0, 1.0], [2.0, 3.0]]), jnp.array([5.0, 5.0]))[0].round(3)
    Array([1., 1.], dtype=float32)
    """
    return _solved("bicgstab", _bicgstab, False, A, b, x0, tol, atol, maxiter, M)


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, None]:
    """The x with `A x = b` by generalized minimal residuals, for any A, and None; arguments as of `cg`.

    A cycle takes `restart` products and as many vectors of memory, and the next one starts from its result; `maxiter`
    counts cycles. With the `solve_method` "incremental" a cycle ends on convergence, which costs less if that is early;
    "batched" always completes the cycle. ValueError for another method.

    >>> gmres(jnp.array([[4.0, 1.0], [2.0, 3.0]]), jnp.array([5.0, 5.0]))[0].round(3)
    Array([1., 1.], dtype=float32)
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"gmres: solve_method must be 'batched' or 'incremental', got {solve_method!r}")
    early = solve_method == "incremental"

    def method(product: _Map, precondition: _Map, b: Any, x0: Any, least: Any, most: int) -> Any:
        return _gmres(product, precondition, b, x0, least, most, min(restart, b.size), early)

    return _solved("gmres", method, False, A, b, x0, tol, atol, maxiter, M)


# --- vectors


def _solved(
    name: str,
    method: Callable[..., Any],
    hermitian: bool,
    A: Any,
    b: Any,
    x0: Any,
    tol: Any,
    atol: Any,
    most: Any,
    M: Any,
) -> tuple[Any, None]:
    """Solve by a method for flat arrays."""
    leaves, tree = flatten_from_user(b)
    parts = inexact(name, *leaves)
    product, precondition = (_flat_map(name, f, what, parts, tree) for f, what in ((A, "A"), (M, "M")))
    right = _joined(parts)
    start = jnp.zeros_like(right) if x0 is None else _like(name, "x0", x0, parts, tree)
    most = 10 * right.size if most is None else most

    def solve(product: _Map, right: Any) -> Any:
        norm = jnp.sqrt(_dot(right, right).real)
        return method(product, precondition, right, start, jnp.maximum(tol * norm, atol), most)

    symmetric = hermitian and not jnp.issubdtype(right.dtype, jnp.complexfloating)
    x = custom_linear_solve(product, right, solve, solve, symmetric=symmetric)
    return unflatten(tree, _split_blocks(x, parts)), None


def _flat_map(name: str, f: Any, what: str, parts: list[Any], tree: Any) -> _Map:
    """A matrix or function as a function of flat arrays; the identity for None."""
    if f is None:
        return lambda x: x
    if callable(f):
        return lambda x: _like(name, f"{what}(x)", f(unflatten(tree, _split_blocks(x, parts))), parts, tree)
    matrix = as_operand(name, f)
    if matrix.ndim != 2 or len(parts) != 1 or parts[0].ndim != 1 or matrix.shape != parts[0].shape * 2:
        shapes = [list(p.shape) for p in parts]
        raise ShapeError(f"{name}: {what} has shape {matrix.shape}, b {shapes}; it must be square and fit")
    return lambda x: jnp.matmul(matrix.astype(x.dtype), x, precision="highest")


def _like(name: str, what: str, value: Any, parts: list[Any], tree: Any) -> Any:
    """Check that a pytree matches `b`, and flatten it."""
    leaves, found = flatten_from_user(value)
    if found != tree or any(jnp.shape(x) != p.shape for x, p in zip(leaves, parts, strict=False)):
        raise ValueError(
            f"{name}: {what} must be like b, of structure {tree} and shapes {[p.shape for p in parts]}; got {found} "
            f"and {[jnp.shape(x) for x in leaves]}"
        )
    return _joined([as_operand(name, x).astype(p.dtype) for x, p in zip(leaves, parts, strict=True)])


def _joined(parts: list[Any]) -> Any:
    return jnp.concatenate([x.reshape(-1) for x in parts]) if parts else jnp.zeros(0)


def _split_blocks(x: Any, parts: list[Any]) -> list[Any]:
    out, start = [], 0
    for p in parts:
        out.append(x[start : start + p.size].reshape(p.shape))
        start += p.size
    return out


def _dot(x: Any, y: Any) -> Any:
    return jnp.vdot(x, y, precision="highest")


def _norm(x: Any) -> Any:
    return jnp.sqrt(_dot(x, x).real)


# --- methods


def _cg(product: _Map, precondition: _Map, b: Any, x: Any, least: Any, most: int) -> Any:
    """M. Hestenes and E. Stiefel (1952)."""
    r = b - product(x)
    z = precondition(r)

    def step(state: Any) -> Any:
        x, r, z, p, gamma, k = state
        moved = product(p)
        alpha = gamma / _dot(p, moved).real
        x, r = x + alpha.astype(b.dtype) * p, r - alpha.astype(b.dtype) * moved
        z = precondition(r)
        after = _dot(r, z).real
        return x, r, z, z + (after / gamma).astype(b.dtype) * p, after, k + 1

    def goes_on(state: Any) -> Any:
        return (_norm(state[1]) > least) & (state[-1] < most)

    return while_loop(goes_on, step, (x, r, z, z, _dot(r, z).real, 0))[0]


def _bicgstab(product: _Map, precondition: _Map, b: Any, x: Any, least: Any, most: int) -> Any:
    """H. van der Vorst (1992); it ends where a scalar product it divides by vanishes."""
    shadow = r = b - product(x)
    one, zero = jnp.ones((), b.dtype), jnp.zeros_like(b)

    def step(state: Any) -> Any:
        x, r, p, q, alpha, omega, rho, k, _ = state
        after = _dot(shadow, r)
        p = r + after / rho * alpha / omega * (p - omega * q)
        direction = precondition(p)
        q = product(direction)
        alpha = after / _dot(shadow, q)
        half = r - alpha * q
        stabilizer = precondition(half)
        t = product(stabilizer)
        omega = _dot(t, half) / _dot(t, t)
        done = _norm(half) <= least
        end = x + alpha * direction
        x = jnp.where(done, end, end + omega * stabilizer)
        r = jnp.where(done, half, half - omega * t)
        broken = ~done & ((after == 0) | (omega == 0) | (alpha == 0))
        return x, r, p, q, alpha, omega, after, k + 1, broken

    def goes_on(state: Any) -> Any:
        return (_norm(state[1]) > least) & (state[-2] < most) & ~state[-1]

    return while_loop(goes_on, step, (x, r, zero, zero, one, one, one, 0, False))[0]


def _gmres(
    product: _Map, precondition: _Map, b: Any, x: Any, least: Any, most: int, size: int, early: bool
) -> Any:
    """Y. Saad and M. Schultz (1986), preconditioned from the left."""

    def residual(x: Any) -> Any:
        return precondition(b - product(x))

    least = least * _ratio(_norm(precondition(b)), _norm(b))

    def cycle(state: Any) -> Any:
        x, r, k = state
        x = x + _correction(lambda v: precondition(product(v)), r, least, size, early)
        return x, residual(x), k + 1

    def goes_on(state: Any) -> Any:
        return (_norm(state[1]) > least) & (state[2] < most)

    return while_loop(goes_on, cycle, (x, residual(x), 0))[0]


def _correction(product: _Map, r: Any, least: Any, size: int, early: bool) -> Any:
    """The vector of Krylov's space of this size that makes the residual least."""
    beta = _norm(r)
    basis = jnp.zeros((size + 1, r.size), r.dtype).at[0].set(r * _ratio(1, beta).astype(r.dtype))
    state = basis, jnp.zeros((size + 1, size), r.dtype)

    def step(k: Any, state: Any) -> Any:
        basis, h = state
        v, row = _orthogonal(basis, product(basis[k]))
        return basis.at[k + 1].set(v), h.at[:, k].set(row.at[k + 1].add(_norm(v)).astype(r.dtype))

    def normalized(k: Any, state: Any) -> Any:
        basis, h = step(k, state)
        v = basis[k + 1]
        return basis.at[k + 1].set(v * _ratio(1, _norm(v)).astype(r.dtype)), h

    if not early:
        basis, h = fori_loop(0, size, normalized, state)
        return _least_squares(h, beta) @ basis[:size]

    def goes_on(state: Any) -> Any:
        k, (_, h) = state
        right = jnp.zeros(size + 1, r.dtype).at[0].set(beta.astype(r.dtype))
        return (k < size) & (_norm(right - h @ _least_squares(h, beta)) > least)

    _, (basis, h) = while_loop(goes_on, lambda s: (s[0] + 1, normalized(*s)), (0, state))
    return _least_squares(h, beta) @ basis[:size]


def _orthogonal(basis: Any, v: Any) -> tuple[Any, Any]:
    """The component of `v` orthogonal to the basis, and its coefficients; two passes suffice (Kahan and Parlett)."""
    row = jnp.matmul(jnp.conj(basis), v, precision="highest")
    rest = v - jnp.matmul(row, basis, precision="highest")
    again = jnp.matmul(jnp.conj(basis), rest, precision="highest")
    return rest - jnp.matmul(again, basis, precision="highest"), row + again


def _least_squares(h: Any, beta: Any) -> Any:
    """The y with the least `norm(beta e_0 - h y)`; columns of zeros get zeros."""
    right = jnp.zeros(h.shape[0], h.dtype).at[0].set(beta.astype(h.dtype))
    return jnp.linalg.lstsq(h, right)[0]


def _ratio(x: Any, y: Any) -> Any:
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))


_edge_of_face(globals())
