"""Programs of jaxtyping: annotations that beartype checks while JAX traces, on layers and on trees."""
from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from beartype import beartype
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree, Scalar, Shaped, jaxtyped


def _refused(f, *args) -> bool:
    """Whether the annotations of `f` refuse `args`."""
    try:
        f(*args)
    except Exception as error:
        return "TypeCheck" in type(error).__name__ or "Violation" in type(error).__name__
    return False


def checked_network() -> dict[str, jax.Array]:
    """A network whose layers say their shapes, trained under jit and grad; wrong shapes are refused while tracing."""

    @jaxtyped(typechecker=beartype)
    def layer(x: Float[Array, "batch d_in"], w: Float[Array, "d_in d_out"]) -> Float[Array, "batch d_out"]:
        return jnp.tanh(x @ w)

    @jaxtyped(typechecker=beartype)
    def loss(params: PyTree[Float[Array, "..."]], x: Float[Array, "b d"], y: Int[Array, " b"]) -> Scalar:
        logits = layer(layer(x, params["first"]), params["second"])
        return -jax.nn.log_softmax(logits)[jnp.arange(len(y)), y].mean()

    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((32, 5)), jnp.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    params = {
        "first": jnp.asarray(rng.standard_normal((5, 8)) * 0.5, jnp.float32),
        "second": jnp.asarray(rng.standard_normal((8, 2)) * 0.5, jnp.float32),
    }
    step = jax.jit(lambda p: jax.tree.map(lambda a, g: a - 0.5 * g, p, jax.grad(loss)(p, x, y)))
    for _ in range(50):
        params = step(params)
    return {
        "loss": loss(params, x, y),
        "params": params,
        "rows": jax.vmap(lambda row: layer(row[None], params["first"])[0])(x)[:2],
        "refused": [
            _refused(layer, x, params["second"]),
            _refused(jax.jit(layer), x, params["second"]),
            _refused(jax.grad(loss), params, x, y.astype(float)),
            _refused(loss, params, x[0], y),
            _refused(loss, {"first": 1}, x, y),
        ],
    }


def annotations_of_arrays() -> dict[str, list[bool]]:
    """What is an instance of what: dtypes, shapes with names and sums, keys, tracers, and fields of a dataclass."""
    x = jnp.ones((2, 3))
    traced = []
    jax.jit(lambda a: traced.extend([isinstance(a, Float[Array, "2 3"]), isinstance(a, Int[Array, "2 3"])]))(x)
    jax.vmap(lambda a: traced.extend([isinstance(a, Float[Array, "3"]), isinstance(a, Array)]))(x)
    jax.grad(lambda a: (traced.append(isinstance(a, Float[Array, "..."])), a.sum())[1])(x)

    @jaxtyped(typechecker=beartype)
    @dataclasses.dataclass
    class Batch:
        inputs: Float[Array, "b d"]
        mask: Bool[Array, " b"]

    @jaxtyped(typechecker=beartype)
    def padded(a: Float[Array, " n"]) -> Float[Array, " n+1"]:
        return jnp.concatenate([a, a[:1]])

    return {
        "traced": traced,
        "arrays": [
            isinstance(x, Float[Array, "a b"]),
            isinstance(x, Float[Array, "a a"]),
            isinstance(x, Shaped[Array, "*all"]),
            isinstance(np.ones(2), Float[np.ndarray, "2"]),
            isinstance(np.ones(2), Float[Array, "2"]),
            isinstance(x.astype(jnp.bfloat16), Float[Array, "2 3"]),
        ],
        "keys": [
            isinstance(jax.random.key(0), Key[Array, ""]),
            isinstance(jax.random.PRNGKey(0), PRNGKeyArray),
            isinstance(jax.random.split(jax.random.key(0)), Key[Array, "2"]),
        ],
        "fields": [_refused(Batch, x, jnp.ones(2, bool)), _refused(Batch, x, jnp.ones(3, bool))],
        "padded": padded(x[0]).tolist(),
    }
