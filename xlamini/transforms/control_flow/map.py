"""map: a function applied to one slice after another, or to blocks of slices at once."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from xlamini.core.pytree import flatten_from_user, tree_map
from xlamini.core.tracer import aval_of
from xlamini.primitives.concatenate import concatenate
from xlamini.primitives.shape import reshape
from xlamini.primitives.slice import slice_in_dim
from xlamini.transforms.arguments import name_of
from xlamini.transforms.control_flow.carries import LeafNames, check_function
from xlamini.transforms.control_flow.scan import run_scan
from xlamini.transforms.control_flow.scan_slices import check_slices
from xlamini.transforms.vmap import vmap


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """`f(x)` for every slice x of `xs` along dimension 0, one after another; the results stacked.

    `xs` is an array or a container of arrays, all of one length (else ValueError). Where `vmap` would need too much
    memory, `batch_size` says how many slices are computed at once, by `vmap`; those that are left over come last.

    >>> map(lambda x: x * x, xlamini.numpy.arange(4))
    Array([0, 1, 4, 9], dtype=int32)
    """
