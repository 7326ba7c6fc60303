"""Operations whose complex values are computed, or corrected, from the real and imaginary parts of the operand.

XLA's ops for complex numbers cancel where a part is small, overflow where only a factor does, and take a zero for one
without a sign. complex_forms.py says how operations of this family are made of real ones:

    @of_parts(sin)                          @corrected(sqrt)
    def _(x, y):                            def _(x, y, real, imag):
        return real, imag                       return real, with_sign_of(imag, y)

The second gets the parts of what XLA's op returns. Derivatives and batching are those of the operation.
"""
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from xlamini.core import ShapedArray, Values
from xlamini.primitives.complex import part_dtype
from xlamini.primitives.elementwise import Elementwise

Form = Callable[..., tuple[Any, Any]]


class ByParts(Elementwise):
    """An elementwise operation that may have a form for complex numbers, imported when the first one is lowered."""

    form: Form | None = None
    corrects = False

    def by_xla(self, ctx: Any, *operands: Any, **attributes: Any) -> Any:
        dtype = ctx.aval_out.dtype
        if dtype.kind != "c":
            return super().by_xla(ctx, *operands, **attributes)
        importlib.import_module("xlamini.primitives.complex_forms")
        if self.form is None:
            return super().by_xla(ctx, *operands, **attributes)
        found = [super().by_xla(ctx, *operands, **attributes)] if self.corrects else []
        aval = ShapedArray(ctx.aval_out.shape, part_dtype(dtype))
        parts = [p for z in (*operands, *found) for p in _parts(ctx, z, aval)]
        return ctx.op("stablehlo.complex", *ctx.inline(self.form, *parts, avals=[aval] * len(parts)))


def _parts(ctx: Any, z: Any, aval: ShapedArray) -> Values:
    return [ctx.op(name, z, avals=[aval]) for name in ("stablehlo.real", "stablehlo.imag")]


def of_parts(*operations: ByParts) -> Callable[[Form], Form]:
    """Decorator: the parts of the result, `form(x, y)`, from those of the operand."""
    return _declared(operations, False)


def corrected(*operations: ByParts) -> Callable[[Form], Form]:
    """Decorator: the parts of the result, `form(x, y, real, imag)`, from those of the operand and of XLA's result."""
    return _declared(operations, True)


def _declared(operations: tuple[ByParts, ...], corrects: bool) -> Callable[[Form], Form]:
    def declared(form: Form) -> Form:
        for operation in operations:
            operation.form, operation.corrects = form, corrects
        return form

    return declared
