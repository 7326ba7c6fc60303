"""Linear algebra of a batch of matrices over several devices: each factors its own, and gathers none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, vmap
from xlamini.scipy import linalg
from xlamini.sharding import AxisType, NamedSharding, PartitionSpec as P

_rng = np.random.default_rng(0)
GENERAL = _rng.normal(size=(4, 5, 5)).astype("float32")
POSITIVE = GENERAL @ GENERAL.swapaxes(1, 2) + 5 * np.eye(5, dtype="float32")
COLUMNS = _rng.normal(size=(4, 5, 2)).astype("float32")

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cholesky": (jnp.linalg.cholesky, (POSITIVE,)),
    "eig": (jnp.linalg.eig, (GENERAL,)),
    "eigvals": (jnp.linalg.eigvals, (GENERAL,)),
    "eigh": (jnp.linalg.eigh, (POSITIVE,)),
    "eigvalsh": (jnp.linalg.eigvalsh, (POSITIVE,)),
    "svd": (jnp.linalg.svd, (GENERAL,)),
    "svdvals": (jnp.linalg.svdvals, (GENERAL,)),
    "qr": (jnp.linalg.qr, (GENERAL,)),
    "lu": (lax.linalg.lu, (GENERAL,)),
    "schur": (lax.linalg.schur, (GENERAL,)),
    "hessenberg": (lax.linalg.hessenberg, (GENERAL,)),
    "tridiagonal": (lambda x: lax.linalg.tridiagonal(x, lower=True), (POSITIVE,)),
    "solve": (jnp.linalg.solve, (GENERAL, COLUMNS)),
    "solve_triangular": (lambda a, b: linalg.solve_triangular(a, b, lower=True), (POSITIVE, COLUMNS)),
    "cho_solve": (lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b), (POSITIVE, COLUMNS)),
    "inv": (jnp.linalg.inv, (GENERAL,)),
    "det": (jnp.linalg.det, (GENERAL,)),
    "slogdet": (jnp.linalg.slogdet, (GENERAL,)),
    "pinv": (jnp.linalg.pinv, (GENERAL,)),
    "lstsq": (vmap(lambda a, b: jnp.linalg.lstsq(a, b)[0]), (GENERAL, COLUMNS)),
    "expm": (linalg.expm, (GENERAL,)),
    "nuclear norm": (lambda x: jnp.linalg.norm(x, "nuc", axis=(1, 2)), (GENERAL,)),
}
WITHOUT_DERIVATIVE = {"eig", "schur", "hessenberg", "tridiagonal"}


def squares(function: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of squares of all results: for its gradient."""
    return lambda *args: sum(
        (abs(y) ** 2).sum() for y in xlamini.tree.leaves(function(*args)) if jnp.issubdtype(y.dtype, jnp.inexact)
    )


@pytest.mark.parametrize("kind", (AxisType.Auto, AxisType.Explicit))
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sample(12, full=2)
def test_no_device_gathers_the_matrices_of_others(name: str, kind: AxisType) -> None:
    function, args = FUNCTIONS[name]
    mesh = xlamini.make_mesh((2,), ("i",), axis_types=(kind,))
    placed = [xlamini.device_put(x, NamedSharding(mesh, P("i"))) for x in args]
    program = xlamini.jit(function).lower(*placed).compile()
    assert "all-gather" not in program.as_text()
    for out, whole in zip(*map(xlamini.tree.leaves, (program(*placed), function(*args))), strict=True):
        assert out.sharding.spec[0] == "i"
        np.testing.assert_allclose(out, whole, rtol=1e-4, atol=1e-4)
    if name not in WITHOUT_DERIVATIVE and kind is AxisType.Auto:
        gradient = xlamini.jit(xlamini.grad(squares(function))).lower(*placed).compile()
        assert "all-gather" not in gradient.as_text()
