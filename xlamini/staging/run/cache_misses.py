"""Explanations of cache misses: under flag `explain_cache_misses` each new trace of a jitted function is logged.

The message says how the call differs from the nearest earlier one. For a function without earlier calls it says whether
another one of the same code was called before, and how their closures differ.
"""
from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from xlamini.core import ShapedArray, first_difference
from xlamini.core.config import trace_context_names
from xlamini.core.frames import is_own, user_line
from xlamini.core.memo import Memo
from xlamini.staging.run.call_plan import CallPlan

_logger = logging.getLogger("xlamini")

closures = Memo("helper: closures of functions that were traced", 1024, counted=False)
"""What functions of each code closed over, as texts: the functions themselves may be gone by now."""

_LONG = 60


def log_miss(fun: Callable[..., Any], name: str, key: tuple, earlier: Sequence[tuple], plan: CallPlan) -> None:
    """Log why a call is traced; its `key` is that of `Jitted.trace`, and `earlier` those of the traces there are."""
    if is_own(fun):
        return
    fun = inspect.unwrap(fun)
    rows = [(before[0] != key[0], list(_differences(before, key, plan))) for before in reversed(earlier)]
    nearest = min(rows, key=lambda row: (row[0], len(row[1])), default=None)  # best, one of the same structure
    lines = nearest[1] if nearest else _of_first_trace(fun)
    code = getattr(fun, "__code__", None)
    where = f" defined at {code.co_filename}:{code.co_firstlineno}" if code else ""
    text = "\n".join(f"  {line}" for line in lines)
    _logger.warning("TRACING CACHE MISS at %s:\n  for %s%s\n%s", user_line(), name, where, text)


def _of_first_trace(fun: Any) -> list[str]:
    code, now = getattr(fun, "__code__", None), _closure(fun)
    if code is None:
        return ["it has not been called before"]
    before = closures.table.get(code)
    closures.keep(code, now)
    if before is None:
        return ["it has not been called before"]
    changed = [f"  {k} is {v}, before {before.get(k)}" for k, v in now.items() if before.get(k) != v]
    return ["another function with the same code was called before; define it once, outside the loop", *changed]


def _closure(fun: Any) -> dict[str, str]:
    """What a function closes over, its defaults included, each as a short text."""
    try:
        defaults = {p.name: p.default for p in inspect.signature(fun).parameters.values() if p.default is not p.empty}
        around = inspect.getclosurevars(fun)
    except (TypeError, ValueError):
        return {}
    variables = {**around.globals, **around.nonlocals, **defaults}
    return {name: _short(value) for name, value in variables.items() if not isinstance(value, ModuleType)}


def _short(value: Any) -> str:
    text = _type(value.aval) if hasattr(value, "aval") else " ".join(repr(value).split())
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _differences(before: tuple, now: tuple, plan: CallPlan) -> Iterator[str]:
    """How two keys differ, a line for each difference."""
    (tree, avals, statics, flags, axes), (new_tree, new_avals, new_statics, new_flags, new_axes) = before, now
    if tree != new_tree:
        yield f"the arguments have another structure: {first_difference(tree, new_tree, ('before', 'now'))}"
    else:
        for name, old, new in zip(plan.names, avals, new_avals, strict=True):
            if old != new:
                yield f"{name} is {_type(new)}, before {_type(old)}"
    yield from _of_statics(statics, new_statics)
    for name, old, new in zip(trace_context_names(), flags, new_flags, strict=True):
        if old != new:
            yield f"flag or context {name} is {new!r}, before {old!r}"
    if axes != new_axes:
        yield "the named axes around the call differ"


def _of_statics(before: tuple | None, now: tuple | None) -> Iterator[str]:
    if before is None or now is None:
        return
    old, new = dict(before[0]), dict(now[0])
    for where in dict.fromkeys([*old, *new]):
        what = f"static argument {where!r}" if isinstance(where, str) else f"the static argument at position {where}"
        texts = [_short(values[where]) if where in values else "not given" for values in (new, old)]
        if new.get(where) != old.get(where) or texts[0] != texts[1]:
            yield f"{what} is {texts[0]}, before {texts[1]}"


def _type(aval: ShapedArray) -> str:
    text = f"{'weakly typed ' * aval.weak_type}{aval.str_short(short_dtypes=False)}"
    return f"{text} with sharding {aval.split}" if aval.split else text
