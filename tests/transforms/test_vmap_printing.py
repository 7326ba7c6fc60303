"""vmap's docstring does not print axes that a user's class holds."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import xlamini
from xlamini.tree_util import register_dataclass


@register_dataclass
@dataclass
class Sized:
    """A class that prints the sizes of its arrays, and so cannot print axes."""

    values: Any

    def __repr__(self) -> str:
        return f"Sized({self.values.size})"


def test_axes_in_a_class_that_cannot_print_them() -> None:
    doubled = xlamini.vmap(lambda one: one.values * 2, in_axes=(Sized(0),))
    np.testing.assert_array_equal(doubled(Sized(np.arange(3.0, dtype=np.float32))), [0, 2, 4])
