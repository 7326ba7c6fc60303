"""Lineax: every solver and kind of operator, with derivatives in both modes, batched, and of second order."""
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import lineax as lx

SQUARE = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]])
TALL = jnp.array([[1.0, 2.0, 0.0], [0.5, -1.0, 1.0], [2.0, 0.3, 1.5], [0.1, 1.0, -1.0]])
B3, B4 = jnp.array([1.0, -2.0, 0.5]), jnp.array([1.0, 0.0, -1.0, 2.0])
POSITIVE = lx.positive_semidefinite_tag

SOLVES: dict[str, tuple[Any, Any, Any, Any]] = {
    "auto": (lx.AutoLinearSolver(well_posed=True), SQUARE, B3, ()),
    "auto/any": (lx.AutoLinearSolver(well_posed=None), SQUARE, B3, ()),
    "lu": (lx.LU(), SQUARE, B3, ()),
    "qr": (lx.QR(), SQUARE, B3, ()),
    "qr/tall": (lx.QR(), TALL, B4, ()),
    "qr/wide": (lx.QR(), TALL.T, B3, ()),
    "svd": (lx.SVD(), SQUARE, B3, ()),
    "svd/tall": (lx.SVD(), TALL, B4, ()),
    "svd/wide": (lx.SVD(), TALL.T, B3, ()),
    "cholesky": (lx.Cholesky(), SQUARE, B3, POSITIVE),
    "cg": (lx.CG(rtol=1e-6, atol=1e-6), SQUARE, B3, POSITIVE),
    "gmres": (lx.GMRES(rtol=1e-6, atol=1e-6), SQUARE, B3, ()),
    "bicgstab": (lx.BiCGStab(rtol=1e-6, atol=1e-6), SQUARE, B3, ()),
    "lsmr": (lx.LSMR(rtol=1e-6, atol=1e-6), TALL, B4, ()),
    "normal": (lx.Normal(lx.Cholesky()), TALL, B4, ()),
    "triangular": (lx.Triangular(), jnp.tril(SQUARE), B3, lx.lower_triangular_tag),
    "diagonal": (lx.Diagonal(), jnp.diag(jnp.diag(SQUARE)), B3, lx.diagonal_tag),
    "tridiagonal": (lx.Tridiagonal(), jnp.triu(jnp.tril(SQUARE, 1), -1), B3, lx.tridiagonal_tag),
}


def solvers() -> dict[str, Any]:
    """Each solver: the solution, gradients for matrix and vector, a jvp, batches of either, a Hessian of some."""
    out: dict[str, Any] = {}
    for name, (solver, a, b, tags) in SOLVES.items():
        def solve(a: Any, b: Any, solver: Any = solver, tags: Any = tags) -> Any:
            return lx.linear_solve(lx.MatrixLinearOperator(a, tags), b, solver).value

        def loss(a: Any, b: Any, solve: Any = solve) -> Any:
            return (solve(a, b) ** 2).sum()

        weights = jnp.linspace(1.0, 2.0, 3)
        out[f"{name}/value"] = jax.jit(solve)(a, b)
        out[f"{name}/grads/a"], out[f"{name}/grads/b"] = jax.jit(jax.grad(loss, (0, 1)))(a, b)
        out[f"{name}/jvp"] = jax.jvp(solve, (a, b), (a * 0.1, b * 0.2))[1]
        out[f"{name}/vmap/b"] = jax.vmap(solve, (None, 0))(a, b * weights[:, None])
        if name in ("lu", "qr/tall", "cholesky", "cg", "svd/wide"):
            out[f"{name}/vmap/a"] = jax.vmap(jax.grad(loss), (0, None))(a * weights[:, None, None], b)
            out[f"{name}/hessian"] = jax.hessian(loss, 1)(a, b)
            out[f"{name}/mixed"] = jax.jvp(jax.grad(loss), (a, b), (a * 0.1, b * 0.2))[1]
    return out


def _field(x: Any, args: Any) -> Any:
    return SQUARE @ jnp.sin(x) * args


def _jacobians(x: Any) -> dict[str, Any]:
    """Newton steps with the Jacobian of a function, by columns or rows, and their gradients."""
    out: dict[str, Any] = {}
    for jac in ("fwd", "bwd"):
        def newton(x: Any, scale: Any, jac: str = jac) -> Any:
            operator = lx.JacobianLinearOperator(_field, x, scale, jac=jac)
            return lx.linear_solve(operator, _field(x, scale) - B3).value

        out[f"jacobian/{jac}"] = newton(x, 1.5)
        out[f"jacobian/{jac}/grads"] = jax.grad(lambda x, s: (newton(x, s) ** 2).sum(), (0, 1))(x, 1.5)[0]
        out[f"jacobian/{jac}/matrix"] = lx.JacobianLinearOperator(_field, x, 1.5, jac=jac).as_matrix()
    return out


def operators() -> dict[str, Any]:
    """Operators given by functions, Jacobians, diagonals and trees, their algebra, transposes and materialization."""
    x = jnp.array([0.3, -0.2, 0.7])
    out = _jacobians(x)
    linear = lx.FunctionLinearOperator(lambda v: {"s": SQUARE @ v["s"] + v["t"][:, None].sum(), "t": 2 * v["t"]},
                                       jax.eval_shape(lambda: {"s": B3, "t": B4[:2]}))
    rhs = {"s": B3, "t": B4[:2]}
    out["tree"] = lx.linear_solve(linear, rhs).value["s"]
    out["tree/transpose"] = lx.linear_solve(linear.T, rhs).value["t"]
    out["tree/matrix"] = linear.as_matrix()
    square = lx.MatrixLinearOperator(SQUARE)
    diagonal = lx.DiagonalLinearOperator(B3)
    both = square @ diagonal + 0.5 * lx.IdentityLinearOperator(jax.eval_shape(lambda: B3))
    out["algebra"] = lx.linear_solve(both, B3).value
    out["algebra/matrix"] = lx.materialise(both.T).as_matrix()
    out["linearise"] = lx.linearise(lx.JacobianLinearOperator(_field, x, 1.5)).mv(B3)
    tri = lx.TridiagonalLinearOperator(jnp.array([4.0, 3.0, 2.0]), jnp.array([1.0, 0.5]), jnp.array([-0.3, 0.2]))
    out["tridiagonal"] = jax.grad(lambda b: lx.linear_solve(tri, b).value.sum())(B3)

    def conjugate(scale: Any) -> Any:
        operator = lx.FunctionLinearOperator(lambda v: scale * (SQUARE @ v), jax.eval_shape(lambda: B3), POSITIVE)
        return lx.linear_solve(operator, B3, lx.CG(1e-6, 1e-6)).value.sum()

    out["closure/grads"] = jax.grad(conjugate)(2.0)
    out["closure/second"] = jax.grad(jax.grad(conjugate))(2.0)
    solver = lx.LU()
    state = solver.init(square, {})
    out["state"] = jax.vmap(lambda b: lx.linear_solve(square, b, solver, state=state).value)(jnp.eye(3))
    singular = lx.linear_solve(lx.MatrixLinearOperator(jnp.ones((3, 3))), B3, lx.LU(), throw=False)
    out["singular"] = singular.result != lx.RESULTS.successful
    return out
