"""Functions that are made anew, as in a loop: jit traces and compiles each of them, although their code is the same.

What it closes over is compared with what the one before closed over: by texts, and by weak references where the texts
are equal. That one may be gone before anybody asked; then no more is said than that there was one.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from xlamini.staging.compile.ledger import Cause, Function
from xlamini.staging.run.jit.entries import FIRST, last, levels, weakly
from xlamini.staging.run.jit.jit_options import Options

_LONG = 60
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)
_NO_DATA = (ModuleType, FunctionType, BuiltinFunctionType, type)

CLEARED = Cause(
    "cleared caches", "", "its caches were cleared since it was compiled", "call clear_caches() less often"
)
_KEPT = "make it once, and keep what jit returns"
_ONCE = "define it once, outside of the loop, and keep what jit returns"


class _Value(NamedTuple):
    """What a variable held: as a text, and weakly as an object if that is possible."""

    text: str
    object: Callable[[], Any] | None

    def differs(self, other: _Value | None) -> bool:
        if other is None or self.text != other.text:
            return True
        return bool(self.object and other.object and self.object() is not other.object())


Variables = dict[str, _Value]
"""What a function closes over, by name."""


def cause_of_new(fun: Any, function: Function, options: Options) -> Cause:
    """Why a function without traces is traced: it is new, or another one of its code was called before."""
    before = last.get(function)
    if before is None:
        return FIRST
    former = before.fun()
    if former is fun:
        return _of_options(before.options, options) or (CLEARED if type(fun) is FunctionType else _anew(fun))
    variables = variables_of(former) if before.variables is None and former is not None else before.variables
    if variables is None:
        return _anew(fun, "of the same function")
    now = variables_of(fun)
    changed = [name for name, value in now.items() if value.differs(variables.get(name))]
    return _of_variables(fun, changed, variables, now) if changed else _anew(fun)


def _of_options(old: Options, new: Options) -> Cause | None:
    before, now = _texts(old), _texts(new)
    changed = [name for name in now if now[name] != before.get(name)]
    if not changed:
        return None
    texts = [f"option {name} of jit is {now[name]}, before {before.get(name)}" for name in changed]
    kind = "donation" if changed[0] == "donate" else "option of jit"
    return Cause(kind, changed[0], texts[0], "jit the function once, with one set of options", tuple(texts[1:]))


def _of_variables(fun: Any, changed: list[str], before: Variables, now: Variables) -> Cause:
    texts = [_changed(name, before.get(name), now[name]) for name in changed]
    if isinstance(fun, functools.partial):
        edit = "make the partial once and keep what jit returns, or pass what changes as an argument of the function"
        return Cause("partial", changed[0], f"{texts[0]}, in a new functools.partial", edit, tuple(texts[1:]))
    if isinstance(fun, MethodType):
        return _anew(fun)
    edit = f"make {changed[0]} an argument of the function, and define it once"
    return Cause("closure", changed[0], f"{texts[0]}, in a new function of the same code", edit, tuple(texts[1:]))


def _changed(name: str, before: _Value | None, now: _Value) -> str:
    if before is None:
        return f"{name} is {now.text}, before it was not there"
    return f"{name} is another {now.text}" if before.text == now.text else f"{name} is {now.text}, before {before.text}"


def _anew(fun: Any, alike: str = "of the same function and arguments") -> Cause:
    """The cause where nothing that the function closes over, as far as is known, tells it from the one before."""
    name = getattr(fun, "__name__", type(fun).__name__)
    if isinstance(fun, functools.partial):
        text = f"a functools.partial {alike} was jitted before"
        return Cause("partial", getattr(fun.func, "__name__", "function"), text, _KEPT)
    if isinstance(fun, MethodType):
        text = f"{name} is a method, bound anew to a {type(fun.__self__).__name__}: each jit of it compiles anew"
        return Cause("bound method", name, text, "jit it once and keep what jit returns, for instance in __init__")
    if type(fun) is not FunctionType:
        text = f"another object of class {name} was jitted before"
        return Cause("callable object", name, text, "jit one object, once, or a function that takes it as an argument")
    return Cause("function identity", name, "another function with the same code was called before", _ONCE)


def variables_of(fun: Any) -> Variables:
    """What a function closes over, its defaults and bound arguments included; inner functions first."""
    wrapped = list(levels(fun))
    found: dict[str, Any] = {}
    for level in wrapped:
        found = {**_data_of(level), **found}
    return {k: _Value(short(v), weakly(v)) for k, v in found.items() if not any(v is level for level in wrapped)}


def _data_of(level: Any) -> dict[str, Any]:
    if isinstance(level, functools.partial):
        return {**{f"argument {i}": x for i, x in enumerate(level.args)}, **level.keywords}
    if not isinstance(level, FunctionType):
        return {}
    code, cells = level.__code__, level.__closure__ or ()
    found = {k: level.__globals__[k] for k in code.co_names if k in level.__globals__}
    found = {k: v for k, v in found.items() if not isinstance(v, _NO_DATA) and not callable(v)}
    for name, cell in zip(code.co_freevars, cells, strict=True):
        with suppress(ValueError):  # a variable without a value yet
            found[name] = cell.cell_contents
    values = level.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**found, **dict(zip(names, values, strict=True)), **(level.__kwdefaults__ or {})}


def _texts(options: Options) -> dict[str, str]:
    """The options of jit as texts; selected arguments by position and name."""
    selected = {name: f"{s.nums} {s.names}" for name, s in (("static", options.static), ("donate", options.donate))}
    others = {name: short(value) for name, value in options._asdict().items() if name not in selected}
    return selected | others


def short(value: Any) -> str:
    """A value as a short text: an array as its type, an object as its class."""
    if isinstance(getattr(value, "shape", None), tuple) and hasattr(value, "dtype"):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if not isinstance(value, _PLAIN):
        return f"{getattr(value, '__name__', '')} {type(value).__name__}".strip()
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"
