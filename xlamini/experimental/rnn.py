"""LSTM layers, with weights in the order of cuDNN and the notation of PyTorch's `LSTM`.

A bidirectional layer is two pseudo-layers, forward then reverse, with weights of their own. The weights are one vector:
W_ih and W_hh of each pseudo-layer, then b_ih and b_hh of each. Each has its rows in the order of the gates: input,
forget, cell, output.
"""
from __future__ import annotations

import functools
import itertools
import math
from typing import Any

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.nn.activations import sigmoid
from xlamini.random.uniform import uniform
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.scan.api import scan

__all__ = [
    "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates", "unpack_lstm_weights",
]  # fmt: skip

Weights = dict[int, Array]
"""A weight of each pseudo-layer."""


def lstm(
    x: Array,
    h_0: Array,
    c_0: Array,
    weights: Array,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float = 0.0,
    bidirectional: bool = False,
    precision: Any = None,
) -> tuple[Array, Array, Array]:
    """A stack of LSTM layers over a batch of sequences: the outputs `y`, and the last states `h_n` and `c_n`.

    `x` has the shape (batch, time, input_size); `h_0` and `c_0` have (num_layers * directions, batch, hidden_size), as
    `h_n` and `c_n` do; `y` has (batch, time, hidden_size * directions). `weights` is a vector of
    `get_num_params_in_lstm(...)` numbers. `seq_lengths`, of shape (batch,), says how long each sequence is; `y` is zero
    behind its end. `precision` is that of the matrix products.

    It runs as a scan on every platform: cuDNN is not used. ValueError for a `dropout` other than zero, ShapeError for
    other shapes.

    >>> size = get_num_params_in_lstm(3, 2, 1, False)
    >>> x, state = jnp.ones((4, 5, 3)), jnp.zeros((1, 4, 2))
    >>> y, h_n, c_n = lstm(x, state, state, jnp.zeros(size), jnp.full(4, 5), 3, 2, 1)
    >>> y.shape, h_n.shape
    ((4, 5, 2), (1, 4, 2))
    """
    unpacked = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _run(x, h_0, c_0, *unpacked, seq_lengths, input_size, hidden_size, dropout, bidirectional, precision)


def lstm_ref(
    x: Array,
    h_0: Array,
    c_0: Array,
    W_ih: Weights,
    W_hh: Weights,
    b_ih: Weights,
    b_hh: Weights,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float = 0.0,
    bidirectional: bool = False,
) -> tuple[Array, Array, Array]:
    """`lstm` with the weights of each pseudo-layer apart, as `unpack_lstm_weights` returns them.

    The other arguments, the results and the errors are those of `lstm`.

    >>> x, state = jnp.ones((4, 5, 3)), jnp.zeros((1, 4, 2))
    >>> weights = unpack_lstm_weights(jnp.zeros(56), 3, 2, 1, False)
    >>> y, h_n, c_n = lstm_ref(x, state, state, *weights, jnp.full(4, 5), 3, 2, 1)
    >>> y.shape, h_n.shape
    ((4, 5, 2), (1, 4, 2))
    """
    return _run(x, h_0, c_0, W_ih, W_hh, b_ih, b_hh, seq_lengths, input_size, hidden_size, dropout, bidirectional)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """The length of the vector of weights.

    >>> get_num_params_in_lstm(3, 2, 2, bidirectional=True)
    240
    """
    return sum(map(math.prod, _weight_shapes(input_size, hidden_size, num_layers, bidirectional)))


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Random weights for `lstm`, uniform between -1 / sqrt(hidden_size) and 1 / sqrt(hidden_size), in float32.

    >>> init_lstm_weight(xlamini.random.key(0), 3, 2, 2, True).shape
    (240,)
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = hidden_size**-0.5
    return uniform(rng, (count,), dtype="float32", minval=-bound, maxval=bound)


def unpack_lstm_weights(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Weights, Weights, Weights, Weights]:
    """W_ih, W_hh, b_ih and b_hh of every pseudo-layer; ShapeError if `weights` is a vector of another length.

    >>> W_ih, W_hh, b_ih, b_hh = unpack_lstm_weights(jnp.zeros(240), 3, 2, 2, True)
    >>> W_ih[0].shape, W_hh[3].shape, b_hh[3].shape
    ((8, 3), (8, 2), (8,))
    """
    parts = _parts(weights, input_size, hidden_size, num_layers, bidirectional)
    matrices, biases = parts[: len(parts) // 2], parts[len(parts) // 2 :]
    kinds = matrices[::2], matrices[1::2], biases[::2], biases[1::2]
    W_ih, W_hh, b_ih, b_hh = (dict(enumerate(kind)) for kind in kinds)
    return W_ih, W_hh, b_ih, b_hh


def swap_lstm_gates(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """The vector of weights with the cell gate and the output gate exchanged: the order of MIOpen.

    ShapeError for a vector of another length than `get_num_params_in_lstm(...)`.

    >>> weights = jnp.arange(16.0)  # W_ih, W_hh, b_ih and b_hh, each of the gates i, f, g, o
    >>> swap_lstm_gates(weights, 1, 1, 1, False)[:8]
    Array([0., 1., 3., 2., 4., 5., 7., 6.], dtype=float32)
    """
    gates = [jnp.split(w, 4) for w in _parts(weights, input_size, hidden_size, num_layers, bidirectional)]
    return jnp.concatenate([part.ravel() for i, f, g, o in gates for part in (i, f, o, g)])


def _parts(weights: Array, *sizes: Any) -> list[Array]:
    """The matrices, then the biases, in the order of the vector."""
    shapes = _weight_shapes(*sizes)
    ends = list(itertools.accumulate(map(math.prod, shapes)))
    if jnp.shape(weights) != (ends[-1],):
        raise ShapeError(f"lstm: weights must have the shape ({ends[-1]},), got {jnp.shape(weights)}")
    return [part.reshape(shape) for part, shape in zip(jnp.split(weights, ends[:-1]), shapes, strict=True)]


def _weight_shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> list[tuple[int, ...]]:
    directions, rows = 2 if bidirectional else 1, 4 * hidden_size
    inputs = [input_size] * directions + [hidden_size * directions] * (directions * (num_layers - 1))
    return [(rows, width) for n in inputs for width in (n, hidden_size)] + [(rows,)] * (2 * len(inputs))


@composite(static=("input_size", "hidden_size", "dropout", "bidirectional", "precision"))
def _run(
    x: Any,
    h_0: Any,
    c_0: Any,
    W_ih: Weights,
    W_hh: Weights,
    b_ih: Weights,
    b_hh: Weights,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> Any:
    _check(x, (h_0, c_0), seq_lengths, (len(W_ih), hidden_size), input_size, dropout)
    within = jnp.arange(x.shape[1])[:, None] < seq_lengths[None, :]
    sequence, last = jnp.swapaxes(x, 0, 1), []
    directions = 2 if bidirectional else 1
    for first in range(0, len(W_ih), directions):
        outputs = []
        for layer in range(first, first + directions):
            weights = W_ih[layer], W_hh[layer], b_ih[layer] + b_hh[layer]
            ys, state = _layer(sequence, within, (h_0[layer], c_0[layer]), weights, layer > first, precision)
            outputs.append(ys)
            last.append(state)
        sequence = jnp.concatenate(outputs, axis=-1)
    h_n, c_n = (jnp.stack(states) for states in zip(*last, strict=True))
    return jnp.swapaxes(sequence, 0, 1), h_n, c_n


def _layer(sequence: Any, within: Any, state: Any, weights: Any, reverse: bool, precision: Any) -> Any:
    """One pseudo-layer over time: its outputs, zero behind the ends, and its last state."""
    W_ih, W_hh, bias = weights
    dot = functools.partial(jnp.dot, precision=precision)
    inputs = dot(sequence, W_ih.T) + bias

    def step(state: Any, xs: Any) -> Any:
        given, alive = xs
        h, c = state
        i, f, g, o = jnp.split(given + dot(h, W_hh.T), 4, axis=-1)
        c_next = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
        h_next = sigmoid(o) * jnp.tanh(c_next)
        here = alive[:, None]
        return (jnp.where(here, h_next, h), jnp.where(here, c_next, c)), jnp.where(here, h_next, 0)

    last, ys = scan(step, state, (inputs, within), reverse=reverse)
    return ys, last


def _check(x: Any, states: Any, seq_lengths: Any, sizes: tuple[int, int], input_size: int, dropout: float) -> None:
    if dropout:
        raise ValueError(f"lstm: dropout {dropout} is not supported; drop out elements of x between calls instead")
    if x.ndim != 3 or x.shape[2] != input_size:
        raise ShapeError(f"lstm: x must have the shape (batch, time, {input_size}), got {x.shape}")
    layers, hidden_size = sizes
    of_state = layers, x.shape[0], hidden_size
    for name, given, wanted in zip(
        ("h_0", "c_0", "seq_lengths"), (*states, seq_lengths), (of_state, of_state, x.shape[:1]), strict=True
    ):
        if given.shape != wanted:
            raise ShapeError(f"lstm: {name} must have the shape {wanted}, got {given.shape}")


_edge_of_face(globals())
