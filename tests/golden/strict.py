"""Whether a library that has JAX's names refuses an expression in a strict mode of promotion."""
from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

MODES = {"rank": "raise", "dtype": "strict"}
"""The flags `numpy_…_promotion` and their strict values."""


def refuses(
    jax: ModuleType, text: str, known: dict[str, Any], within: Callable[[], AbstractContextManager[Any]]
) -> bool:
    """Whether an expression that is taken else is an error within the mode."""
    return not _is_taken(jax, text, known, within()) and _is_taken(jax, text, known, nullcontext())


def _is_taken(jax: ModuleType, text: str, known: dict[str, Any], mode: AbstractContextManager[Any]) -> bool:
    """Whether an expression can be traced, or, as it may read values, evaluated."""

    def traced() -> None:
        eval(text, known)

    with mode:
        for attempt in (lambda: jax.eval_shape(traced), traced):
            try:
                attempt()
            except Exception:
                continue
            return True
    return False
