"""Targets that there are not; none of these needs a compiler."""

from __future__ import annotations

from tests.support.error_rows import ones, row, square
from xlamini import jit, target
from xlamini.errors import TargetError

ROWS = [
    row("no platform", lambda: target("h200"), TargetError, "'h200' names no accelerator", '"gpu:h200"'),
    row("the CPU", lambda: target("cpu"), TargetError, "'cpu' names no accelerator"),
    row("no text", lambda: target(3), TargetError, "must be text", "got 3"),
    row(
        "no such chip", lambda: target("tpu:v5:2x2"), TargetError,
        "no TPU chip 'v5' (known: v4, v5e, v5p, v6e)", "the nearest is 'tpu:v5",
    ),
    row(
        "no such slice", lambda: target("tpu:v5e:3x3"), TargetError,
        "v5e does not come in slices of 3x3", "the nearest is 'tpu:v5e:2x4'",
    ),
    row("in another order", lambda: target("tpu:v6e:4x2"), TargetError, "the nearest is 'tpu:v6e:2x4'"),
    row("too large", lambda: target("tpu:v5e:32x32"), TargetError, "the nearest is 'tpu:v5e:16x16'"),
    row("empty", lambda: target("tpu:v5e:0x2"), TargetError, "the nearest is 'tpu:v5e:1x1'"),
    row(
        "rank too high", lambda: target("tpu:v5e:2x2x1"), TargetError,
        "slices of v5e have 2 sides, not 3", "the nearest is 'tpu:v5e:2x2'",
    ),
    row(
        "rank too low", lambda: target("tpu:v5p:2x2"), TargetError,
        "slices of v5p have 3 sides, not 2", "the nearest is 'tpu:v5p:2x2x1'",
    ),
    row("no slice", lambda: target("tpu:v5e"), TargetError, "'' is no slice, which is written by its", "tpu:v5e:2x2"),
    row("no sides", lambda: target("tpu:v5e:two"), TargetError, "'two' is no slice"),
    row(
        "more", lambda: target("tpu:v5e:2x2:1"), TargetError,
        "'2x2:1' is no slice", "the nearest is 'tpu:v5e:2x2'",
    ),
    row("Cloud's name", lambda: target("tpu:v5litepod-4"), TargetError, "no TPU chip", "the nearest is 'tpu:v5e:2x2'"),
    row("the larger A100", lambda: target("gpu:a100_80gb"), TargetError, "no GPU", "the nearest is 'gpu:a100'"),
    row("no such GPU", lambda: target("gpu:h2000"), TargetError, "no GPU 'h2000' (known: ", "'gpu:h200'"),
    row("too many GPUs", lambda: target("gpu:h200:1000"), TargetError, "multiples of that up to 256", "'gpu:h200:256'"),
    row("half a host", lambda: target("gpu:h200:12"), TargetError, "GPUs come in numbers up to 8", "'gpu:h200:8'"),
    row("no number", lambda: target("gpu:h200:x"), TargetError, "the nearest is 'gpu:h200:1'"),
    row(
        "compile for text", lambda: jit(square).lower(1.0).compile(target="gpu:h200"), TypeError,
        "compile: target must come from xlamini.target", "got 'gpu:h200'",
    ),
    row(
        "lower for text", lambda: jit(square).trace(ones(3)).lower(target="gpu:h200"), TypeError,
        "lower: target must come from xlamini.target",
    ),
    row(
        "a platform and a target",
        lambda: jit(square).trace(ones(3)).lower(lowering_platforms=("cpu",), target="gpu:h200"), ValueError,
        "lower: a target says the platform too; leave out lowering_platforms",
    ),
    row(
        "no such count", lambda: jit(square).lower(1.0).compile().cost_analysis("google"), ValueError,
        "cost_analysis: source must be 'xla', 'xlamini' or None, got 'google'",
    ),
]
