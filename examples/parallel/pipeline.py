"""Pipeline parallelism: each device holds one stage of the layers, and microbatches flow through the stages.

This is a per-device program (`shard_map`). At each tick a stage applies its layers to the activations that it received,
and sends the result to the next stage. `grad` derives the backward pipeline.
"""

from __future__ import annotations

from typing import Any

from transformer import Config, Params, cross_entropy, param_shapes, through_layers

import xlamini
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.sharding import NamedSharding, PartitionSpec as P

MICROBATCHES = 4


def specs_of(config: Config) -> dict[str, P]:
    """Parameters of layers are sharded by stage; the others are replicated."""
    layers = {name for name, shape in param_shapes(config).items() if len(shape) > 2} | {"norm_attention", "norm_mlp"}
    return {name: P("stage") if name in layers else P() for name in param_shapes(config)}


def pipelined_loss(config: Config, mesh: Any, params: Params, tokens: Any) -> Any:
    """The same loss as `transformer.loss`, computed by the stages of the mesh axis "stage"."""
    last = mesh.shape["stage"] - 1
    to_next = [(stage, stage + 1) for stage in range(last)]

    def per_device(params: Params, tokens: Any) -> Any:
        stage = lax.axis_index("stage")
        batches = tokens.reshape(MICROBATCHES, -1, tokens.shape[-1])

        def tick(state: tuple[Any, Any], time: Any) -> tuple[tuple[Any, Any], None]:
            arrived, total = state
            entering = params["embed"][batches[jnp.clip(time, 0, MICROBATCHES - 1)][:, :-1]]
            x = through_layers(config, params, jnp.where(stage == 0, entering, arrived))
            done = time - last
            batch_loss = cross_entropy(params, x, batches[jnp.clip(done, 0, MICROBATCHES - 1)])
            total = total + jnp.where((stage == last) & (done >= 0), batch_loss, 0.0)
            return (lax.ppermute(x, "stage", to_next), total), None

        nothing = jnp.zeros((batches.shape[1], config.length, config.width), params["embed"].dtype)
        (_, total), _ = lax.scan(tick, (nothing, jnp.float32(0)), jnp.arange(MICROBATCHES + last))
        return lax.psum(total, "stage") / MICROBATCHES

    specs = (specs_of(config), P())
    return xlamini.shard_map(per_device, mesh=mesh, in_specs=specs, out_specs=P())(params, tokens)


def pipelined_step(mesh: Any, config: Config, rate: float = 0.05) -> Any:
    """The jitted training step, which takes and returns parameters sharded by stage."""

    def step(params: Params, tokens: Any) -> tuple[Params, Any]:
        value, grads = xlamini.value_and_grad(lambda p: pipelined_loss(config, mesh, p, tokens))(params)
        return xlamini.tree.map(lambda p, g: p - rate * g, params, grads), value

    of_params = {name: NamedSharding(mesh, spec) for name, spec in specs_of(config).items()}
    return xlamini.jit(step, in_shardings=(of_params, NamedSharding(mesh, P())), out_shardings=(of_params, None))
