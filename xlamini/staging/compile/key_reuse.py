"""Random keys that are used twice: a warning where a program does so, an error under flag `debug_key_reuse`.

Under the flag, keys outside of programs are looked at too.

Outside of a program, a key array has a history: the lines that consumed it, and the array that it is a part of. Only
typed keys have one, as raw keys are plain arrays of numbers; what is taken of an array outside of a program,
such as `keys[i]`, has one of its own.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from xlamini.core import Jaxpr, Values, user_stacklevel
from xlamini.core.errors import KeyReuseError, KeyReuseWarning
from xlamini.core.errors.frames import user_line
from xlamini.core.flags.jax_flags import debug_key_reuse
from xlamini.core.program.key_uses import Path, Reuse, overlap
from xlamini.interpreters.key_reuse import draws, key_uses
from xlamini.runtime.arrays.keys import PRNGKeyArray

_MEND = "split it before: key_a, key_b = random.split(key), or random.clone(key) if you mean it"


def check_keys(name: str, jaxpr: Jaxpr) -> None:
    """Warn of each key that a program uses twice; KeyReuseError under the flag."""
    for reuse in key_uses(jaxpr).reuses:
        text = f"{name}: {_described(reuse)}"
        if debug_key_reuse.value:
            raise KeyReuseError(text)
        warnings.warn(text, KeyReuseWarning, user_stacklevel())


def _described(reuse: Reuse) -> str:
    if reuse.first is reuse.second:
        return (
            f"each iteration of a loop uses the same random key, and draws the same numbers: {_place(reuse.first)}; "
            "fold in the iteration, random.fold_in(key, i), or split the key into one for each"
        )
    return (
        f"a random key is used twice, and gives the same numbers: {_place(reuse.first)}, and {_place(reuse.second)}; "
        f"{_MEND}"
    )


def _place(eqn: Any) -> str:
    return f"{eqn.primitive.name} at {eqn.provenance.source or 'an unknown place'}"


# --- keys outside of programs


class _KeyUse(NamedTuple):
    """A part of an array of keys, and the line that consumed it."""

    path: Path
    line: str


class KeyHistory(NamedTuple):
    """Which array of keys an array is a part of: the uses of that one, and the part."""

    uses: list[_KeyUse]
    path: Path = ()


def run_on_keys(name: str, jaxpr: Jaxpr, operands: Values, run: Callable[[], Values]) -> Values:
    """The outputs of a run; under the flag, KeyReuseError for a key that it uses twice, or an earlier run used."""
    if not (debug_key_reuse.value and draws(jaxpr)):
        return run()
    check_keys(name, jaxpr)
    _consume(name, jaxpr, operands)
    with debug_key_reuse(False):  # a program may run operation by operation, each of which would consume the keys again
        outs = run()
    for result, operand, path in key_uses(jaxpr).parts:
        history = _history(operands[operand])
        if history is not None and isinstance(outs[result], PRNGKeyArray):
            outs[result].history = history._replace(path=(*history.path, *path))
    return outs


def _consume(name: str, jaxpr: Jaxpr, operands: Values) -> None:
    """Add what a run consumes to the histories of its operands."""
    line, new = user_line(), list[tuple[int, list[_KeyUse], _KeyUse]]()
    for operand, path in key_uses(jaxpr).consumed:
        if (history := _history(operands[operand])) is None:
            continue
        part = (*history.path, *path)
        if any(other != operand and uses is history.uses and overlap(use.path, part) for other, uses, use in new):
            raise KeyReuseError(f"{name} at {line} has the same random key in two arguments; {_MEND}")
        for use in history.uses:
            if overlap(use.path, part):
                raise KeyReuseError(f"{name} at {line} uses a random key that was used before, at {use.line}; {_MEND}")
        new.append((operand, history.uses, _KeyUse(part, line)))
    for _, uses, use in new:
        uses.append(use)


def _history(x: Any) -> KeyHistory | None:
    if not isinstance(x, PRNGKeyArray):
        return None
    if x.history is None:
        x.history = KeyHistory([])
    return x.history
