"""What all rewrites share: the memo on the jaxpr, and the check of their output."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from xlamini.core import config
from xlamini.core.check import check_jaxpr
from xlamini.core.gc_pause import paused_gc
from xlamini.core.jaxpr import Jaxpr
from xlamini.core.tracer import active

P = ParamSpec("P")
R = TypeVar("R")


def rewrite(fun: Callable[Concatenate[Jaxpr, P], R]) -> Callable[Concatenate[Jaxpr, P], R]:
    """Make `fun(jaxpr, *options)` remember its result on the jaxpr, and check it when checks are on.

    The result is made of jaxprs and plain data; a rewrite never sees the caller's builder.
    """

    @functools.wraps(fun)
    def memoised(jaxpr: Jaxpr, *options: P.args, **no_keywords: P.kwargs) -> R:
        assert not no_keywords, "options of a rewrite are positional, so that all of them are in the key"
        key = (fun, options, config.trace_context_key())
        try:
            return jaxpr.memo[key]
        except KeyError:
            with active(None), paused_gc():
                result = fun(jaxpr, *options, **no_keywords)
            _refuse_captured(result)
            if config.enable_checks.value:
                check_result(result)
            return jaxpr.memo.setdefault(key, result)

    return memoised


def check_result(result: Any) -> None:
    """Check every jaxpr in the result of a rewrite."""
    for jaxpr in _jaxprs(result):
        check_jaxpr(jaxpr)


def _refuse_captured(result: Any) -> None:
    """A rewrite is remembered as jaxprs alone, so an array that a rule brought in would be lost."""
    for jaxpr in _jaxprs(result):
        if jaxpr.constvars:
            found = ", ".join(v.aval.str_short() for v in jaxpr.constvars)
            raise TypeError(
                f"a rule captured an array constant ({found}) while {jaxpr.name or 'a function'} was rewritten; "
                "make it of iota, literals and operands"
            )


def _jaxprs(result: Any) -> list[Jaxpr]:
    return [x for x in (result if isinstance(result, tuple) else (result,)) if isinstance(x, Jaxpr)]
