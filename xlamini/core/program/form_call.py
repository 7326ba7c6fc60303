"""The primitive `form`: a call of the program by which a platform computes an equation (lowering/specialize.py)."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from xlamini.core.program.avals import Params, ShapedArray
from xlamini.core.program.jaxpr import Equation, Jaxpr
from xlamini.core.program.primitive import Cost, Primitive

NOINLINE = "noinline"
"""The param of calls, also of forms, that XLA's CPU compiler must not inline."""


class FormCall(Primitive):
    """A call of the program by which a platform computes the equation `of`."""

    name = "form"
    multiple_results = True
    traits = 0
    lacks: Mapping[str, str]
    lacks = dict.fromkeys(("jvp", "batch"), "only in programs of one platform, after all transformations")

    def shape_rule(self, *avals: ShapedArray, of: Equation, **_: Any) -> list[ShapedArray]:
        out = of.primitive.shape_rule(*avals, **of.params)
        return out if of.primitive.multiple_results else [out]

    def lower(
        self, ctx: Any, *operands: Any, of: Equation, platforms: Sequence[str], jaxprs: Sequence[Jaxpr], **_: Any
    ) -> list[Any]:
        body = dict(zip(platforms, jaxprs, strict=True)).get(ctx.platform)
        return ctx.emit(of, operands) if body is None else ctx.part(body, operands, of.primitive.name)

    def cost(self, *avals: ShapedArray, of: Equation, **_: Any) -> Cost:
        return of.primitive.cost(*avals, **of.params)

    def shown_params(self, params: Params) -> Params:
        names = params["platforms"]
        shown = {"jaxpr": params["jaxprs"][0]} if len(names) == 1 else dict(zip(names, params["jaxprs"], strict=True))
        return {"of": params["of"].primitive, **{name: True for name in params if name == NOINLINE}, **shown}


form_p: Final = FormCall()


def original(eqn: Equation) -> Equation:
    """The equation that a `form` equation stands in for; any other equation itself."""
    return eqn.params["of"] if eqn.primitive is form_p else eqn
