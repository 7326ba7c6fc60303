"""Looking into programs as they run: `debug.print`, `debug.callback`, `debug.breakpoint`; at arrays; at the caches."""

from xlamini.analysis.bisect import bisect as bisect
from xlamini.analysis.lints import finding as finding, lint_rule as lint_rule, lint_rules as lint_rules
from xlamini.analysis.nan_gradient import why_nan as why_nan
from xlamini.analysis.purity import check_pure as check_pure
from xlamini.analysis.replay import replay as replay
from xlamini.analysis.zero_gradient import why_zero as why_zero
from xlamini.core.caching.memo import memos as memos
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.core.program.effects import DebugEffect as DebugEffect, OrderedDebugEffect as OrderedDebugEffect
from xlamini.runtime.meshes.pictures import visualize_sharding as visualize_sharding
from xlamini.staging.compile.ledger import compilations as compilations
from xlamini.transforms.callbacks.breakpoint import breakpoint as breakpoint
from xlamini.transforms.callbacks.debug import callback as callback, debug_print as print
from xlamini.transforms.callbacks.debug_log import log as log
from xlamini.transforms.callbacks.inspect_sharding import (
    inspect_array_sharding as inspect_array_sharding,
    visualize_array_sharding as visualize_array_sharding,
)

_edge_of_face(globals())

__all__ = [
    "DebugEffect", "OrderedDebugEffect", "bisect", "breakpoint", "callback", "check_pure", "compilations", "finding",
    "inspect_array_sharding", "lint_rule", "lint_rules", "log", "memos", "print", "replay",
    "visualize_array_sharding", "visualize_sharding", "why_nan", "why_zero",
]  # fmt: skip
