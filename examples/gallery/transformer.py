"""A character-level transformer learns to write like the reference manual of Python.

Two blocks with causal attention, their parameters stacked so that one `scan` runs them. Generation is one program too:
a `scan` over the characters that are written.

    python examples/gallery/transformer.py
"""

from __future__ import annotations

from functools import partial
from pydoc_data import topics

import numpy as np
from frame import main, steps

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, nn, random
from xlamini.example_libraries import optimizers

EXPECTED = {"bits per character, held out": (2.0, 3.2), "characters known": (80, 100)}
EXPECTED_QUICK = {"bits per character, held out": (3.0, 5.0), "characters known": (80, 100)}
WIDTH, HEADS, BLOCKS, CONTEXT, BATCH = 64, 4, 2, 64, 16


def load_text():
    """The reference manual that `help()` shows, as one string; it ships with Python."""
    text = "\n".join(value for _, value in sorted(topics.topics.items()))
    return "".join(c for c in text if c.isascii())


def init(key, vocabulary):
    """The parameters: an embedding for characters and places, and the blocks, stacked along axis 0."""
    def normal(i, shape, scale):
        return scale * random.normal(random.fold_in(key, i), shape)
    blocks = {
        "qkv": normal(0, (BLOCKS, WIDTH, 3 * WIDTH), WIDTH**-0.5),
        "mix": normal(1, (BLOCKS, WIDTH, WIDTH), WIDTH**-0.5 / 2),
        "inner": normal(2, (BLOCKS, WIDTH, 4 * WIDTH), WIDTH**-0.5),
        "outer": normal(3, (BLOCKS, 4 * WIDTH, WIDTH), WIDTH**-0.5 / 4),
    }
    return {
        "characters": normal(4, (vocabulary, WIDTH), 0.1),
        "places": normal(5, (CONTEXT, WIDTH), 0.1),
        "out": normal(6, (WIDTH, vocabulary), WIDTH**-0.5),
        "blocks": blocks,
    }


def norm(x):
    """Each row with mean 0 and variance 1."""
    return nn.standardize(x, axis=-1, epsilon=1e-5)


def block(x, p):
    """Causal attention, then a dense layer, each added to its input; x: [length, width]."""
    q, k, v = jnp.split((norm(x) @ p["qkv"]).reshape(len(x), HEADS, -1), 3, axis=-1)
    mixed = nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + mixed.reshape(x.shape) @ p["mix"]
    return x + nn.gelu(norm(x) @ p["inner"]) @ p["outer"], None


def predict(params, codes):
    """The logits of the next character after each prefix of `codes`: [length, vocabulary]."""
    x = params["characters"][codes] + params["places"][: len(codes)]
    return norm(lax.scan(block, x, params["blocks"])[0]) @ params["out"]


def loss(params, windows):
    """The cross entropy of each next character, in nats; windows: [batch, CONTEXT + 1]."""
    logits = nn.log_softmax(xlamini.vmap(predict, (None, 0))(params, windows[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(logits, windows[:, 1:, None], axis=-1))


def train(params, text, count):
    """Adam with warm-up; the parameters and the losses."""
    def rate(i):
        return 3e-3 * jnp.minimum(1, (i + 1) / 50) * (1 - 0.9 * i / count)
    opt_init, update, get_params = optimizers.adam(rate)

    @partial(xlamini.jit, donate_argnums=1)
    def step(i, state):
        starts = random.randint(random.fold_in(random.key(1), i), (BATCH, 1), 0, len(text) - CONTEXT - 1)
        value, grads = xlamini.value_and_grad(loss)(get_params(state), text[starts + jnp.arange(CONTEXT + 1)])
        return update(i, grads, state), value

    state, losses = opt_init(params), []
    for i in steps(count):
        state, value = step(i, state)
        losses.append(value)
    return get_params(state), np.asarray(losses) / np.log(2)


@xlamini.jit(static_argnames="count")
def write(params, key, start, count, temperature=0.7):
    """`count` characters after `start` [CONTEXT], each drawn given the last CONTEXT ones."""

    def next_one(context, key):
        code = random.categorical(key, predict(params, context)[-1] / temperature)
        return jnp.append(context[1:], code), code

    return lax.scan(next_one, start, random.split(key, count))[1]


def run(quick=False):
    """Learn to write like the reference manual of Python."""
    text = load_text()
    alphabet = sorted(set(text))
    codes = jnp.asarray(np.searchsorted(alphabet, list(text)).astype(np.int32))
    split = int(0.9 * len(codes))
    params, losses = train(init(random.key(0), len(alphabet)), codes[:split], 40 if quick else 1200)
    windows = codes[split:][: 64 * (CONTEXT + 1)].reshape(64, CONTEXT + 1)
    written = write(params, random.key(2), codes[:CONTEXT], 100 if quick else 500)
    numbers = {
        "bits per character, held out": float(xlamini.jit(loss)(params, windows) / np.log(2)),
        "characters known": len(alphabet),
    }
    return numbers, lambda figure: draw(figure, losses, "".join(alphabet[i] for i in np.asarray(written)))


def draw(figure, losses, written):
    """Draw the loss, and show what was written."""
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.6])
    left.plot(losses, color="tab:green", linewidth=0.7)
    left.set(xlabel="step", title="Bits per character")
    right.text(0, 1, written.replace("$", r"\$"), va="top", family="monospace", fontsize=6.5, clip_on=True)
    right.set(title="Written by the transformer")
    right.set_axis_off()


if __name__ == "__main__":
    main(run, EXPECTED, EXPECTED_QUICK)
