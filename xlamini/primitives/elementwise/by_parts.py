"""Operations whose complex values are computed, or corrected, from the real and imaginary parts of the operand.

XLA's ops for complex numbers cancel where a part is small, overflow where only a factor does, and take a zero for one
without a sign. complex_forms.py says how operations of this family are made of real ones:

    @of_parts(sin)                          @corrected(sqrt)
    def _(x, y):                            def _(x, y, real, imag):
        return real, imag                       return real, with_sign_of(imag, y)

The second gets the parts of what XLA's op returns. Derivatives and batching are those of the operation.
"""
from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from xlamini.core import Avals, Params
from xlamini.core.program.form import Form, Platform
from xlamini.primitives.base.elementwise import Elementwise
from xlamini.primitives.elementwise.complex import complex as complex_, imag, real

ByRealParts = Callable[..., tuple[Any, Any]]


class ByParts(Elementwise):
    """An elementwise operation that may have a form for complex numbers, imported when the first one is lowered."""

    by_parts: ByRealParts | None = None
    corrects = False

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        if avals[0].dtype.kind != "c":
            return super().form(platform, avals, outs, params)
        importlib.import_module("xlamini.primitives.elementwise.complex_forms")
        return None if self.by_parts is None else Form(functools.partial(self._by_parts, params))

    def _by_parts(self, params: Params, *operands: Any) -> Any:
        assert self.by_parts is not None
        found = [self.bind(*operands, **params)] if self.corrects else []
        return complex_(*self.by_parts(*[part for z in (*operands, *found) for part in (real(z), imag(z))]))


def of_parts(*operations: ByParts) -> Callable[[ByRealParts], ByRealParts]:
    """Decorator: the parts of the result, `form(x, y)`, from those of the operand."""
    return _declared(operations, False)


def corrected(*operations: ByParts) -> Callable[[ByRealParts], ByRealParts]:
    """Decorator: the parts of the result, `form(x, y, real, imag)`, from those of the operand and of XLA's result."""
    return _declared(operations, True)


def _declared(operations: tuple[ByParts, ...], corrects: bool) -> Callable[[ByRealParts], ByRealParts]:
    def declared(form: ByRealParts) -> ByRealParts:
        for operation in operations:
            operation.by_parts, operation.corrects = form, corrects
        return form

    return declared
