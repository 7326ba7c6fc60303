"""What the tests of this folder share: the mesh that they compute on, 8 devices as 2 by 4, and functions with rules."""
from __future__ import annotations

from typing import Any

import numpy as np

import xlamini
from xlamini import P, custom_jvp, custom_vjp, make_mesh, numpy as jnp
from xlamini.sharding import Mesh, NamedSharding

MESH = make_mesh((2, 4), ("x", "y"), axis_types=xlamini.sharding.AxisType.Auto)
DEVICES = xlamini.devices()
REVERSED = Mesh(np.array(DEVICES[::-1]).reshape(2, 4), ("x", "y"))
HALF = Mesh(np.array(DEVICES[4:]).reshape(2, 2), ("x", "y"))

SPECS = [P(), P("x"), P("x", "y"), P("y", "x"), P(None, "y"), P(None, ("y", "x"))]


def over(*partitions: Any) -> NamedSharding:
    """A sharding over the mesh."""
    return NamedSharding(MESH, P(*partitions))


def table(*shape: int) -> np.ndarray:
    """Different numbers."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def split(value: Any, *partitions: Any) -> Any:
    """An array over the mesh."""
    return xlamini.device_put(value, over(*partitions))


@custom_vjp
def clipped(x: Any) -> Any:
    return x


clipped.defvjp(lambda x: (x, x), lambda x, ct: (jnp.clip(ct, -1, 1) * jnp.sign(x),))


@custom_jvp
def soft(x: Any) -> Any:
    return jnp.log1p(jnp.exp(x))


soft.defjvps(lambda t, out, x: t * (1 - jnp.exp(-out)))
