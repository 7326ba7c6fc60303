"""Who listens to the events of compilation: logs, dumps, and the warning of functions with too many programs.

The ledger (`ledger.py`), monitoring (`core/monitoring.py`), the counts of the disk cache and inspection subscribe by
themselves.
"""
from __future__ import annotations

import logging
import warnings

from xlamini.core import user_stacklevel
from xlamini.core.events import (
    COMPILING,
    EVICTED,
    LOWERED,
    TRACED,
    TRACING,
    XLA_COMPILED,
    XLA_COMPILING,
    Event,
    subscribe,
)
from xlamini.core.flags.jax_flags import dump_ir_to, explain_cache_misses, log_compiles

_logger = logging.getLogger("xlamini")

_MANY = 256
"""The number of one function's programs that is worth a warning when the oldest are dropped."""

_DONE = {
    TRACED: "Finished tracing %s for jit in %.9f sec",
    LOWERED: "Finished jaxpr to MLIR module conversion jit(%s) in %.9f sec",
    XLA_COMPILED: "Finished XLA compilation of jit(%s) in %.3f sec",
}


def _log_done(event: Event) -> None:
    _logger.warning(_DONE[event.kind], event.name, event.seconds)


def _log_compiling(event: Event) -> None:
    types = ", ".join(aval.str_short() for aval in event.program.pruned.in_avals)
    _logger.warning("Compiling jit(%s) with global shapes and types [%s]", event.name, types)


def _log_cause(event: Event) -> None:
    """Say why a function of the user's is traced."""
    entry = event.call
    if entry.is_own:
        return
    cause, function = entry.cause, entry.function
    where = f" defined at {function.file}:{function.line}" if function.file else ""
    lines = [cause.text, *cause.also, *[f"to avoid it, {cause.edit}"] * bool(cause.edit)]
    text = "\n".join(f"  {line}" for line in lines)
    _logger.warning("TRACING CACHE MISS at %s:\n  for %s%s\n%s", entry.where, entry.name, where, text)


def _dump(event: Event) -> None:
    from xlamini.staging.compile.dump import dump

    dump(event.program)


def _warn_of_many(event: Event) -> None:
    caches = event.program
    count = len(caches.programs)
    if count < _MANY or caches.said_many:
        return
    caches.said_many = True
    warnings.warn(
        f"{event.name} has {count} programs, one for each combination of shapes, dtypes and static arguments that it "
        "was called with; from now on the oldest are dropped, and compiled again if they are needed. Pad its arguments "
        "to a few shapes",
        UserWarning,
        user_stacklevel(),
    )


def listen() -> None:
    """Subscribe all of them."""
    subscribe(_log_done, *_DONE, under=log_compiles)
    subscribe(_log_cause, TRACING, under=explain_cache_misses)
    subscribe(_log_compiling, XLA_COMPILING, under=log_compiles)
    subscribe(_dump, COMPILING, under=dump_ir_to)
    subscribe(_warn_of_many, EVICTED)
