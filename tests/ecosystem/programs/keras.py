"""Keras with its JAX backend: models fitted, saved and loaded, layers differentiated, training over eight devices."""
from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras
import numpy as np
from keras import layers

_RNG = np.random.default_rng(0)
_IMAGES = _RNG.standard_normal((48, 8, 8, 1)).astype("float32")
_CLASSES = (_IMAGES.sum((1, 2, 3)) > 0).astype("int32")


def _filled(model: Any) -> Any:
    """The model with weights from NumPy: Keras draws its own from a global seed."""
    rng = np.random.default_rng(1)
    for weight in model.trainable_variables:
        if weight.name in ("kernel", "recurrent_kernel", "embeddings"):
            weight.assign(0.3 * rng.standard_normal(weight.shape).astype("float32"))
    return model


def _classifier() -> Any:
    keras.utils.set_random_seed(0)
    steps = [layers.Conv2D(4, 3, padding="same", use_bias=False), layers.BatchNormalization(),
             layers.Activation("gelu"), layers.MaxPooling2D(), layers.Flatten(), layers.Dropout(0.2), layers.Dense(2)]
    return _filled(keras.Sequential([keras.Input((8, 8, 1)), *steps]))


def fitting() -> dict[str, Any]:
    """`compile` and `fit` of a convolutional network; it is saved, loaded and fitted further; `evaluate`, `predict`."""
    model = _classifier()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(1e-2), loss, metrics=["accuracy"])
    history = model.fit(_IMAGES, _CLASSES, batch_size=16, epochs=6, shuffle=False, verbose=0).history
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        loaded = keras.models.load_model(path)
    same = np.array_equal(model.predict(_IMAGES, verbose=0), loaded.predict(_IMAGES, verbose=0))
    further = loaded.fit(_IMAGES, _CLASSES, batch_size=16, epochs=2, shuffle=False, verbose=0).history["loss"]
    return {"losses": history["loss"], "accuracy": history["accuracy"], "same": same, "further": further,
            "evaluated": loaded.evaluate(_IMAGES, _CLASSES, verbose=0), "weights": loaded.get_weights()[-2:]}


def stateless() -> dict[str, Any]:
    """A transformer block and recurrent layers as functions of their variables: values, gradients, vmap, jvp."""
    tokens = jnp.asarray(_RNG.integers(0, 12, (3, 6)))
    inputs = keras.Input((6,), dtype="int32")
    x = layers.Embedding(12, 8)(inputs)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4, use_bias=False)(x, x, use_causal_mask=True))
    x = layers.Bidirectional(layers.GRU(4, return_sequences=True))(x)
    x = layers.LSTM(4)(layers.Dense(8, "swish")(x))
    model = _filled(keras.Model(inputs, layers.Dense(1)(x)))
    trainable = [v.value for v in model.trainable_variables]
    rest = [v.value for v in model.non_trainable_variables]

    def loss(trainable: Any, tokens: Any) -> Any:
        return (model.stateless_call(trainable, rest, tokens)[0] ** 2).sum()

    each = jax.vmap(jax.grad(loss), (None, 0))(trainable, tokens[:, None])
    direction = [jnp.ones_like(x) for x in trainable]
    return {"value": loss(trainable, tokens), "grads": jax.jit(jax.grad(loss))(trainable, tokens),
            "tangent": jax.jvp(lambda t: loss(t, tokens), (trainable,), (direction,))[1],
            "each": [x.sum(0) for x in each]}


def operations() -> dict[str, Any]:
    """Functions of `keras.ops`, losses, metrics, and an optimizer used by itself."""
    x, y = jnp.asarray(_IMAGES[:2, :, :, 0]), jnp.asarray(_IMAGES[2:4, :, :, 0])
    ops = keras.ops
    probabilities = ops.softmax(x)
    metric = keras.metrics.AUC(num_thresholds=20)
    metric.update_state(_CLASSES[:8], 1 / (1 + np.exp(-_IMAGES[:8, 0, 0, 0])))
    variable = keras.Variable(np.ones(3, "float32"))
    optimizer = keras.optimizers.Lion(0.1)
    optimizer.build([variable])
    for _ in range(3):
        optimizer.apply([2 * variable.value - 1])
    losses = {"huber": keras.losses.huber, "cosine": keras.losses.cosine_similarity,
              "kl": lambda a, b: keras.losses.kl_divergence(probabilities, ops.softmax(b))}
    return {
        "losses": {name: [f(x, y), jax.grad(lambda y, f=f: f(x, y).sum())(y)] for name, f in losses.items()},
        "scan": ops.scan(lambda c, row: (c + row.sum(), c * row.mean()), jnp.float32(0), x[0])[1],
        "while": ops.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s * 0.5 + i), (0, 1.0))[1],
        "resized": ops.image.resize(_IMAGES[:2], (5, 5)), "top": ops.top_k(x, 2)[0], "auc": metric.result(),
        "segments": ops.segment_sum(x[0], jnp.array([0, 0, 1, 1, 2, 2, 3, 3]), 4), "lion": variable.value,
        "norm": ops.norm(x, axis=-1), "einsum": ops.einsum("bij,bkj->bik", x, y),
    }


def data_parallel() -> dict[str, Any]:
    """`fit` under `keras.distribution.DataParallel` on eight devices."""
    keras.distribution.set_distribution(keras.distribution.DataParallel())
    try:
        model = _classifier()
        model.compile(keras.optimizers.SGD(0.05, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(True))
        losses = model.fit(_IMAGES, _CLASSES, batch_size=16, epochs=3, shuffle=False, verbose=0).history["loss"]
        return {"losses": losses, "weights": model.get_weights()[-2]}
    finally:
        keras.distribution.set_distribution(None)
