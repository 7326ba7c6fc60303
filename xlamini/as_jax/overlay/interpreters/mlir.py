"""`jax.interpreters.mlir`: how primitives become StableHLO.

A rule made by `lower_fun` is the primitive's expand rule; another writes operations by the bindings of jaxlib.mlir.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from jaxlib.mlir import ir as ir

from xlamini import extend
from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.mlir_values import *
from xlamini.core.program.avals import Avals, ShapedArray
from xlamini.core.program.jaxpr import Var
from xlamini.core.program.primitive import Primitive
from xlamini.lowering.host_calls import host_call
from xlamini.runtime.execution.callbacks import HostCall

__getattr__: Final = fall_through(__name__)

Rule = Callable[..., Any]
LoweringRule = Rule
Value = ir.Value


class _LoweredFunction:
    """A function of arrays in place of a lowering; within another lowering, it is called as one."""

    fun: Rule
    multiple_results: bool

    def __init__(self, fun: Rule, multiple_results: bool):
        self.fun, self.multiple_results = fun, multiple_results

    def __call__(self, ctx: LoweringRuleContext, *operands: Value[Any], **params: Any) -> list[Value[Any]]:
        outs = ctx.of_xlamini.inline(lambda *tracers: self.fun(*tracers, **params), *operands, avals=ctx.avals_in)
        return outs if isinstance(outs, list) else [outs]

    def expanded(self, primitive: Primitive) -> Rule:
        """The primitive's expand rule."""
        if primitive.multiple_results == self.multiple_results:
            return self.fun
        if self.multiple_results:
            return lambda *operands, **params: self.fun(*operands, **params)[0]
        return lambda *operands, **params: [self.fun(*operands, **params)]


def lower_fun(fun: Rule, multiple_results: bool = True) -> _LoweredFunction:
    """A lowering written as a function of arrays; with `multiple_results`, it returns a list."""
    return _LoweredFunction(fun, multiple_results)


def register_lowering(
    prim: Primitive, rule: Rule, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Rule:
    """Give a primitive its lowering, on all platforms or on one, "gpu" for both "cuda" and "rocm"."""
    if platform is not None or isinstance(extend.lower_rule.get(prim), ByPlatform):
        _give_on_platform(prim, rule, platform)
    elif isinstance(rule, _LoweredFunction):
        extend.expand_rule[prim] = rule.expanded(prim)
    else:
        extend.lower_rule[prim] = _as_xlamini_calls(prim, rule)
    return rule


class ByPlatform:
    """The lowering of a primitive with rules for single platforms; the rule under None is for all others."""

    primitive: Primitive
    rules: dict[str | None, Rule]

    def __init__(self, primitive: Primitive, rules: dict[str | None, Rule]):
        self.primitive, self.rules = primitive, rules

    def __call__(self, ctx: Any, *operands: Value[Any], **params: Any) -> Any:
        rule = self.rules.get(ctx.platform) or self.rules.get(None)
        if rule is None:
            raise NotImplementedError(
                f"primitive '{self.primitive}' has no lowering for the platform {ctx.platform!r}; give it one with "
                "register_lowering"
            )
        return rule(ctx, *operands, **params)


def _give_on_platform(prim: Primitive, rule: Rule, platform: str | None) -> None:
    names = ("cuda", "rocm") if platform == "gpu" else (platform,)
    rules = {**_rules_by_platform(prim), **dict.fromkeys(names, _as_xlamini_calls(prim, rule))}
    if prim in extend.expand_rule:
        del extend.expand_rule[prim]
    extend.lower_rule[prim] = ByPlatform(prim, rules)


def _rules_by_platform(prim: Primitive) -> dict[str | None, Rule]:
    """The lowerings that the primitive has."""
    if prim in extend.expand_rule:
        expanded = lower_fun(extend.expand_rule[prim], prim.multiple_results)
        return {None: _as_xlamini_calls(prim, expanded)}
    found = extend.lower_rule.get(prim)
    if isinstance(found, ByPlatform):
        return found.rules
    return {} if found is None else {None: found}


def _as_xlamini_calls(primitive: Primitive, rule: Rule) -> Rule:
    def lower(ctx: Any, *operands: Value[Any], **params: Any) -> Any:
        outs: Any = rule(LoweringRuleContext(ctx, primitive), *operands, **params)
        if primitive.multiple_results:
            return list(outs)
        return outs if isinstance(outs, ir.Value) else outs[0]

    return lower


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Sequence[Any]],
    token: Any,
    operands: Sequence[Value[Any]],
    operand_avals: Avals,
    result_avals: Avals,
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[list[Value[Any]], Any, None]:
    """Call a Python function of arrays that returns a tuple; the results, the token, and nothing to keep alive."""
    own = ctx.of_xlamini
    eqn, call = own.eqn, HostCall(lambda arrays: callback(*arrays), str(ctx.primitive), own.eqn.provenance.describe())
    own.eqn = eqn.replace(invars=[Var(a) for a in operand_avals], outvars=[Var(a) for a in result_avals])
    try:
        return host_call(own, call, operands, token is not None, has_side_effect), token, None
    finally:
        own.eqn = eqn


# --- the context of a lowering rule, by JAX's names


class ModuleContext:
    """The module that is being made."""

    def __init__(self, ctx: Any):
        self._ctx = ctx

    @property
    def context(self) -> Any:
        return self._ctx.mlir.context

    @property
    def platforms(self) -> tuple[str, ...]:
        return (self._ctx.platform,)

    def add_keepalive(self, value: Any) -> None:
        """Nothing to do: the program keeps its Python functions alive."""


class LoweringRuleContext:
    """What a lowering rule knows of its equation; `of_xlamini` is the context that rules of xlamini take."""

    of_xlamini: Any
    primitive: Primitive
    tokens_in: None
    tokens_out: None

    def __init__(self, ctx: Any, primitive: Primitive):
        self.of_xlamini, self.primitive = ctx, primitive
        self.module_context: ModuleContext = ModuleContext(ctx)
        self.avals_in: list[ShapedArray] = ctx.avals_in
        self.avals_out: list[ShapedArray] = ctx.avals_out
        self.tokens_in = self.tokens_out = None
