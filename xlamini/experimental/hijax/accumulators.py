"""What the rules `vjp_bwd` and `transpose` put cotangents into, one for each leaf of an argument."""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapedArray, Zero, cotangent_aval, is_zero
from xlamini.core.hi_types import as_written
from xlamini.primitives.tangent_ops import add_tangents


class GradAccum:
    """The cotangent of one leaf of an argument, whose type is `aval`; `accum(ct)` adds to it.

    None and symbolic zeros add nothing.

    >>> isinstance(ValAccum(xlamini.typeof(1.0)), GradAccum)
    True
    """

    def __init__(self, aval: ShapedArray, val: Any = None):
        self._aval = aval
        self.val: Any = Zero(cotangent_aval(aval)) if val is None else val

    aval = property(lambda self: as_written(self._aval))

    def accum(self, x: Any) -> None:
        """Add a cotangent."""
        if x is not None and not is_zero(x):
            self._add(x)

    def freeze(self) -> Any:
        """The sum, a symbolic zero if nothing was added."""
        return self.val

    def _add(self, ct: Any) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"


class ValAccum(GradAccum):
    """A cotangent that is a value.

    >>> acc = ValAccum(xlamini.typeof(1.0))
    >>> acc.accum(2.0), acc.accum(3.0), float(acc.freeze())
    (None, None, 5.0)
    """

    def _add(self, ct: Any) -> None:
        self.val = add_tangents(self.val, ct)


class NullAccum(GradAccum):
    """The cotangent of an argument that is not differentiated: what is added is dropped, and need not be computed.

    >>> acc = NullAccum(xlamini.typeof(1.0))
    >>> acc.accum(2.0), acc.val
    (None, Zero(f32[]))
    """

    def _add(self, ct: Any) -> None:
        pass


class RefAccum(GradAccum):
    """A cotangent that is added to a ref, `acc.ref`.

    No rule is given one: a rule adds values, and the pullback of `vjp` adds the sum to the ref of `with_refs`.

    >>> acc = RefAccum(xlamini.typeof(1.0), xlamini.new_ref(1.0))
    >>> acc.accum(2.0), acc.ref[...]
    (None, Array(3., dtype=float32))
    """

    def __init__(self, aval: ShapedArray, ref: Any):
        super().__init__(aval)
        self.ref = ref

    def _add(self, ct: Any) -> None:
        self.ref[...] += ct

    def freeze(self) -> Any:
        return self.ref[...]
