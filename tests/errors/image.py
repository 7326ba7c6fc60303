"""Images resized and moved."""

from __future__ import annotations

from tests.support.error_rows import ones, row
from xlamini import image, jit
from xlamini.errors import ShapeError

IMAGE, ONE = ones(2, 3), ones(1)


def moved(shape=(2, 3), dims=(0,), scale=ONE, method="linear"):
    return image.scale_and_translate(IMAGE, shape, dims, scale, ONE, method)


ROWS = [
    row("rank", lambda: image.resize(IMAGE, (4,), "linear"), ShapeError, "the image has shape (2, 3)", "2 sizes"),
    row("method", lambda: image.resize(IMAGE, (4, 3), "mean"), ValueError, "method must be one of", "got 'mean'"),
    row("negative", lambda: image.resize(IMAGE, (4, -3), "linear"), TypeError, "resize", "negative"),
    row("list", lambda: image.resize([[1.0]], (4, 3), "linear"), TypeError, "resize: an array", "jnp.asarray"),
    row("traced shape", lambda: jit(lambda n: image.resize(IMAGE, (n, 3), "linear"))(4), TypeError, "n"),
    row("nearest", lambda: moved(method="nearest"), ValueError, 'scale_and_translate: method "nearest"', "resize"),
    row("moved rank", lambda: moved(shape=(2,)), ShapeError, "scale_and_translate: the image has shape (2, 3)"),
    row("dims", lambda: moved(dims=(2,)), ValueError, "scale_and_translate: axis 2 is out of range"),
    row("dims twice", lambda: moved(dims=(0, 0), scale=ones(2)), ValueError, "names an axis twice"),
    row("scales", lambda: moved(scale=ones(2)), ShapeError, "scale must have shape (1,)", "got (2,)"),
]
