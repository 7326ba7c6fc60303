"""Validation of the format string and values of debug.print at its call site, before the program runs."""
from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any

from xlamini.core import Values, aval_of


def check_format(fmt: str, args: Values, kwargs: Mapping[str, Any]) -> None:
    """IndexError or KeyError for a missing value of `fmt`, ValueError for an unused one."""
    try:
        _Check(fmt).vformat(fmt, args, kwargs)
    except (_WrongFormat, IndexError, KeyError, TypeError) as error:
        raise error.with_traceback(None) from None  # without the frames of Python's own formatter
    except ValueError as error:
        raise ValueError(f"debug.print: {fmt!r} is no format: {error}; write {{{{ for a brace") from None


class _WrongFormat(ValueError):
    """A ValueError whose message is complete, unlike those of Python's own formatter."""


class _Check(string.Formatter):
    """A formatter that parses a format as `str.format` does, but formats nothing."""

    def __init__(self, fmt: str):
        self.fmt = fmt

    def get_field(self, field_name: str, args: Values, kwargs: Mapping[str, Any]) -> Any:
        first = re.match(r"[^.\[]*", field_name)
        name = first[0] if first else field_name
        key: int | str = int(name) if name.isdigit() else name
        value = self._given(key, args, kwargs)
        return (value if name == field_name else None), key

    def _given(self, key: int | str, args: Values, kwargs: Mapping[str, Any]) -> Any:
        if isinstance(key, int):
            if key >= len(args):
                raise IndexError(
                    f"debug.print: the format {self.fmt!r} asks for value {key}, counted from 0, but {len(args)} are "
                    "given by position"
                )
            return args[key]
        if key not in kwargs:
            raise KeyError(f"debug.print: the format {self.fmt!r} asks for {key!r}, which is not given; add {key}=…")
        return kwargs[key]

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return value if conversion is None else None

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec and getattr(value, "shape", ()):
            raise TypeError(
                f"debug.print: {format_spec!r} in {self.fmt!r} formats a number, but the value is "
                f"{aval_of(value).str_short(short_dtypes=False)}; leave it out, or set NumPy's printoptions"
            )
        return ""

    def check_unused_args(self, used_args: Any, args: Values, kwargs: Mapping[str, Any]) -> None:
        unused = [f"value {i}" for i in range(len(args)) if i not in used_args]
        unused += [repr(name) for name in kwargs if name not in used_args]
        if unused:
            raise _WrongFormat(
                f"debug.print: the format {self.fmt!r} does not use {', '.join(unused)}; put {{}} or {{name}} where it "
                "belongs. An f-string will not do: it is formatted while the program is traced"
            )
