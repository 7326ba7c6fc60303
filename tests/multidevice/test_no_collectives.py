"""`sharding.no_collectives`: what would communicate along the axes that it names is an error when it is traced."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import P, jit, lax, numpy as jnp, shard_map
from xlamini.errors import ForbiddenCollectiveError
from xlamini.sharding import AxisType, NamedSharding, no_collectives, reshard

MESH = xlamini.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def split(shape: tuple[int, ...], *spec: Any) -> Any:
    return xlamini.device_put(jnp.ones(shape), NamedSharding(MESH, P(*spec)))


FORBIDDEN: dict[str, Any] = {
    "a sum": lambda: jit(jnp.sum)(split((4, 4), "x")),
    "a maximum": lambda: jit(lambda a: a.max(0))(split((4, 4), "x")),
    "a product": lambda: jit(lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P()))(
        split((4, 4), None, "x"), split((4, 4), "x")
    ),
    "gathering": lambda: jit(lambda a: reshard(a, P()))(split((4, 4), "x")),
    "another dimension": lambda: jit(lambda a: reshard(a, P(None, "x")))(split((4, 4), "x")),
    "a collective": lambda: shard_map(lambda a: lax.psum(a, "x"), mesh=MESH, in_specs=P("x"), out_specs=P())(
        jnp.ones(4)
    ),
    "a permutation": lambda: shard_map(
        lambda a: lax.ppermute(a, ("x",), [(0, 1)]), mesh=MESH, in_specs=P("x"), out_specs=P("x")
    )(jnp.ones(4)),
}
ALLOWED: dict[str, Any] = {
    "along the other axis": lambda: jit(lambda a: a.sum(0))(split((4, 4), "y")),
    "elementwise": lambda: jit(lambda a: jnp.sin(a) + a.T.T)(split((4, 4), "x")),
    "a sum of what is whole": lambda: jit(lambda a: a.sum(1))(split((4, 4), "x")),
    "splitting": lambda: jit(lambda a: reshard(a, P("x", "y")))(split((4, 4), "x")),
    "position": lambda: shard_map(
        lambda a: a + lax.axis_index("x"), mesh=MESH, in_specs=P("x"), out_specs=P("x")
    )(jnp.ones(4)),
}


@pytest.mark.parametrize("use", [*FORBIDDEN])
def test_what_is_forbidden(use: str) -> None:
    with xlamini.set_mesh(MESH):
        FORBIDDEN[use]()  # traced before, so that caches have it
        with no_collectives({"x"}), pytest.raises(ForbiddenCollectiveError, match="along the mesh axis 'x'"):
            FORBIDDEN[use]()
        with no_collectives({"y"}):
            FORBIDDEN[use]()


@pytest.mark.parametrize("use", [*ALLOWED])
def test_what_is_not(use: str) -> None:
    with xlamini.set_mesh(MESH), no_collectives(frozenset({"x"})):
        found = ALLOWED[use]()
    with xlamini.set_mesh(MESH):
        np.testing.assert_allclose(found, ALLOWED[use]())


def test_the_flag_takes_a_set() -> None:
    with pytest.raises(TypeError, match="takes a value of type frozenset"), no_collectives("x"):
        pass
