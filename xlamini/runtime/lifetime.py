"""Arrays whose memory was given away, by `delete()` or by donation: noticing and saying so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jaxlib import _jax

from xlamini.core.errors import DeletedArrayError


def check_alive(x: _jax.ArrayImpl) -> None:
    """Raise DeletedArrayError if the array's memory was given away."""
    if x.is_deleted():
        raise deleted_error(x)


def deleted_error(x: Any, name: str = "") -> DeletedArrayError:
    """The error that says that `x`, which the user knows as `name`, has no memory any more."""
    what = f"{name}, an array {describe(x)}," if name else f"the array {describe(x)}"
    return DeletedArrayError(
        f"{what} was deleted or donated, and its memory holds something else by now; use what the "
        "function it was donated to returned, or leave it out of donate_argnums"
    )


def release(donated: Iterable[Any]) -> None:
    """Mark arrays whose memory a call has taken as deleted, so that C++ dispatch sees it before PJRT does."""
    for x in donated:
        if (type(x) is _jax.ArrayImpl or hasattr(x, "is_deleted")) and x.is_deleted():
            x.delete()


def describe(x: Any) -> str:
    """The array's type as errors print it: `float32[3]`."""
    return x.aval.str_short(short_dtypes=False)


def explain_failure(error: Exception, named_inputs: Iterable[tuple[str, Any]]) -> Exception | None:
    """The typed error behind one that C++ raised for a call with these inputs, or None."""
    raised_by_runtime = isinstance(error, _jax.JaxRuntimeError | DeletedArrayError)
    if not raised_by_runtime and "INVALID_ARGUMENT" not in str(error):
        return None
    inputs = list(named_inputs)
    for name, x in inputs:
        if _is_array(x) and x.is_deleted():
            return deleted_error(x, name)
    return _given_twice(inputs) if "donate" in str(error) else None


def _given_twice(inputs: Sequence[tuple[str, Any]]) -> DeletedArrayError:
    """The error for a call that donates an array which it gets a second time."""
    first: dict[int, str] = {}
    which = "two inputs share one array's memory"
    for name, x in inputs:
        before = first.setdefault(id(x), name)
        if before != name and _is_array(x):
            which = f"{before} and {name} are the same array {describe(x)}"
    return DeletedArrayError(
        f"{which}, and the call donates it; give one of them a copy, x.copy(), or leave it out of donate_argnums"
    )


def _is_array(x: Any) -> bool:
    return isinstance(x, _jax.ArrayImpl)
