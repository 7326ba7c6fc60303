"""Programs of chex: dataclasses through transformations, assertions on arrays and while tracing."""
from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


def _refused(f, *args) -> bool:
    """Whether `f` raises an AssertionError."""
    try:
        f(*args)
    except AssertionError:
        return True
    return False


@chex.dataclass
class _State:
    weights: chex.Array
    velocity: chex.Array
    count: chex.Numeric = 0


@chex.dataclass(frozen=True, mappable_dataclass=False)
class _Batch:
    x: chex.ArrayDevice
    y: chex.ArrayDevice


def dataclasses_in_training() -> dict[str, jax.Array]:
    """A dataclass as the state of a loop, over eight devices; traces counted; trees asserted; a checked gradient."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((64, 4)), jnp.float32)
    mesh = Mesh(np.array(jax.devices()), ("batch",))
    batch = jax.device_put(_Batch(x=x, y=jnp.tanh(x).sum(1)), NamedSharding(mesh, P("batch")))

    def loss(weights, batch):
        chex.assert_shape(batch.x, (..., 4))
        chex.assert_equal_shape_prefix([batch.x, batch.y], 1)
        chex.assert_type(weights, float)
        return ((batch.x @ weights - batch.y) ** 2).mean()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def step(state, batch):
        grads = jax.grad(loss)(state.weights, batch)
        velocity = 0.8 * state.velocity + grads
        return state.replace(weights=state.weights - 0.1 * velocity, velocity=velocity, count=state.count + 1)

    start = _State(weights=jnp.zeros(4), velocity=jnp.zeros(4), count=jnp.array(0))
    state = jax.device_put(start, NamedSharding(mesh, P()))
    for _ in range(40):
        state = jax.block_until_ready(step(state, batch))
    chex.assert_tree_all_finite(state)
    chex.assert_trees_all_equal_shapes_and_dtypes(state, jax.tree.map(jnp.zeros_like, state))
    chex.assert_tree_is_sharded(batch, devices=jax.devices())
    chex.assert_numerical_grads(lambda w: loss(w, _Batch(x=x[:4], y=x[:4, 0])), (state.weights,), order=1, atol=0.01)
    doubled = jax.vmap(lambda s, k: jax.tree.map(lambda a: a * k, s), in_axes=(None, 0))(state, jnp.arange(2.0))
    return {
        "state": dict(state),
        "loss": loss(state.weights, batch),
        "doubled": doubled.weights,
        "paths": [path[0].name for path, _ in jax.tree_util.tree_flatten_with_path(state)[0]] == sorted(state),
        "as_tuple": state.to_tuple()[1],
    }


def assertions() -> dict[str, list[bool]]:
    """What assertions refuse, also while tracing, and counts of traces; fakes of jit and pmap."""
    x = jnp.arange(6.0).reshape(2, 3)

    @jax.jit
    def traced(x):
        chex.assert_rank(x, 3)
        return x

    def traces(times):
        f = jax.jit(chex.assert_max_traces(lambda x: x + 1, n=1))
        for n in range(1, times + 1):
            f(jnp.ones(n))

    with chex.fake_jit():
        calls = []
        jax.jit(lambda x: (calls.append(1), x)[1])(x)
        jax.jit(lambda x: (calls.append(float(x[0, 1])), x)[1])(x)
    with chex.fake_pmap():
        mapped = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(x)
    chex.clear_trace_counter()
    return {
        "static": [
            _refused(traced, x),
            _refused(chex.assert_shape, x, (2, 4)),
            _refused(chex.assert_shape, x, (None, 3)),
            _refused(chex.assert_trees_all_close, {"a": x}, {"a": x + 1e-3}),
            _refused(chex.assert_trees_all_equal_structs, {"a": x}, [x]),
            _refused(chex.assert_tree_all_finite, {"a": x / 0}),
            _refused(chex.assert_type, x, int),
            _refused(traces, 1),
            _refused(traces, 2),
            _refused(chex.assert_axis_dimension, x, 1, 3),
            _refused(chex.assert_trees_all_equal_dtypes, x, x.astype(jnp.int32)),
        ],
        "fake": calls,
        "mapped": mapped,
    }
