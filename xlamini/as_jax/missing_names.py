"""Names that an overlay module does not define: those of the module beneath it, or an error with the page to read."""
from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, NoReturn

from xlamini.as_jax.finder import OVERLAY, PAGE, answer_to
from xlamini.as_jax.names import name_member


def fall_through(overlay: str, beneath: str = "") -> Callable[[str], Any]:
    """`__getattr__` of the module called `overlay`: its submodules, and the names of the module `beneath`."""
    module, jax_name = sys.modules[overlay], f"jax{overlay[len(OVERLAY) :]}"

    def load(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {jax_name!r} has no attribute {name!r}", name=name, obj=module)
        value = _found(name, jax_name, beneath)
        if value is _NOTHING:
            _refuse(name, jax_name, module, sys._getframe(1))
        setattr(module, name, name_member(value, jax_name))
        return value

    return load


_NOTHING = object()


def _found(name: str, jax_name: str, beneath: str) -> Any:
    answer = answer_to(f"{jax_name}.{name}")
    value = getattr(import_module(beneath), name, _NOTHING) if beneath else _NOTHING
    if answer is not None and (answer.startswith(OVERLAY) or isinstance(value, ModuleType)):
        return import_module(f"{jax_name}.{name}")  # so that `sys.modules` has it under JAX's name too
    return value


def _refuse(name: str, jax_name: str, module: ModuleType, caller: FrameType) -> NoReturn:
    """AttributeError; ImportError for `from module import name`, where Python would drop the text of the former."""
    text = f"{jax_name} has no {name!r}: xlamini answers for jax in this process; {PAGE} says what there is instead"
    if dis.opname[caller.f_code.co_code[caller.f_lasti]] == "IMPORT_FROM":
        raise ImportError(text, name=jax_name)
    raise AttributeError(text, name=name, obj=module)
