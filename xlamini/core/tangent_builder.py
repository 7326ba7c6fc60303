"""The builder under which derivative rules run: it parts what depends on a tangent from all that does not."""
from __future__ import annotations

from typing import Any

from xlamini.core.avals import Params, Values
from xlamini.core.jaxpr import Atom, Equation, Var
from xlamini.core.tracer import Builder, Tracer


class TangentBuilder(Builder):
    """Keeps the equations that depend on its own inputs and passes all others to its parent.

    A derivative rule run under it splits into two programs: the parent gets the primal one, this builder the linear
    one, and the values that it captures are the residuals. A constant, such as an array of zeros, is recomputed instead
    of captured.
    """

    __slots__ = ("constants", "remade", "scanned")

    def __init__(self, name: str):
        super().__init__(name)
        self.constants: dict[Atom, Equation] = {}
        self.remade: dict[Atom, Atom] = {}
        self.scanned = 0

    def _owns(self, operands: Values) -> bool:
        for x in operands:  # a loop, as this runs for every equation that a derivative rule makes
            if type(x) is Tracer and x.builder is self:
                return True
        return False

    def emit(self, primitive: Any, operands: Values, params: Params) -> Any:
        if self._owns(operands):
            return Builder.emit(self, primitive, operands, params)
        parent: Any = self.parent
        parent.provenance = self.provenance
        return parent.emit(primitive, operands, params)

    def replay(self, eqn: Equation, operands: Values) -> list[Tracer]:
        if self._owns(operands):
            return super().replay(eqn, operands)
        parent: Any = self.parent
        return parent.replay(eqn, operands)

    def _capture(self, key: Any, value: Any) -> Atom:
        remade = self.remade.get(key)
        if remade is None and key not in self.captured:
            eqn = self._constants_of_parent().get(key)
            if eqn is not None:
                remade = self.remade[key] = super().replay(eqn, eqn.invars)[0].variable
        return super()._capture(key, value) if remade is None else remade

    def _constants_of_parent(self) -> dict[Atom, Equation]:
        """The parent's equations without variable operands, by output variable."""
        equations = self.parent.equations if self.parent is not None else []
        for eqn in equations[self.scanned :]:
            if Var not in map(type, eqn.invars) and len(eqn.outvars) == 1 and not eqn.effects:
                self.constants[eqn.outvars[0]] = eqn
        self.scanned = len(equations)
        return self.constants
