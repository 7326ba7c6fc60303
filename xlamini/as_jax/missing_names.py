"""Names that a module of jax does not define: they are found by the tables, or an error says which page to read."""
from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, NoReturn

from xlamini.as_jax.finder import OVERLAY, PAGE, answer_to, is_there, namesakes
from xlamini.as_jax.names import name_member
from xlamini.as_jax.overlay.refusals import refusing
from xlamini.as_jax.tables import refused, table_of
from xlamini.core.errors.missing_names import refuse


def fall_through(module_name: str) -> Callable[[str], Any]:
    """`__getattr__` of a module of the overlay or of one without a file."""
    module, jax_name = sys.modules[module_name], module_name.replace(OVERLAY, "jax", 1)
    table = table_of(jax_name)

    def load(name: str) -> Any:
        if name.startswith("__") and name not in table:
            raise AttributeError(f"module {jax_name!r} has no attribute {name!r}", name=name, obj=module)
        value = _found(name, jax_name, table)
        if value is _NOTHING:
            _refuse(name, jax_name, sys._getframe(1))
        setattr(module, name, name_member(value, jax_name))
        return value

    return load


_NOTHING = object()


def _found(name: str, jax_name: str, table: dict[str, tuple[str, str]]) -> Any:
    """What a name means: what the table says, a module of JAX's, or what it is in the module's namesakes."""
    if name in table:
        return _member(*table[name])
    if name in refused(jax_name):
        return refusing(*refused(jax_name)[name])
    value = _of_namesakes(name, jax_name)
    if is_there(f"{jax_name}.{name}") and (value is _NOTHING or isinstance(value, ModuleType)):
        return import_module(f"{jax_name}.{name}")  # so that `sys.modules` has it under JAX's name too
    return value


def _of_namesakes(name: str, jax_name: str) -> Any:
    modules = [m if m.startswith("xlamini") else answer_to(m) or m for m in namesakes(jax_name)]
    values = (getattr(_imported(module), name, _NOTHING) for module in modules)
    return next((value for value in values if value is not _NOTHING), _NOTHING)


def _imported(module: str) -> ModuleType | None:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        return None


def _member(module: str, name: str) -> Any:
    """A name of a module, which may be a module in it."""
    found = getattr(import_module(module), name, _NOTHING)
    return import_module(f"{module}.{name}") if found is _NOTHING else found


def _refuse(name: str, jax_name: str, caller: FrameType) -> NoReturn:
    text = f"{jax_name} has no {name!r}: xlamini answers for jax in this process; {PAGE} says what there is instead"
    refuse(text, name, jax_name, caller)
