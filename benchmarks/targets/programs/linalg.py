"""Decompositions and solvers, of one matrix and of a batch."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.targets.program import Program, each, f32

ONE, BATCH = f32(512, 512), f32(32, 64, 64)


def programs(jax: ModuleType) -> list[Program]:
    """The programs of this family."""
    functions = _decompositions(jax)
    return [
        *each(functions, ONE, prefix="linalg_"),
        *each(functions, BATCH, prefix="linalg_", suffix="_batched"),
        *_solvers(jax),
    ]


def _definite(jax: ModuleType, x: Any) -> Any:
    return x @ x.mT + jax.numpy.eye(x.shape[-1])


def _decompositions(jax: ModuleType) -> dict[str, Callable[[Any], Any]]:
    linalg = jax.numpy.linalg
    return {
        "cholesky": lambda x: linalg.cholesky(_definite(jax, x)),
        "qr": linalg.qr,
        "eigh": lambda x: linalg.eigh(_definite(jax, x)),
        "svd": lambda x: linalg.svd(x, full_matrices=False),
        "lu": jax.lax.linalg.lu,
        "inv": linalg.inv,
        "det": linalg.slogdet,
    }


def _solvers(jax: ModuleType) -> list[Program]:
    linalg, scipy = jax.numpy.linalg, jax.scipy.linalg

    def by_cholesky(a: Any, b: Any) -> Any:
        return scipy.cho_solve(scipy.cho_factor(_definite(jax, a)), b).sum()

    solve = jax.grad(lambda a, b: linalg.solve(a, b).sum(), (0, 1))
    return [
        Program("linalg_solve_grad", solve, (ONE, f32(512, 8))),
        Program("linalg_cho_solve_grad", jax.grad(by_cholesky, (0, 1)), (ONE, f32(512, 8))),
        Program("linalg_expm", scipy.expm, (ONE,)),
        Program("linalg_lstsq", lambda a, b: linalg.lstsq(a, b)[0], (f32(1024, 64), f32(1024))),
    ]
