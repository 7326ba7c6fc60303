"""The error of a checked program, as a pytree of arrays; and the exception that it raises."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import register_pytree_node
from xlamini.interpreters.error_values import NOTHING, Part
from xlamini.staging.run.place import Place, message_of, place_of


class JaxRuntimeError(ValueError):
    """A check of a checked program failed; `place` says where.

    >>> try:
    ...     xlamini.checked(xlamini.numpy.log)(-1.0)
    ... except ValueError as error:
    ...     error.place.primitive, error.place.role
    ('log', 'primal')
    """

    def __init__(self, message: str, place: Place | None = None):
        super().__init__(message)
        self.place = place


class Error:
    """The first failure of a checked program, if any. It passes through jit, vmap, scan and cond like an array."""

    def __init__(self, part: Part = NOTHING, is_rough: bool = False):
        self._part, self.is_rough = part, is_rough

    def get(self) -> str | None:
        """The message of the first failure, None if nothing failed; under vmap, a line for each example that failed."""
        codes = self._codes()
        failed = [tuple(map(int, at)) for at in np.argwhere(codes > 0)]
        if codes.ndim == 0:
            return self._text(()) if failed else None
        lines = [f"at mapped index {', '.join(map(str, at))}: {self._text(at)}" for at in failed]
        return "\n".join(lines) or None

    def place(self) -> Place | None:
        """Where the first failure is, None if nothing failed."""
        failed = np.argwhere(self._codes() > 0)
        return self._place(tuple(failed[0])) if len(failed) else None

    def get_exception(self) -> JaxRuntimeError | None:
        """The exception that `throw` raises, None if nothing failed."""
        message = self.get()
        return None if message is None else JaxRuntimeError(message, self.place())

    def throw(self) -> None:
        """Raise JaxRuntimeError, a ValueError, with the message of the first failure, if there is one."""
        exception = self.get_exception()
        if exception is not None:
            raise exception

    @property
    def has_failed(self) -> bool:
        """Whether a check failed."""
        return bool((self._codes() > 0).any())

    @property
    def part(self) -> Part:
        """The values, and the table of what may fail."""
        return self._part

    def _codes(self) -> np.ndarray:
        return np.asarray(self._part.code) if self._part.sites else np.zeros((), np.int32)

    def _of_lane(self, lane: tuple[int, ...]) -> Part:
        return self._part.rebuilt([x[lane] if lane else x for x in self._part.values])

    def _place(self, lane: tuple[int, ...]) -> Place:
        return place_of(self._of_lane(lane))

    def _text(self, lane: tuple[int, ...]) -> str:
        return f"{message_of(self._of_lane(lane))}\n{self._place(lane)}"

    def __repr__(self) -> str:
        return f"Error({self.get()})"


def _flatten(error: Error) -> tuple[list[Any], tuple[Part, bool]]:
    values = error.part.values
    return values, (error.part.rebuilt([None] * len(values)), error.is_rough)


def _unflatten(known: tuple[Part, bool], values: Sequence[Any]) -> Error:
    part, is_rough = known
    return Error(part.rebuilt(list(values)), is_rough)


register_pytree_node(Error, _flatten, _unflatten)
init_error = Error()
