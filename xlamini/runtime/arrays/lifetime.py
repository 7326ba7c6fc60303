"""Arrays that are not there yet, or not any more: waiting, deletion and donation, and the errors for their use."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from jaxlib import _jax

from xlamini.core.errors import CallbackError, DeletedArrayError
from xlamini.runtime.execution.call_failures import failure_of


def check_alive(x: Any) -> None:
    """Raise DeletedArrayError if the array was deleted or donated."""
    if x.is_deleted():
        raise deleted_error(x)


def is_held(x: Any, own: int) -> bool:
    """Whether an array has more references than the `own` ones of who asks, or another array has its memory.

    NumPy's views and DLPack's capsules need not be known: PJRT copies what they show before it is overwritten.
    """
    if type(x) is not _jax.ArrayImpl:
        return False
    return sys.getrefcount(x) - _OF_CALL > own or "_parts" in x.__dict__ or "_is_shared" in x.__dict__


def _references(x: Any) -> int:
    return sys.getrefcount(x)


_OF_CALL = _references([object()][0])
"""The references that such a call itself makes, which versions of Python count differently."""


def shared(made: Any, *sources: Any) -> Any:
    """The array that was made, of which the sources may have the memory: the program of a ref takes it from none."""
    for x in (made, *sources):
        x._is_shared = True
    return made


def wait_for(arrays: Sequence[Any]) -> None:
    """Wait until these arrays have been computed, in one call into C++; DeletedArrayError for one that was deleted."""
    try:
        _jax.batched_block_until_ready(arrays)
    except _jax.JaxRuntimeError:
        for x in arrays:
            check_alive(x)
        raise


def deleted_error(x: Any, name: str = "") -> DeletedArrayError:
    """The error for a use of the deleted array `x`, which is `name` in the user's call."""
    what = f"{name}, an array {describe(x)}," if name else f"the array {describe(x)}"
    return DeletedArrayError(
        f"Array has been deleted: {what} was deleted or donated, and its memory holds something else by now; "
        "use what the function it was donated to returned, or leave it out of donate_argnums"
    )


def release(donated: Iterable[Any]) -> None:
    """Mark donated arrays as deleted, so that C++ dispatch detects their use before PJRT does."""
    for x in donated:
        if (type(x) is _jax.ArrayImpl or hasattr(x, "is_deleted")) and x.is_deleted():
            x.delete()


def describe(x: Any) -> str:
    """The type of an array in error messages: `float32[3]`."""
    return x.aval.str_short(short_dtypes=False)


def explain_failure(error: Exception, named_inputs: Iterable[tuple[str, Any]]) -> Exception | None:
    """The DeletedArrayError that explains C++'s error for a call with these inputs; None if there is another cause."""
    raised_by_runtime = isinstance(error, _jax.JaxRuntimeError | DeletedArrayError)
    if not raised_by_runtime and "INVALID_ARGUMENT" not in str(error):
        return None
    if isinstance(error, CallbackError) or failure_of(error) is not None:  # in a program that has taken donated inputs
        return None
    inputs = list(named_inputs)
    for name, x in inputs:
        if _is_array(x) and x.is_deleted():
            return deleted_error(x, name)
    return _donated_twice(inputs) if "donate" in str(error) else None


def _donated_twice(inputs: Sequence[tuple[str, Any]]) -> DeletedArrayError:
    """The error for a call that donates an array which it also takes as another input."""
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
