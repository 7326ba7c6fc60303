"""Whose error it was: what a Python function raised that a program called.

XLA knows of a failed call only a text. So the error itself is kept under a number, which the text bears; where an error
leaves the library, the number leads back to the error that the user's function raised.
"""
from __future__ import annotations

import itertools
import re
from collections import OrderedDict

from jaxlib import _jax

from xlamini.core.api_boundary import install_explanation
from xlamini.core.errors import CallbackError

MAX_FAILURES = 16


class WrongResult(Exception):
    """What a function returned is not what it was announced to return."""


class Failure:
    """A call that failed: what it is to be reported as, and whether it has been."""

    def __init__(self, error: BaseException, message: str):
        self.error, self.message, self.reported = error, message, False


_failures: OrderedDict[int, Failure] = OrderedDict()
_numbers = itertools.count(1)
_MARK = re.compile(r"\[failed callback (\d+)\]")


def noted(error: BaseException, message: str) -> str:
    """Keep an error; the message with the number it is kept under."""
    number = next(_numbers)
    _failures[number] = Failure(error, message)
    if len(_failures) > MAX_FAILURES:
        _failures.popitem(last=False)
    return f"{message} [failed callback {number}]"


def failure_behind(error: BaseException) -> Failure | None:
    """The failed call that XLA's error speaks of."""
    found = _MARK.search(str(error)) if isinstance(error, _jax.JaxRuntimeError) else None
    return _failures.get(int(found[1])) if found else None


def explain(error: BaseException) -> None:
    """Make of XLA's error for a failed call a CallbackError; what is no Exception, such as an interrupt, goes on."""
    failure = failure_behind(error)
    if failure is None:
        return
    failure.reported = True
    if not isinstance(failure.error, Exception):
        raise failure.error from None
    error.__class__ = CallbackError
    error.args = (failure.message,)
    error.__cause__ = cause(failure.error)


def cause(error: Exception) -> Exception | None:
    """What is shown as the cause: what the function raised."""
    return None if isinstance(error, WrongResult) else error


install_explanation(explain)
