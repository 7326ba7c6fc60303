"""Values in the host's memory, compiled for a TPU and a GPU: their compilers report how many bytes are there."""
from __future__ import annotations

from typing import Any

import numpy as np

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.ad_checkpoint import checkpoint_name
from xlamini.checkpoint_policies import save_and_offload_only_these_names, save_only_these_names
from xlamini.memory import Space
from xlamini.runtime.targets.topology import Target

LAYERS, ROWS, WIDTH = 4, 256, 512
ACTIVATIONS = 4 * LAYERS * ROWS * ROWS  # the bytes of the inputs of all layers
OFFLOAD = save_and_offload_only_these_names(
    names_which_can_be_saved=[], names_which_can_be_offloaded=["x"], offload_src="device", offload_dst="pinned_host"
)
X = np.ones((ROWS, ROWS), np.float32)
WEIGHTS = np.ones((LAYERS, ROWS, WIDTH), np.float32), np.ones((LAYERS, WIDTH, ROWS), np.float32)


def layer(x: Any, w: Any) -> Any:
    first, second = xlamini.device_put(w, Space.Device)
    return jnp.tanh(checkpoint_name(x, "x") @ first) @ second, None


def memory(f: Any, target: Target, *args: Any) -> Any:
    return xlamini.jit(f).trace(*args).lower(target=target).compile().memory_analysis()


def test_moves(target: Target) -> None:
    found = memory(lambda x: xlamini.device_put(2 * x, Space.Host), target, X)
    assert (found.host_output_size_in_bytes, found.output_size_in_bytes) == (X.nbytes, 0)
    found = memory(lambda x: xlamini.device_put(x, Space.Device) + 1, target, xlamini.device_put(X, Space.Host))
    assert (found.host_argument_size_in_bytes, found.argument_size_in_bytes) == (X.nbytes, 0)


def test_activations_and_parameters(target: Target) -> None:
    def loss(policy: Any) -> Any:
        body = xlamini.checkpoint(layer, policy=policy, prevent_cse=False)
        return lambda w, x: jnp.sum(lax.scan(body, x, w)[0])

    saved = memory(xlamini.grad(loss(save_only_these_names("x"))), target, WEIGHTS, X)
    moved = memory(xlamini.grad(loss(OFFLOAD)), target, xlamini.device_put(WEIGHTS, Space.Host), X)
    parameters = sum(w.nbytes for w in WEIGHTS)
    assert (saved.host_temp_size_in_bytes, moved.host_temp_size_in_bytes) == (0, ACTIVATIONS)
    assert moved.host_argument_size_in_bytes == moved.host_output_size_in_bytes == parameters
    assert moved.argument_size_in_bytes == X.nbytes
