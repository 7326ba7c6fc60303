"""The kinds of rules, each a table. What a rule takes and returns is in docs/extending.md.

Rules see arrays or traced values, never the literals of a program. What they return is checked, so that a mistake is an
error that names the rule, not one in a rewrite.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NoReturn

from xlamini.core import Avals, Literal, Params, Primitive, ShapedArray, Tracer, Values, aval_of, has_shape_and_dtype
from xlamini.core.program.tangents import Linear, Zero, cotangent_aval, is_zero, tangent_aval
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import TangentBuilder
from xlamini.extend.primitive import Primitive as NamedPrimitive
from xlamini.extend.rule_tables import Rule, RuleTable
from xlamini.runtime import device_put_value


def as_value(x: Any) -> Any:
    """An operand as rules see it: a traced value in place of a literal of the program, an array when nothing traces."""
    if type(x) is not Literal:
        return x
    builder = state.builder
    while type(builder) is TangentBuilder:  # whose own values depend on a tangent
        builder = builder.parent
    if builder is None or builder.evaluates:
        return device_put_value(x.val, aval=x.aval)
    return Tracer(builder, x, x.aval)


def as_values(values: Iterable[Any]) -> tuple[Any, ...]:
    """All operands as rules see them."""
    return tuple(map(as_value, values))


def _refuse(primitive: Primitive, rule: str, problem: str) -> NoReturn:
    raise TypeError(f"the {rule} rule of '{primitive}' {problem}")


def _listed(primitive: Primitive, rule: str, found: Any) -> list[Any]:
    if primitive.multiple_results and not isinstance(found, list | tuple):
        _refuse(primitive, rule, f"must return a list, as it has multiple results, but returned {found!r}")
    return list(found) if primitive.multiple_results else [found]


def _restored(primitive: Primitive, values: list[Any]) -> Any:
    return values if primitive.multiple_results else values[0]


# Types


def _shape_method(primitive: Primitive, rule: Rule) -> Rule:
    def method(*avals: ShapedArray, **params: Any) -> Any:
        found = _listed(primitive, "shape_rule", rule(*avals, **params))
        return _restored(primitive, [_type(primitive, x) for x in found])

    return method


def _type(primitive: Primitive, found: Any) -> ShapedArray:
    if not has_shape_and_dtype(found):
        _refuse(primitive, "shape_rule", f"must return types such as ShapedArray(shape, dtype), got {found!r}")
    return found if isinstance(found, ShapedArray) else getattr(found, "aval", ShapedArray(found.shape, found.dtype))


def _effects_method(primitive: Primitive, rule: Rule) -> Rule:
    return lambda avals, params: frozenset(rule(*avals, **params))


def _effects_rule(primitive: Primitive, method: Rule) -> Rule:
    return lambda *avals, **params: method(avals, params)


# Derivatives


def _jvp_method(primitive: Primitive, rule: Rule) -> Rule:
    def method(primals: Values, tangents: Values, /, **params: Any) -> Any:
        found = rule(as_values(primals), as_values(tangents), **params)
        if not isinstance(found, list | tuple) or len(found) != 2:
            _refuse(primitive, "jvp", f"must return a pair, results and tangents, but returned {found!r}")
        return _with_tangents(primitive, "jvp", *found)

    return method


def _with_tangents(primitive: Primitive, rule: str, out: Any, tangent: Any) -> Any:
    """What a rule returned, after a check that the tangents fit the results."""
    outs, tangents = _listed(primitive, rule, out), _listed(primitive, rule, tangent)
    if len(outs) != len(tangents):
        _refuse(primitive, rule, f"returned {len(outs)} results and {len(tangents)} tangents")
    for x, t in zip(outs, tangents, strict=True):
        _check_linear(primitive, rule, "a tangent", t, tangent_aval(aval_of(x)))
    return _restored(primitive, outs), _restored(primitive, tangents)


def _check_linear(primitive: Primitive, rule: str, what: str, found: Any, wanted: ShapedArray) -> None:
    """Refuse a tangent or cotangent of another type than its value has."""
    if found is None or type(found) is Zero:
        return
    aval = aval_of(found)
    if (aval.shape, aval.dtype) != (wanted.shape, wanted.dtype):
        _refuse(primitive, rule, f"returned {what} of type {aval.str_long()} for a value of type {wanted.str_long()}")


def _linearize_method(primitive: Primitive, rule: Rule) -> Rule:
    def method(primals: Values, tangents: Values, /, **params: Any) -> Any:
        found = rule(tuple(not is_zero(t) for t in tangents), as_values(primals), **params)
        if not isinstance(found, list | tuple) or len(found) != 3 or not callable(found[2]):
            _refuse(primitive, "linearize", f"must return results, residuals and a linear function, got {found!r}")
        out, residuals, linear = found
        return _with_tangents(primitive, "linearize", out, linear(residuals, *as_values(tangents)))

    return method


def _partial_eval_method(primitive: Primitive, rule: Rule) -> Rule:
    def method(unknown: Sequence[bool], operands: Values, /, **params: Any) -> Any:
        found = rule(tuple(unknown), as_values(operands), **params)
        return _restored(primitive, _listed(primitive, "partial_eval", found))

    return method


def _transpose_method(primitive: Primitive, rule: Rule) -> Rule:
    def method(ct: Any, /, *operands: Any, **params: Any) -> list[Any]:
        given = list(as_values(ct)) if primitive.multiple_results else as_value(ct)
        found = rule(given, *as_values(operands), **params)
        if not isinstance(found, list | tuple) or len(found) != len(operands):
            _refuse(primitive, "transpose", f"must return {len(operands)} cotangents, one per operand, got {found!r}")
        for x, c in zip(operands, found, strict=True):
            if type(x) is Linear:
                _check_linear(primitive, "transpose", "a cotangent", c, cotangent_aval(x.aval))
        return list(found)

    return method


# Batches


def _batch_method(primitive: Primitive, rule: Rule) -> Rule:
    def method(axis: Any, operands: Values, dims: Sequence[int | None], /, **params: Any) -> Any:
        found = rule(axis, as_values(operands), tuple(dims), **params)
        if not isinstance(found, list | tuple) or len(found) != 2:
            _refuse(primitive, "batch", f"must return a pair, results and their dims, but returned {found!r}")
        outs, out_dims = found
        if primitive.multiple_results and not isinstance(out_dims, list | tuple):
            out_dims = [out_dims] * len(outs)
        return outs, out_dims

    return method


# The way to the machine


def _expand_method(primitive: Primitive, rule: Rule) -> Rule:
    return lambda *operands, **params: rule(*as_values(operands), **params)


def _lower_method(primitive: Primitive, rule: Rule) -> Rule:
    def method(ctx: Any, /, *operands: Any, **params: Any) -> Any:
        ctx.forbid_repetition()  # the rule may call MLIR's own functions, which no recipe records
        with ctx.mlir.context, ctx.location, ctx.insertion:
            return rule(ctx, *operands, **params)

    return method


def _implementation_method(primitive: Primitive, rule: Rule) -> Rule:
    if not isinstance(primitive, NamedPrimitive):
        raise TypeError(f"'{primitive}' is compiled wherever it runs; give it an expand rule in place of one that runs")
    return rule


def _dce_method(primitive: Primitive, rule: Rule) -> Rule:
    return lambda used, params: rule(used, **params)


def _dce_rule(primitive: Primitive, method: Rule) -> Rule:
    return lambda used, /, **params: method(used, params)


def _sharding_method(primitive: Primitive, rule: Rule) -> Rule:
    def method(avals: Avals, outs: Avals, params: Params) -> Any:
        return rule(list(avals), list(outs), **params)

    return method


def _sharding_rule(primitive: Primitive, method: Rule) -> Rule:
    return lambda avals, outs, /, **params: method(avals, outs, params)


def _as_it_is(primitive: Primitive, rule: Rule) -> Rule:
    return rule


def _seen(primitive: Primitive, method: Callable[..., Any]) -> Rule:
    """A method of a primitive's class whose results are values for the user, not literals."""

    def rule(*args: Any, **params: Any) -> Any:
        return _without_literals(method(*args, **params))

    return rule


def _without_literals(found: Any) -> Any:
    return type(found)(map(_without_literals, found)) if type(found) in (list, tuple) else as_value(found)


shape_rule: Final = RuleTable("shape_rule", _shape_method)
"""The type of the result from the types of the operands, and params by name; the rule raises where they do not fit.

>>> from xlamini import extend
>>> first_p = extend.Primitive("first")
>>> @extend.shape_rule(first_p)
... def _(x):
...     return extend.ShapedArray(x.shape[1:], x.dtype)
>>> xlamini.eval_shape(first_p.bind, jnp.ones((3, 2)))
ShapeDtypeStruct(shape=(2,), dtype=float32)
"""

effects_rule: Final = RuleTable("effects", _effects_method, _effects_rule)
"""The effects of an equation, a set of `Effect`, from what `shape_rule` takes; an equation with one is never removed.

>>> from xlamini import extend
>>> log_p = extend.Primitive("log_value")
>>> extend.shape_rule[log_p] = lambda x: x
>>> extend.effects_rule[log_p] = lambda x: {extend.Effect("log")}
>>> xlamini.make_jaxpr(lambda x: (log_p.bind(x), x)[1])(1.0)
{ lambda ; a:f32[]. let _:f32[] = log_value a in (a,) }
"""

implementation: Final = RuleTable("implementation", _implementation_method)
"""The result from arrays and params, where nothing is traced: in Python, so that it needs no other rule to run.

>>> from xlamini import extend
>>> sorted_p = extend.Primitive("sorted_by_numpy")
>>> extend.implementation[sorted_p] = lambda x: jnp.asarray(np.sort(x))
>>> sorted_p.bind(jnp.array([3, 1, 2]))
Array([1, 2, 3], dtype=int32)
"""

jvp_rule: Final = RuleTable("jvp", _jvp_method, _seen)
"""The result and its tangent from primals and tangents, two tuples, and params; a tangent may be a `Zero`.

>>> from xlamini import extend
>>> cube_p = extend.Primitive("cubed")
>>> extend.shape_rule[cube_p] = lambda x: x
>>> extend.expand_rule[cube_p] = lambda x: x * x * x
>>> @extend.jvp_rule(cube_p)
... def _(primals, tangents):
...     (x,), (t,) = primals, tangents
...     return cube_p.bind(x), 3 * x * x * extend.instantiated(t)
>>> xlamini.grad(cube_p.bind)(2.0)
Array(12., dtype=float32, weak_type=True)
"""

linearize_rule: Final = RuleTable("linearize", _linearize_method)
"""In place of `jvp_rule` in reverse mode: the result, residuals, and a linear function of residuals and tangents.

The rule takes a tuple of which operands have a tangent, the primals, and params.

>>> from xlamini import extend
>>> cube_p = extend.Primitive("cubed")
>>> extend.shape_rule[cube_p] = lambda x: x
>>> extend.expand_rule[cube_p] = lambda x: x * x * x
>>> @extend.linearize_rule(cube_p)
... def _(nonzero, primals):
...     (x,) = primals
...     return cube_p.bind(x), 3 * x * x, lambda slope, t: slope * t
>>> xlamini.grad(cube_p.bind)(2.0)
Array(12., dtype=float32, weak_type=True)
"""

partial_eval_rule: Final = RuleTable("partial_eval", _partial_eval_method)
"""The result from a tuple of which operands are unknown, the operands, and params.

What it computes from known operands alone is known.

>>> from xlamini import extend
>>> weighted_p = extend.Primitive("weighted")
>>> @extend.partial_eval_rule(weighted_p)
... def _(unknown, operands):
...     w, x = operands
...     return jnp.exp(w) * x
>>> extend.shape_rule[weighted_p] = lambda w, x: x
>>> x = extend.Unknown(extend.ShapedArray((), "float32"))
>>> extend.trace_partly(lambda x: [weighted_p.bind(0.0, x)], [x]).jaxpr
{ lambda a:f32[]; b:f32[]. let c:f32[] = mul a b in (c,) }
"""

transpose_rule: Final = RuleTable("transpose", _transpose_method, _seen)
"""A list of a cotangent for each operand, from that of the result, the operands, and params.

An operand that has no value is a `Linear`; the others need no cotangent, which is None.

>>> from xlamini import extend
>>> twice_p = extend.Primitive("doubled")
>>> extend.shape_rule[twice_p] = lambda x: x
>>> extend.expand_rule[twice_p] = lambda x: x + x
>>> extend.transpose_rule[twice_p] = lambda ct, x: [twice_p.bind(ct)]
>>> xlamini.linear_transpose(twice_p.bind, 1.0)(3.0)
(Array(6., dtype=float32, weak_type=True),)
"""

batch_rule: Final = RuleTable("batch", _batch_method, _seen)
"""The result and its batch dimension from the axis, a tuple of operands and one of their dims, and params.

>>> from xlamini import extend
>>> flip_p = extend.Primitive("flipped")
>>> extend.shape_rule[flip_p] = lambda x, axis: x
>>> extend.expand_rule[flip_p] = lambda x, axis: lax.rev(x, (axis,))
>>> @extend.batch_rule(flip_p)
... def _(mapped, operands, dims, axis):
...     (x,), (dim,) = operands, dims
...     return flip_p.bind(x, axis=axis + (dim <= axis)), dim
>>> xlamini.vmap(lambda x: flip_p.bind(x, axis=0))(jnp.array([[1, 2], [3, 4]]))
Array([[2, 1],
       [4, 3]], dtype=int32)
"""

expand_rule: Final = RuleTable("expand", _expand_method)
"""The result by other operations, from the operands and params; they replace the equation when a program is lowered.

>>> from xlamini import extend
>>> cube_p = extend.Primitive("cubed")
>>> extend.shape_rule[cube_p] = lambda x: x
>>> extend.expand_rule[cube_p] = lambda x: x * x * x
>>> xlamini.jit(cube_p.bind)(2.0)
Array(8., dtype=float32, weak_type=True)
"""

lower_rule: Final = RuleTable("lower", _lower_method)
"""The result as a value of MLIR, from a context, such values, and params; `ctx.op` makes an operation of its type.

>>> from xlamini import extend
>>> twice_p = extend.Primitive("doubled")
>>> extend.shape_rule[twice_p] = lambda x: x
>>> extend.lower_rule[twice_p] = lambda ctx, x: ctx.op("stablehlo.add", x, x)
>>> twice_p.bind(jnp.array([1.0, 2.0]))
Array([2., 4.], dtype=float32)
"""

cost_rule: Final = RuleTable("cost", _as_it_is)
"""A `Cost` from what `shape_rule` takes; without the rule it is that of an operation on each element of the result.

>>> from xlamini import extend
>>> extend.cost_rule[lax.sin_p](extend.ShapedArray((10,), "float32"))
Cost(flops=100, bytes=80)
"""

dce_rule: Final = RuleTable("dce", _dce_method, _dce_rule)
"""Which operands stay, which results stay, and the new params; None if all stay as they are.

The rule takes a list of which results are used, and params.

>>> from xlamini import extend
>>> both_p = extend.Primitive("sin_and_cos", multiple_results=True)
>>> extend.shape_rule[both_p] = lambda x, wanted: [x] * len(wanted)
>>> extend.expand_rule[both_p] = lambda x, wanted: [getattr(jnp, name)(x) for name in wanted]
>>> @extend.dce_rule(both_p)
... def _(used, wanted):
...     return [True], used, {"wanted": [name for name, is_used in zip(wanted, used) if is_used]}
>>> text = xlamini.jit(lambda x: both_p.bind(x, wanted=["sin", "cos"])[1]).lower(1.0).as_text()
>>> "stablehlo.cosine" in text, "stablehlo.sine" in text
(True, False)
"""

sharding_rule: Final = RuleTable("factors", _sharding_method, _sharding_rule)
"""The `Factors` of an operation, from the types of the operands, those of the results, and params.

>>> from xlamini import extend
>>> cube_p = extend.Primitive("cubed")
>>> extend.sharding_rule[cube_p] = lambda avals, outs: extend.alike(avals, outs)
>>> x = extend.ShapedArray((8, 4), "float32")
>>> extend.sharding_rule[cube_p]([x], [x])
Factors(operands=[[0, 1]], results=[[0, 1]], contracted=())
"""
