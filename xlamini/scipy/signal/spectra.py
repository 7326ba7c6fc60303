"""Spectra of segments of a signal: short-time Fourier transforms, and power spectra averaged over segments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xlamini.core.dtypes import issubdtype
from xlamini.core.errors import ShapeError
from xlamini.core.tracer import aval_of
from xlamini.numpy.arguments import as_axis, as_operand
from xlamini.numpy.arithmetic import sum_of_squares if False else as_operand
