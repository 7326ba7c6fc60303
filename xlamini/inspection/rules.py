"""The rule that wrote an equation: the method of a primitive that a rewrite called, with its place in the source."""
from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from xlamini.core import Primitive
from xlamini.core.frames import definition, own_files
from xlamini.core.jaxpr import Provenance
from xlamini.core.memo import memoised
from xlamini.primitives.elementwise import Elementwise

RULES = {
    "jvp": ("jvp",),
    "linearize": ("linearize", "jvp"),
    "transpose": ("transpose",),
    "batch": ("batch",),
    "expand": ("expand",),
}
"""By the name of a rewrite, the rules that it calls; of several the first that the primitive has."""


class Rule(NamedTuple):
    """A rule, as `tanh.jvp`, and where it is written."""

    name: str
    file: str
    line: int


def rule_of(provenance: Provenance) -> Rule | None:
    """The rule that wrote an equation of this provenance; None for one that was traced, or copied by a rewrite."""
    if provenance.origin is None:
        return None
    return _written(provenance.origin.primitive, provenance.rewrite or "")


@memoised("inspect: rules of rewrites", 4096)
def _written(primitive: Primitive, rewrite: str) -> Rule | None:
    for name in RULES.get(rewrite, ()):
        function = _function(primitive, name)
        if function is not None:
            file, line = definition(inspect.unwrap(function))
            return Rule(f"{primitive.name}.{name}", _shown(file), line)
    return None


def _shown(file: str) -> str:
    """The path of a file, from the package on if it is the library's."""
    _, package, inside = file.rpartition(f"{os.sep}xlamini{os.sep}")
    return f"xlamini/{inside}" if package and own_files[file] else file


def _function(primitive: Primitive, name: str) -> Callable[..., Any] | None:
    """The function behind a rule: the formula of an elementwise operation's derivative, else the method."""
    if name == "jvp" and isinstance(primitive, Elementwise) and primitive.partials:
        return primitive.partials[0]
    return primitive.written(name)
