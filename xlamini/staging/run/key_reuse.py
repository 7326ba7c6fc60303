"""The error for a random key that a program uses twice, under flag `debug_key_reuse`."""
from __future__ import annotations

from typing import Any

from xlamini.core import Jaxpr
from xlamini.core.errors import KeyReuseError
from xlamini.core.key_uses import Reuse
from xlamini.interpreters.key_reuse import key_uses


def check_keys(name: str, jaxpr: Jaxpr) -> None:
    """KeyReuseError for the first key that a program uses twice."""
    for reuse in key_uses(jaxpr).reuses:
        raise KeyReuseError(f"{name}: {_described(reuse)}")


def _described(reuse: Reuse) -> str:
    if reuse.first is reuse.second:
        return (
            f"each iteration of a loop uses the same random key, and draws the same numbers: {_place(reuse.first)}; "
            "fold in the iteration, random.fold_in(key, i), or split the key into one for each"
        )
    return (
        f"a random key is used twice, and gives the same numbers: {_place(reuse.first)}, and {_place(reuse.second)}; "
        "split it before: key_a, key_b = random.split(key), or random.clone(key) if you mean it"
    )


def _place(eqn: Any) -> str:
    return f"{eqn.primitive.name} at {eqn.provenance.source or 'an unknown place'}"
