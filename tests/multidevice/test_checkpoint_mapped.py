"""A policy of checkpoint holds inside shard_map: each device saves its own values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import checkpoint, checkpoint_policies as policies, grad, lax, shard_map
from xlamini.ad_checkpoint import checkpoint_name, saved_residuals
from xlamini.sharding import AxisType, PartitionSpec as P

X = np.linspace(0.1, 0.9, 16, dtype=np.float32).reshape(4, 4)
W = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def body(x: Any, w: Any) -> Any:
    y = jnp.sin(x @ w)
    scale = checkpoint_name(jnp.exp((y * y).sum()), "scale")
    return lax.scan(lambda c, _: (jnp.cos(c @ w), None), y * scale, None, length=2)[0]


@pytest.mark.parametrize("checked", (True, False))
@pytest.mark.parametrize("kind", (AxisType.Auto, AxisType.Explicit))
@pytest.mark.parametrize(
    ("policy", "products", "saved"),
    ((policies.dots_saveable, 6, (4, 2, 4)), (policies.save_only_these_names("scale"), 8, (2,)), (None, 8, (4, 4))),
)
def test_what_is_saved_on_each_device(policy: Any, products: int, saved: Any, kind: AxisType, checked: bool) -> None:
    mesh = xlamini.make_mesh((2,), ("i",), axis_types=kind)
    mapped = shard_map(body, mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i"), check_vma=checked)
    saving = checkpoint(mapped, policy=policy)
    gradient = grad(lambda x, w: (saving(x, w) ** 2).sum(), (0, 1))
    expected = grad(lambda x, w: (mapped(x, w) ** 2).sum(), (0, 1))(X, W)
    for found, right in zip(gradient(X, W), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5)
    assert saved in [r.aval.shape for r in saved_residuals(saving, X, W)]
    assert str(xlamini.make_jaxpr(gradient)(X, W)).count("dot_general") == products
