"""User contexts: values of a thread that are part of the signature of jitted functions."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from xlamini.core import jaxlib_types

_numbers = itertools.count(1)


class UserContext(jaxlib_types.Config):
    """A value that a function may read while it is traced; with another value the function is traced again."""

    def __call__(self, value: Any) -> AbstractContextManager[None]:
        """A context manager that gives the context another value, which must be hashable, in this thread."""
        hash(value)
        return self._override(value)

    @contextmanager
    def _override(self, value: Any) -> Generator[None]:
        before = self.swap_local(value)
        try:
            yield
        finally:
            self.set_local(before)


def make_user_context(default_value: Any = None) -> UserContext:
    """A new user context; `context.value` reads it, `with context(value):` sets it. The value must be hashable.

    >>> language = xlamini.make_user_context("en")
    >>> with language("de"):
    ...     language.value
    'de'
    """
    hash(default_value)
    return UserContext(
        f"user_context_{next(_numbers)}", default_value, include_in_jit_key=True, include_in_trace_context=True
    )
