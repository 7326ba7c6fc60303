"""Programs of einops: patches and heads of images, layers of a network whose shapes einops checks."""
from __future__ import annotations

import einops
import jax
import jax.numpy as jnp
import numpy as np
from einops import einsum, pack, rearrange, reduce, repeat, unpack


def _image() -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).standard_normal((4, 8, 8, 3)), jnp.float32)


def patches_and_attention() -> dict[str, jax.Array]:
    """One attention layer over the patches of images, under jit, its gradient, and one image at a time under vmap."""
    images, rng = _image(), np.random.default_rng(1)
    weights = jnp.asarray(rng.standard_normal((3, 48, 16)) * 0.1, jnp.float32)

    def attend(weights, images):
        patches = rearrange(images, "... (h p) (w q) c -> ... (h w) (p q c)", p=4, q=4)
        projected = einsum(patches, weights, "... t d, s d e -> s ... t e")
        q, k, v = rearrange(projected, "s ... t (h e) -> s ... h t e", h=2)
        scores = jax.nn.softmax(einsum(q, k, "... h i e, ... h j e -> ... h i j") / jnp.sqrt(8.0))
        return rearrange(einsum(scores, v, "... h i j, ... h j e -> ... h i e"), "... h t e -> ... t (h e)")

    def loss(weights, images):
        return (attend(weights, images) ** 2).mean()

    out = jax.jit(attend)(weights, images)
    one_by_one = jax.vmap(attend, in_axes=(None, 0))(weights, images)
    per_image = jax.vmap(jax.grad(loss), in_axes=(None, 0))(weights, images)
    return {
        "out": out,
        "one_by_one": one_by_one,
        "gradient": jax.jit(jax.grad(loss))(weights, images),
        "per_image": reduce(per_image, "n s (p q c) e -> n s c", "sum", p=4, q=4),
    }


def reductions_packs_and_repeats() -> dict[str, jax.Array]:
    """Pooling by every reduction, upsampling, pack and unpack with a class token, and parse_shape."""
    images = _image()
    pooled = {how: reduce(images, "b (h 2) (w 2) c -> b h w c", how) for how in ("max", "min", "mean", "sum", "prod")}
    packed, shapes = pack([images, images[:, 0], images[:, 0, 0, :]], "b * c")
    first, second, third = unpack(packed * 2, shapes, "b * c")
    parsed = einops.parse_shape(images, "b h w _")
    gradient = jax.grad(lambda x: (repeat(x, "b h w c -> b (h 2) (w k) c", k=3).cumsum(1) ** 2).sum())(images)
    stacked = einops.rearrange([images[0], images[1]], "b h w c -> h (b w) c")
    return {
        **pooled,
        "packed": packed.sum(1),
        "unpacked": [first.sum((1, 2)), second.sum(1), third],
        "shape": [parsed["b"], parsed["h"], parsed["w"]],
        "gradient": gradient[0],
        "stacked": stacked[:2],
    }
