"""The way in: `primitive.bind` takes JAX's params of an equation, and so do the other members of JAX's primitives."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.as_jax.jaxprs.params import TABLE
from xlamini.core.program.avals import Params, ShapedArray
from xlamini.core.program.bindable import effects_of
from xlamini.core.program.jaxpr import ClosedJaxpr, Jaxpr
from xlamini.core.program.primitive import Primitive
from xlamini.staging.call.higher_order import opened


def take_jax_params(primitive: Primitive) -> None:
    """Make the primitive's `bind` take JAX's params, if they differ from its own."""
    row = TABLE.get(primitive.name)
    if row is None:
        return
    bind, is_jax = primitive.bind, row.is_jax

    def bind_either(*operands: Any, **params: Any) -> Any:
        if not is_jax(params):
            return bind(*operands, **params)
        other = row.meant(params) if row.meant is not None else None
        return bind(*operands, **row.back(params)) if other is None else other(*operands)

    primitive.bind = bind_either


def own_params(primitive: Primitive, params: Params) -> Params:
    """The params for the rules of xlamini's."""
    row = TABLE.get(primitive.name)
    own = row.back(params) if row is not None and row.is_jax(params) else params
    return {name: opened(value) for name, value in own.items()}


def abstract_eval(self: Primitive, *avals: ShapedArray, **params: Any) -> tuple[Any, Any]:
    """The results' types and the effects."""
    own = own_params(self, params)
    return self.shape_rule(*avals, **own), effects_of(self, avals, own)


def impl(self: Primitive, *operands: Any, **params: Any) -> Any:
    """The results of arrays, by a compiled program."""
    return self.bind(*operands, **params)


def bind_with_trace(self: Primitive, trace: Any, operands: Any, params: Params) -> Any:
    """`bind`: there is one trace, that of the program being written."""
    return self.bind(*operands, **params)


def map_jaxpr(self: ClosedJaxpr, fun: Callable[[Any], Any]) -> ClosedJaxpr:
    """The program that `fun` makes of the one without constants, with the same constants."""
    return ClosedJaxpr(fun(self.jaxpr), self.consts)


_MEMBERS: dict[type, dict[str, Any]] = {
    Primitive: {
        "abstract_eval": abstract_eval, "impl": impl, "bind_with_trace": bind_with_trace,
        "is_effectful": None, "skip_canonicalization": False,
    },
    ClosedJaxpr: {
        "map_jaxpr": map_jaxpr,
        "invars": property(lambda self: self.jaxpr.invars),
        "outvars": property(lambda self: self.jaxpr.outvars),
        "constvars": property(lambda self: self.jaxpr.constvars),
    },
    **{kind: {} for kind in (Jaxpr, ShapedArray)},
}


def add_members() -> None:
    """Give primitives, programs and types what libraries ask of JAX's; none of them is of JAX's higher types."""
    for kind, members in _MEMBERS.items():
        for name, value in {**members, "is_high": False}.items():
            setattr(kind, name, value)
