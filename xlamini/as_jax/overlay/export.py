"""`jax.export`: Keras makes a symbolic size before it knows whether it needs one, so that only its use is refused."""
from __future__ import annotations

from typing import Any, NoReturn

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import refuse

__getattr__ = fall_through(__name__)


class SymbolicSize:
    """A size that is not a number: it refuses to be one, to be computed with and to be compared."""

    def _refuse(self, *others: Any) -> NoReturn:
        refuse("a symbolic size", "shapes are numbers, so give the batch size too (keras.Input(..., batch_size=16))")

    __index__ = __int__ = __float__ = __bool__ = __hash__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = __pow__ = _refuse


def symbolic_shape(shape_spec: str, **options: Any) -> tuple[SymbolicSize, ...]:
    """A size for each part of the text, none of which can be used."""
    return tuple(SymbolicSize() for _ in shape_spec.strip("()").split(",") if _.strip())
