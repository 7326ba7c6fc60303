"""Errors of host callbacks: the Python exception behind XLA's error for a failed call.

XLA passes on only a text. So the exception is stored under a number that is part of the text; where an error leaves the
library, the number leads back to the exception that the user's function raised.
"""
from __future__ import annotations

import itertools
import re
from collections import OrderedDict

from jaxlib import _jax

from xlamini.core.errors import CallbackError
from xlamini.core.errors.kernel_errors import KernelCheckError

MAX_FAILURES = 16


class WrongResult(Exception):
    """A callback returned values of other shapes or dtypes than declared."""


class CallFailure:
    """A failed call: the exception, the message to report, and whether it has been reported."""

    error: BaseException
    message: str
    reported: bool

    def __init__(self, error: BaseException, message: str):
        self.error, self.message, self.reported = error, message, False


_failures: OrderedDict[int, CallFailure] = OrderedDict()
_numbers = itertools.count(1)
_MARK = re.compile(r"\[failed callback (\d+)\]")


def record_failure(error: BaseException, message: str) -> str:
    """Store an exception; returns the message with the number it is stored under."""
    number = next(_numbers)
    _failures[number] = CallFailure(error, message)
    if len(_failures) > MAX_FAILURES:
        _failures.popitem(last=False)
    return f"{message} [failed callback {number}]"


def failure_of(error: BaseException) -> CallFailure | None:
    """The failed call that an error of XLA refers to, or None."""
    found = _MARK.search(str(error)) if isinstance(error, _jax.JaxRuntimeError) else None
    return _failures.get(int(found[1])) if found else None


def explain(error: BaseException) -> None:
    """Turn XLA's error for a failed call into a CallbackError.

    A mistake in a kernel, and a BaseException such as an interrupt, are raised as they are.
    """
    failure = failure_of(error)
    if failure is None:
        return
    failure.reported = True
    if not isinstance(failure.error, Exception) or isinstance(failure.error, KernelCheckError):
        raise failure.error from None
    error.__class__ = CallbackError
    error.args = (failure.message,)
    error.__cause__ = cause(failure.error)


def cause(error: Exception) -> Exception | None:
    """The exception to show as the cause: the one that the function raised; None for a WrongResult."""
    return None if isinstance(error, WrongResult) else error
