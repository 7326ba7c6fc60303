"""x.at[index]: an array like `x` with some elements updated, or a reading with other rules for indices out of bounds.

    x.at[1:3].set(0)    x.at[i, j].add(1)    x.at[mask].multiply(2)    x.at[i].get(mode="fill", fill_value=0)

A boolean mask with one value for all that it selects becomes a choice between old and new, so that it may be traced.
"""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core.dtypes import result_type
from xlamini.core.provenance import user_stacklevel
from xlamini.core.tracer import aval_of, state
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.arithmetic import power, true_divide
from xlamini.numpy.index_ops import UPDATES, Options, get, scatter_index, update
from xlamini.numpy.index_parse import plan_of
from xlamini.numpy.index_plan import Plan, Rules
from xlamini.primitives.gather_numbers import GatherScatterMode
from xlamini.primitives.promotion import PYTHON_SCALARS, in_dtype
from xlamini.primitives.select import where
from xlamini.primitives.shape import broadcast_in_dim
from xlamini.primitives.tangent_ops import full
from xlamini.transforms.jit import jit

Mode = str | GatherScatterMode | None
