"""The primitive `check`: an error that the program may have here, from a check of the user's or an earlier program.

A checked program makes it part of its own error. Elsewhere it cannot be compiled: a program raises nothing.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from xlamini.core import Avals, Axis, Dims, Effects, Params, Primitive, ShapedArray, Values
from xlamini.core.program.effects import Effect, no_effects
from xlamini.interpreters.check import Errors
from xlamini.interpreters.error_values import NOTHING, ErrorPart, of_lanes
from xlamini.primitives import with_batch_first

check_effect: Final = Effect("check", observing=True)


class CheckPrimitive(Primitive):
    """Its operands are the values of an error with these sites; all of them have a dimension for each vmap."""

    traits = 0
    name = "check"
    multiple_results = True
    lacks: Mapping[str, str] = {"transpose": "without results"}

    def shape_rule(self, *avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        return []

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        return self.bind(*primals, **params), []

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        return self.bind(*with_batch_first(operands, dims, axis.size), **params), []

    def lower(self, ctx: Any, *operands: Any, error: ErrorPart, is_debug: bool) -> Any:
        if is_debug:
            return []
        raise ValueError(
            "Cannot abstractly evaluate a checkify.check which was not functionalized: a compiled program raises no "
            f"error by itself. Wrap the outermost function with xlamini.checked or checkify.checkify; the check is at "
            f"{ctx.eqn.provenance.describe()}"
        )

    def checked(self, errors: Errors, operands: Values, *, error: ErrorPart, **params: Any) -> Any:
        # A site with an equation is that of a program that was checked before.
        wanted = any(s.category in errors or s.eqn is not None for s in error.sites)
        found = error.rebuilt(operands) if wanted else NOTHING
        return [], of_lanes(found)

    def effects(self, avals: Avals, params: Params) -> Effects:
        return no_effects if params["is_debug"] else frozenset([check_effect])

    def shown_params(self, params: Params) -> Params:
        return {"categories": sorted({site.category for site in params["error"].sites})}


check_p: Final = CheckPrimitive()
