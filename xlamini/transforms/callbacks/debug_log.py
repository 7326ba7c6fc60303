"""debug.log: values of programs in the log of Python's `logging`."""
from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from xlamini.core import memoised
from xlamini.transforms.callbacks.debug import callback
from xlamini.transforms.callbacks.format_check import check_format

_logger = logging.getLogger("xlamini")


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Log values when the program has computed them: a message of level INFO to the logger `xlamini`.

    Arguments and errors are those of `debug.print`.

    >>> import logging
    >>> logging.getLogger("xlamini").isEnabledFor(logging.INFO)
    False
    >>> xlamini.jit(lambda x: log("x is {}", x))(2.0)
    """
    call = functools.partial(_log, {"ordered": ordered, "partitioned": partitioned}, skip_format_check)
    return call if fmt is None else call(fmt, *args, **kwargs)


def _log(options: dict[str, Any], skip_format_check: bool, fmt: str, /, *args: Any, **kwargs: Any) -> None:
    if not isinstance(fmt, str):
        raise TypeError(f"debug.log: the first argument is the format, a string, but got {fmt!r}; write '{{}}'")
    if not skip_format_check:
        check_format(fmt, args, kwargs)
    callback(None, **options)(_writer(fmt), *args, **kwargs)


@memoised("helper: writers of debug.log", 512)
def _writer(fmt: str) -> Callable[..., None]:
    """The function that logs in this format; it is cached, so that programs with equal messages have equal keys."""

    def debug_log(*args: Any, **kwargs: Any) -> None:
        _logger.info("%s", fmt.format(*args, **kwargs))

    return debug_log
