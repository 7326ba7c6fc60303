"""The shape in which an array crosses the boundary of a block: that in which XLA stores it.

XLA multiplies matrices, so a product with several leading dimensions is stored as one, and that is what the kernels of
its block read. If other blocks were given it in its own shape, their kernels would differ from these in nothing else.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from xlamini.core import Atom, Equation, Shape, Var
from xlamini.core.program.effects import no_effects
from xlamini.primitives.shape.shape import reshape_p


def stored_shape(x: Atom, producer: Callable[[Atom], Equation | None]) -> Shape:
    """The shape of a value, or that of the matrix if it is a product by one, or a view of such a product."""
    shape, eqn = x.aval.shape, producer(x)
    while eqn is not None and eqn.primitive.memory.view:
        eqn = producer(eqn.invars[0])
    if eqn is None or not _is_product_by_matrix(eqn):
        return shape
    *rows, columns = eqn.outvars[0].aval.shape
    return math.prod(rows), columns


def _is_product_by_matrix(eqn: Equation) -> bool:
    """Whether an equation multiplies an array of more dimensions by a matrix, on one device."""
    if not eqn.primitive.memory.product or len(eqn.invars) != 2:
        return False
    (x, y), out = (a.aval for a in eqn.invars), eqn.outvars[0].aval
    return out.explicit_sharding is None and y.ndim == 2 and x.ndim == out.ndim > 2


class Views:
    """Equations that view arrays in other shapes, as parts of the block that starts with `first`."""

    def __init__(self, first: Equation):
        self.eqns: list[Equation] = []
        self._first = first

    def shaped(self, x: Atom, shape: Shape) -> Atom:
        """A value in this shape."""
        if x.aval.shape == shape:
            return x
        out = Var(x.aval.update(shape=shape))
        self._add(x, out)
        return out

    def of(self, out: Var, shape: Shape) -> Var:
        """A variable of this shape, of which `out` is a view."""
        if out.aval.shape == shape:
            return out
        x = Var(out.aval.update(shape=shape))
        self._add(x, out)
        return x

    def _add(self, x: Atom, out: Var) -> None:
        first, params = self._first, {"new_sizes": out.aval.shape}
        self.eqns.append(Equation(reshape_p, [x], [out], params, no_effects, first.provenance, first.id))
