"""Kernels with a mistake each, and what the error says."""

from tests.support.kernel_mistakes import orders as orders, places as places
from tests.support.kernel_mistakes.table import MISTAKES as MISTAKES
