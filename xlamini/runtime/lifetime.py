"""Arrays whose memory was given away, by `delete()` or by donation: noticing and saying so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxlib import _jax

from xlamini.core.errors import DeletedArrayError


def check_alive(x: _jax.ArrayImpl) -> None:
    """Raise DeletedArrayError if the array's memory was given away."""
    if x.is_deleted():
        raise deleted_error(x)


def deleted_error(x: _jax.ArrayImpl, name: str = "") -> DeletedArrayError:
    """The error that says that `x`, called `name`, has no memory any more."""
    what = f"{name}, an array {describe(x)}," if name else f"the array {describe(x)}"
    return DeletedArrayError(
        f"{what} was deleted or donated, and its memory holds something else by now; use what the "
        "function it was donated to returned, or leave it out of donate_argnums"
    )


def describe(x: _jax.ArrayImpl) -> str:
    """The array's type as errors print it: `float32[3]`."""
    return x.aval.str_short(short_dtypes=False)


def explain_failure(error: Exception, named_leaves: Iterable[tuple[str, Any]]) -> Exception | None:
    """The typed error behind one that C++ raised for a call with these arguments, or None.

    C++ notices a donated array only when PJRT refuses it, and says so with an untyped error.
    """
    if "deleted or donated" in str(error) or "been deleted" in str(error):
        return next((deleted_error(x, name) for name, x in named_leaves if _is_dead(x)), None)
    if "previously donated in the same call" in str(error):
        return DeletedArrayError(
            "the same array is given twice to one call that donates it: f(donated(x), x); "
            "pass a copy, x.copy(), or leave it out of donate_argnums"
        )
    return None


def _is_dead(x: Any) -> bool:
    return isinstance(x, _jax.ArrayImpl) and x.is_deleted()
