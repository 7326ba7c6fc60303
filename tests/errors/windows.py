"""Convolutions, pooling, reductions with a computation, signals: operands and windows that do not fit."""
from __future__ import annotations

from typing import Any

import xlamini
from tests.support.error_rows import ones, row
from xlamini import lax, numpy as jnp
from xlamini.errors import ShapeError
from xlamini.scipy import signal

grad, jit, vmap = xlamini.grad, xlamini.jit, xlamini.vmap


def image(features: int = 3) -> Any:
    return ones(1, features, 4, 4)


KERNEL = ones(2, 3, 2, 2)

ROWS = [
    row(
        "features", lambda: lax.conv_general_dilated(image(6), KERNEL, (1, 1), "SAME"), ShapeError,
        "conv_general_dilated: lhs float32[1,6,4,4] has 6 features", "takes 3 in each of 1 group(s)",
        "feature_group_count=2",
    ),
    row(
        "features in all", lambda: jit(vmap(grad(lambda x: lax.conv(x, KERNEL, (1, 1), "SAME").sum())))(image(6)[None]),
        ShapeError, "has 6 features",
    ),
    row(
        "groups", lambda: lax.conv_general_dilated(image(9), KERNEL, (1, 1), "SAME", feature_group_count=3), ShapeError,
        "feature_group_count 3 must divide the kernel's 2 output features",
    ),
    row(
        "batch groups", lambda: lax.conv_general_dilated(image(), KERNEL, (1, 1), "SAME", batch_group_count=2),
        ShapeError, "batch_group_count 2 must divide the kernel's 2 output features and the batch size 1",
    ),
    row(
        "both groups",
        lambda: lax.conv_general_dilated(
            image(), KERNEL, (1, 1), "SAME", feature_group_count=2, batch_group_count=2
        ),
        ValueError, "one of them 1, got 2 and 2",
    ),
    row(
        "no groups", lambda: lax.conv_general_dilated(image(), KERNEL, (1, 1), "SAME", feature_group_count=0),
        ValueError, "must be 1 or more",
    ),
    row(
        "dtypes", lambda: lax.conv(image(), KERNEL.astype("bfloat16"), (1, 1), "SAME"), TypeError,
        "both operands must have one dtype, got float32 and bfloat16", ".astype",
    ),
    row(
        "narrower", lambda: lax.conv(image(), KERNEL, (1, 1), "SAME", preferred_element_type="float16"), TypeError,
        "preferred_element_type float16 is narrower than float32",
    ),
    row(
        "of another kind", lambda: lax.conv(image(), KERNEL, (1, 1), "SAME", preferred_element_type="int32"), TypeError,
        "preferred_element_type int32 does not fit operands of float32",
    ),
    row(
        "strides", lambda: lax.conv_general_dilated(image(), KERNEL, (1,), "SAME"), ShapeError,
        "window_strides must have 2 entries, one for each dimension, got (1,)",
    ),
    row(
        "stride 0", lambda: lax.conv_general_dilated(image(), KERNEL, (0, 1), "SAME"), ShapeError,
        "window_strides must be 1 or more",
    ),
    row(
        "dilation", lambda: lax.conv_general_dilated(image(), KERNEL, (1, 1), "VALID", rhs_dilation=(1, 2, 3)),
        ShapeError, "rhs_dilation must have 2 entries",
    ),
    row(
        "traced stride", lambda: jit(lambda s: lax.conv_general_dilated(image(), KERNEL, (s, 1), "SAME"))(1), TypeError,
        "window_strides must be a sequence of 2 ints",
    ),
    row(
        "padding", lambda: lax.conv_general_dilated(image(), KERNEL, (1, 1), [(1, 1)]), ShapeError,
        "padding must have 2 pairs",
    ),
    row(
        "padding of ints", lambda: lax.conv_general_dilated(image(), KERNEL, (1, 1), (1, 1)), TypeError,  # type: ignore[arg-type]
        "conv_general_dilated: padding must be 'SAME', 'SAME_LOWER', 'VALID', or a pair",
    ),
    row(
        "padding name", lambda: lax.conv_general_dilated(image(), KERNEL, (1, 1), "FULL"), RuntimeError,
        "conv_general_dilated: unknown padding 'FULL'", "'SAME_LOWER'",
    ),
    row(
        "padding of the dilated", lambda: lax.conv_general_dilated(image(), KERNEL, (1, 1), "SAME", (2, 1)), ValueError,
        "says nothing of an lhs that is dilated by (2, 1)", "conv_transpose",
    ),
    row(
        "ranks", lambda: lax.conv(image(), ones(2, 3, 2), (1, 1), "SAME"), ShapeError,
        "lhs and rhs must have one rank, got shapes (1, 3, 4, 4) and (2, 3, 2)",
    ),
    row("rank 1", lambda: lax.conv(ones(3), ones(3), (), "SAME"), ShapeError, "at least 2, got float32[3]"),
    row(
        "empty kernel", lambda: lax.conv(image(), ones(2, 3, 0, 2), (1, 1), "VALID"), ShapeError,
        "the kernel float32[2,3,0,2] has an empty spatial dimension",
    ),
    row(
        "numbers",
        lambda: lax.conv_general_dilated(image(), KERNEL, (1, 1), "SAME", dimension_numbers=((0, 1), (0, 1), (0, 1))),  # type: ignore[arg-type]
        TypeError, "three strings such as ('NHWC', 'HWIO', 'NHWC')",
    ),
    row(
        "letters",
        lambda: lax.conv_general_dilated(image(), KERNEL, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIX", "NHWC")),
        TypeError, "the rhs string 'HWIX' must have O and I once",
    ),
    row(
        "spatial letters", lambda: lax.conv_dimension_numbers((1, 3, 4), (2, 3, 2), ("NCH", "OIW", "NCH")), ValueError,
        "conv_dimension_numbers: the strings 'NCH', 'OIW', 'NCH' must name the same spatial dimensions",
    ),
    row(
        "length of the strings", lambda: lax.conv_dimension_numbers((1, 3, 4), (2, 3, 2), ("NCHW", "OIHW", "NCHW")),
        ShapeError, "must name the 3 dimensions",
    ),
    row(
        "conv_transpose padding", lambda: lax.conv_transpose(ones(1, 4, 3), ones(2, 3, 5), (2,), "SAME_LOWER"),
        ValueError, "conv_transpose: padding must be 'SAME', 'VALID' or pairs",
    ),
    row(
        "conv_transpose rank", lambda: lax.conv_transpose(ones(1, 3), ones(3, 5), (), "SAME"), ShapeError,
        "conv_transpose: lhs must have rank 3, 4 or 5, got float32[1,3]", "dimension_numbers",
    ),
    row(
        "patches", lambda: lax.conv_general_dilated_patches(image(), (2,), (1,), "SAME"), ShapeError,
        "conv_general_dilated_patches: lhs and rhs must have one rank",
    ),
    row(
        "padtype", lambda: lax.padtype_to_pads((3,), (2,), (1,), [(0, 0)]), TypeError,  # type: ignore[arg-type]
        "padtype_to_pads: padding must",
    ),
    row(
        "reduce trees", lambda: lax.reduce({"a": ones(3)}, (0.0,), lambda a, b: a, (0,)), ValueError,
        "reduce: operands and initial values must have one structure",
    ),
    row(
        "reduce dtypes", lambda: lax.reduce({"a": ones(3)}, {"a": jnp.int32(0)}, lambda a, b: a, (0,)), TypeError,
        "the initial value of operand['a'], float32[3], must be a scalar of its dtype, but is int32[]",
        "jnp.float32(value)",
    ),
    row(
        "reduce shapes", lambda: lax.reduce([ones(3), ones(2)], [0.0, 0.0], lambda a, b: a, (0,)), ShapeError,
        "operand[0] is float32[3] and operand[1] is float32[2]",
    ),
    row(
        "reduce axes", lambda: lax.reduce(ones(3), 0.0, lax.add, (1,)), ShapeError,
        "reduce: axes (1,) do not fit f32[3]",
    ),
    row(
        "reduce result", lambda: lax.reduce(ones(3), 0.0, lambda a, b: (a + b).astype("int32"), (0,)), TypeError,
        "<lambda> must return scalars of the operands' dtypes, but returned int32[] for float32[]",
    ),
    row(
        "reduce result tree", lambda: lax.reduce(ones(3), 0.0, lambda a, b: (a, b), (0,)), ValueError,
        "reduce: <lambda> must return the structure",
    ),
    row(
        "reduce function", lambda: lax.reduce(ones(3), 0.0, "add", (0,)), TypeError,  # type: ignore[arg-type]
        "computation must be a function",
    ),
    row(
        "window rank", lambda: lax.reduce_window(ones(3, 4), 0.0, lax.add, (2,)), ShapeError,
        "reduce_window: window_dimensions must have 2 entries",
    ),
    row(
        "window 0", lambda: lax.reduce_window(ones(3), 0.0, lax.add, (0,)), ShapeError,
        "window_dimensions must be 1 or more",
    ),
    row(
        "window padding", lambda: lax.reduce_window(ones(3), 0.0, lax.add, (2,), padding="foo"), RuntimeError,
        "reduce_window: unknown padding 'foo'",
    ),
    row(
        "window pairs", lambda: lax.reduce_window(ones(3), 0.0, lax.add, (2,), padding=[(0, 1), (0, 1)]), ShapeError,
        "reduce_window: padding must have 1 pairs",
    ),
    row("approx k", lambda: lax.approx_max_k(ones(3), 4), ValueError, "approx_max_k: k must be 1 to 3", "got 4"),
    row("approx dtype", lambda: lax.approx_min_k(jnp.arange(3), 1), ValueError, "must be floating point, got int32[3]"),
    row("approx axis", lambda: lax.approx_min_k(ones(3), 1, 1), ShapeError, "reduction_dimension 1 does not fit"),
    row(
        "approx recall", lambda: lax.approx_max_k(ones(3), 1, recall_target=2.0), ValueError,
        "recall_target", "got 2.0",
    ),
    row(
        "approx size", lambda: lax.approx_max_k(ones(3), 1, reduction_input_size_override=2), ValueError,
        "reduction_input_size_override must be 3 or more", "got 2",
    ),
    row("convolve mode", lambda: jnp.convolve(ones(3), ones(2), "half"), ValueError, "convolve: mode must be 'full'"),
    row(
        "convolve rank", lambda: jnp.convolve(ones(3, 2), ones(2)), ShapeError, "convolve: two vectors",
        "got shapes (3, 2) and (2,)",
    ),
    row("correlate empty", lambda: jnp.correlate(ones(3), ones(0)), ShapeError, "correlate: two vectors", "(0,)"),
    row("signal ranks", lambda: signal.convolve(ones(3, 2), ones(2)), ShapeError, "convolve: two arrays of one rank"),
    row(
        "signal valid", lambda: signal.correlate(ones(3, 2), ones(2, 3), "valid"), ShapeError,
        "correlate: for mode 'valid' one array must be the smaller one", "(3, 2) and (2, 3)",
    ),
    row("signal method", lambda: signal.convolve(ones(3), ones(2), method="best"), ValueError, "got 'best'"),
    row(
        "boundary", lambda: signal.convolve2d(ones(3, 2), ones(2, 3), boundary="wrap"), NotImplementedError,
        "convolve2d: only boundary='fill'", "jnp.pad",
    ),
    row("matrices", lambda: signal.correlate2d(ones(3), ones(2)), ShapeError, "two matrices", "rank 1 and 1"),
    row("fftconvolve", lambda: signal.fftconvolve(ones(3, 2), ones(2, 2), axes=1), ShapeError, "axes (1,)", "(3, 2)"),
    row("detrend type", lambda: signal.detrend(ones(3), type="cubic"), ValueError, "detrend: type must be 'linear'"),
    row("detrend bp", lambda: signal.detrend(ones(3), bp=[9]), ValueError, "bp must lie between 0 and the 3 elements"),
    row(
        "window name", lambda: signal.stft(ones(9), window="rect9", nperseg=4), ValueError,
        "'rect9' is not known", "hann",
    ),
    row("window parameter", lambda: signal.welch(ones(9), window="kaiser", nperseg=4), ValueError, "lacks a parameter"),
    row("nperseg", lambda: signal.welch(ones(9), nperseg=0), ValueError, "welch: nperseg must be 1 or more"),
    row(
        "noverlap", lambda: signal.stft(ones(9), nperseg=4, noverlap=4), ValueError,
        "noverlap must be less than nperseg",
    ),
    row("nfft", lambda: signal.stft(ones(9), nperseg=4, nfft=3), ValueError, "nfft must be at least nperseg"),
    row(
        "stft boundary", lambda: signal.stft(ones(9), nperseg=4, boundary="wrap"), ValueError,
        "boundary must be one of",
    ),
    row("stft detrend", lambda: signal.stft(ones(9), nperseg=4, detrend="cubic"), ValueError, "detrend must be False"),
    row("average", lambda: signal.welch(ones(9), nperseg=4, average="mode"), ValueError, "average must be 'mean'"),
    row("scaling", lambda: signal.welch(ones(9), nperseg=4, scaling="log"), ValueError, "scaling must be 'density'"),
    row("csd shapes", lambda: signal.csd(ones(2, 9), ones(3, 9), nperseg=4), ShapeError, "csd: x and y must broadcast"),
    row("istft rank", lambda: signal.istft(ones(9)), ShapeError, "istft: Zxx needs a dimension of frequencies"),
    row("istft axes", lambda: signal.istft(ones(3, 9), time_axis=0, freq_axis=0), ValueError, "they must differ"),
]
