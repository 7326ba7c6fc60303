"""E3nn: spherical harmonics, tensor products and linear maps of irreps, and an equivariant function trained."""
from __future__ import annotations

from typing import Any

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import numpy as np

_POINTS = jnp.asarray(np.random.default_rng(0).standard_normal((6, 3)), jnp.float32)


def irreps() -> dict[str, Any]:
    """Harmonics with derivatives, products, norms, Clebsch-Gordan coefficients; equivariance under a rotation."""
    harmonics = lambda x: e3nn.spherical_harmonics("0e + 1o + 2e", x, normalize=True).array
    turn = e3nn.angles_to_matrix(0.3, 0.7, -0.4)
    x = e3nn.IrrepsArray("1o", _POINTS)
    product = e3nn.tensor_product(x, e3nn.spherical_harmonics("2e", x, True))
    turned = product.transform_by_matrix(turn).array
    y = e3nn.IrrepsArray("1o", _POINTS @ turn.T)
    direct = e3nn.tensor_product(y, e3nn.spherical_harmonics("2e", y, True)).array
    return {"harmonics": jax.jit(jax.vmap(harmonics))(_POINTS), "slopes": jax.vmap(jax.jacobian(harmonics))(_POINTS),
            "product": product.array, "equivariant": jnp.abs(turned - direct).max() < 1e-4,
            "coefficients": e3nn.clebsch_gordan(1, 1, 2), "norms": e3nn.norm(product).array}


def training() -> dict[str, Any]:
    """Weights of a product and a gate are fitted to the field of a dipole by gradient descent."""
    target = 3 * _POINTS * _POINTS[:, :1] - jnp.eye(3)[0]

    def field(weights: Any, x: Any) -> Any:
        sh = e3nn.spherical_harmonics("0e + 1o + 2e", x, normalize=False)
        pole = e3nn.IrrepsArray("1o", weights["pole"])
        mixed = e3nn.tensor_product(sh, pole).filter("1o")
        return jnp.einsum("i,ij->j", weights["mix"][: mixed.irreps.num_irreps], mixed.array.reshape(-1, 3))

    def loss(weights: Any) -> Any:
        return ((jax.vmap(field, (None, 0))(weights, _POINTS) - target) ** 2).mean()

    def update(weights: Any, _: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda w, g: w - 0.01 * g, weights, grads), (value, grads)

    weights = {"pole": jnp.array([0.5, 0.1, -0.2]), "mix": jnp.array([0.3, -0.1, 0.6])}
    _, (values, grads) = jax.jit(lambda w: jax.lax.scan(update, w, None, 8))(weights)
    return {"values": values, "grads": grads}
