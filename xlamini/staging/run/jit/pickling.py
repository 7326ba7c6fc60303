"""How jitted functions are pickled."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from xlamini.staging.run.jit.cpp_function import wrapped
from xlamini.staging.run.jit.jit_options import Options
from xlamini.staging.run.jit.jitted_function import Jitted


def pickled(function: Any) -> Any:
    """How pickle stores a jitted function: by its name, as other functions, or as what it was made of."""
    path, copier = getattr(function, "__qualname__", ""), getattr(function, "__deepcopy__", None)
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for name in path.split("."):
        found = getattr(found, name, None)
    if found is function or copier is None:
        return path
    return _made_again, (copier.__self__.fun, copier.__self__.options)


def _made_again(fun: Callable[..., Any], options: Options) -> Any:
    return wrapped(Jitted(fun, options))
