"""scipy.optimize.minimize, and the solvers of scipy.sparse.linalg."""

from __future__ import annotations

from typing import Any

from tests.support.error_rows import ones, row, square
from xlamini import grad
from xlamini.errors import ShapeError
from xlamini.scipy.optimize import minimize
from xlamini.scipy.sparse.linalg import bicgstab, cg, gmres

A, B = ones(2, 2), ones(2)


def total(x: Any) -> Any:
    return (x * x).sum()


def least(x: Any) -> Any:
    return minimize(total, x, method="BFGS").fun


ROWS = [
    row("method", lambda: minimize(total, B, method="CG"), ValueError, "method must be 'BFGS'", "got 'CG'"),
    row(
        "method's type", lambda: minimize(total, B, method=3), ValueError,  # type: ignore[arg-type]
        "method must be 'BFGS'", "got 3",
    ),
    row(
        "options", lambda: minimize(total, B, method="BFGS", options={"maxcor": 3}), TypeError,
        "has the options maxiter, norm, gtol, line_search_maxiter; got maxcor",
    ),
    row(
        "args", lambda: minimize(total, B, 3.0, method="BFGS"), TypeError,  # type: ignore[arg-type]
        "args must be a tuple, got 3.0",
    ),
    row("matrix", lambda: minimize(total, A, method="BFGS"), ShapeError, "x0 must be a vector, got shape (2, 2)"),
    row("vector", lambda: minimize(square, B, method="BFGS"), ShapeError, "fun must return one number, got shape (2,)"),
    row("complex", lambda: minimize(total, B * 1j, method="BFGS"), TypeError, "x0 must be real, got complex64"),
    row("no array", lambda: minimize(total, "x", method="BFGS"), TypeError, "minimize"),
    row(
        "no function", lambda: minimize(None, B, method="BFGS"), TypeError,  # type: ignore[arg-type]
        "minimize takes a function, got None",
    ),
    row("reverse mode", lambda: grad(least)(B), ValueError, "while_loop"),
    row("gmres's method", lambda: gmres(A, B, solve_method="x"), ValueError, "'batched' or 'incremental', got 'x'"),
    row("cg's shape", lambda: cg(ones(2, 3), B), ShapeError, "cg: A has shape (2, 3)", "it must be square"),
    row("gmres's M", lambda: gmres(A, B, M=ones(3, 3)), ShapeError, "gmres: M has shape (3, 3)"),
    row("bicgstab's x0", lambda: bicgstab(A, B, ones(3)), ValueError, "bicgstab: x0 must be like b", "(3,)"),
    row("cg's structure", lambda: cg(lambda v: [v], B), ValueError, "cg: A(x) must be like b"),
    row("a matrix for a tree", lambda: cg(A, {"w": B, "v": B}), ShapeError, "cg: A has shape (2, 2)"),
]
