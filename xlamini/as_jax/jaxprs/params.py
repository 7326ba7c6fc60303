"""The table of both ways: the params of an equation as JAX names them, and back as xlamini's primitive takes them.

A row has `out(params)`, which makes JAX's of xlamini's, `back(params)`, and `is_jax(params)`, which tells the two
apart. Most rows are `more(sharding=None)`: keys that JAX has and which are here always the same; a value that the
primitive does not take is refused by the primitive itself. Params that are programs are closed in outward.py and opened
by `HigherOrder.bind`.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from xlamini.as_jax.jaxprs.carrier import Carrier, CarryingTuple
from xlamini.core.program.avals import Avals, Params, ShapedArray
from xlamini.core.program.effects import debug_effect, ordered_debug_effect
from xlamini.core.program.evaluation import jaxpr_as_fun
from xlamini.core.program.jaxpr import ClosedJaxpr, Jaxpr, Var
from xlamini.core.tracing.tracer import build
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.elementwise.arithmetic import add, max, min, sub
from xlamini.primitives.indexing.scatter import scatter_apply_p, scatter_p


class ParamsRow(NamedTuple):
    """The params of a primitive: `out` to JAX's, for operands of these types, `back`, and whether params are JAX's."""

    out: Callable[[Params, Avals], Params]
    back: Callable[[Params], Params]
    is_jax: Callable[[Params], bool]
    meant: Callable[[Params], Callable[..., Any] | None] | None = None
    """What these params of JAX's bind in place of the primitive; None for the primitive itself."""


def more(own: Mapping[str, Any] | None = None, dropped: Mapping[str, Any] | None = None, **jax: Any) -> ParamsRow:
    """A row of params that differ in the presence of keys.

    `jax`: what JAX has more, with its usual value; `own`: what xlamini has more, left out where it is this value;
    `dropped`: what xlamini has more and no result depends on.
    """
    own, hints = own or {}, dropped or {}

    def out(params: Params, avals: Avals) -> Params:
        kept = {k: v for k, v in params.items() if not (k in hints or (k in own and v == own[k]))}
        return {**jax, **kept}

    def back(params: Params) -> Params:
        kept = {k: v for k, v in params.items() if not (k in jax and (v is jax[k] or v == jax[k]))}
        return {**hints, **own, **kept}

    if jax:
        return ParamsRow(out, back, lambda params: not jax.keys().isdisjoint(params))
    ours = {**own, **hints}.keys()
    return ParamsRow(out, back, lambda params: not ours <= params.keys())


class UnspecifiedValue:
    """What `in_shardings` and `out_shardings` of a `jit` equation say: nothing, as shardings are equations here."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = UnspecifiedValue()


def _jit_out(params: Params, avals: Avals) -> Params:
    jaxpr: Jaxpr = params["jaxpr"]
    ins, outs = len(jaxpr.invars), len(jaxpr.outvars)
    return {
        "in_shardings": (UNSPECIFIED,) * ins, "out_shardings": (UNSPECIFIED,) * outs,
        "in_layouts": (None,) * ins, "out_layouts": (None,) * outs, "donated_invars": (False,) * ins,
        "ctx_mesh": None, "keep_unused": False, "inline": False, "compiler_options_kvs": (), **params,
    }  # fmt: skip


_OWN_OF_JIT = frozenset({"jaxpr", "name", "noinline"})


def _jit_back(params: Params) -> Params:
    return {name: value for name, value in params.items() if name in _OWN_OF_JIT}


def _carrying(key: str, moved: tuple[str, ...], what: Callable[[Params], str], **jax: Any) -> ParamsRow:
    """A row in which the param `key` carries the params `moved`, which JAX has not."""

    def out(params: Params, avals: Avals) -> Params:
        carried = Carrier(what(params), {name: params[name] for name in moved})
        kept = {name: value for name, value in params.items() if name not in moved}
        return {**kept, key: carried, **{n: v(params) if callable(v) else v for n, v in jax.items()}}

    def back(params: Params) -> Params:
        kept = {name: value for name, value in params.items() if name != key and name not in jax}
        return {**kept, **params[key].params}

    return ParamsRow(out, back, lambda params: isinstance(params.get(key), Carrier))


def _captured(params: Params) -> int:
    return len(params["captured"]) + params.get("num_closed", 0)


def _forward_name(params: Params) -> str:
    return f"fwd of {params['name']}"


_custom_jvp = _carrying(
    "jvp_jaxpr_fun", ("name", "jvp", "captured"), lambda params: f"jvp of {params['name']}", num_consts=_captured
)


def _custom_jvp_meant(params: Params) -> Any:
    """The primitive that the call stands for (expansions.py), unless somebody has changed the program."""
    call, stands_for = params["call_jaxpr"], params["jvp_jaxpr_fun"].stands_for
    if stands_for is None:
        return None
    primitive, program = stands_for
    unchanged = call.jaxpr.with_consts(call.consts) is program
    return (lambda *operands: [primitive.bind(*operands)]) if unchanged else jaxpr_as_fun(call)


_custom_vjp = _carrying(
    "fwd_jaxpr_thunk",
    ("name", "fwd", "jvp", "captured", "num_closed", "optimize_remat"),
    _forward_name,
    num_consts=_captured,
    bwd=lambda params: Carrier(f"bwd of {params['name']}", {}),
    out_trees=lambda params: Carrier(f"out_trees of {params['name']}", {}),
)


class _LinearSolveTuple(NamedTuple):
    """A field for each of the four functions."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any


def _solve_out(params: Params, avals: Avals) -> Params:
    fields = _LinearSolveTuple._fields
    jaxprs = _LinearSolveTuple(*[params[name] for name in fields])
    return {"const_lengths": _LinearSolveTuple(*params["const_lengths"]), "jaxprs": jaxprs}


def _solve_back(params: Params) -> Params:
    jaxprs = dict(zip(_LinearSolveTuple._fields, params["jaxprs"], strict=True))
    return {"const_lengths": tuple(params["const_lengths"]), **jaxprs}


def _reduce_out(params: Params, avals: Avals) -> Params:
    return {**params, "computation": jaxpr_as_fun(ClosedJaxpr(params["jaxpr"], []))}


def _reduce_back(params: Params) -> Params:
    return {name: value for name, value in params.items() if name != "computation"}


def _debug_out(params: Params, avals: Avals) -> Params:
    effect = ordered_debug_effect if params["ordered"] else debug_effect
    return {"callback": params["callback"], "partitioned": params["partitioned"], "effect": effect, **_lanes(params)}


def _debug_back(params: Params) -> Params:
    ordered = params["effect"] is ordered_debug_effect
    plain = {name: value for name, value in params.items() if name != "effect"}
    return {"result_avals": (), "mapped": (), **plain, "ordered": ordered}


def _lanes(params: Params) -> Params:
    return {"mapped": params["mapped"]} if params["mapped"] else {}


def _print_out(params: Params, avals: Avals) -> Params:
    own = {name: params[name] for name in ("callback", "mapped", "result_avals")}
    kept = {name: params[name] for name in ("fmt", "ordered", "partitioned")}
    tree, made_up = params["callback"].in_tree, CarryingTuple.of(own)
    options = tuple(np.get_printoptions().items())
    more_keys = {"np_printoptions": options, "has_placeholders": "{" in params["fmt"], "logging_record": None}
    return {**kept, "in_tree": tree, "static_args": made_up, **more_keys}


def _print_back(params: Params) -> Params:
    kept = {name: params[name] for name in ("fmt", "ordered", "partitioned")}
    return {**kept, **params["static_args"].params}


def _scatter(update: Callable[..., Any]) -> ParamsRow:
    """A scatter that combines old and new elements: JAX's has a program of two scalars for that."""

    def out(params: Params, avals: Avals) -> Params:
        scalar = ShapedArray((), avals[0].dtype)
        jaxpr, _ = build(lambda old, new: [update(old, new)], [scalar, scalar])
        return {**params, "update_jaxpr": jaxpr, "update_consts": ()}

    return ParamsRow(out, _without_update, lambda params: "update_consts" in params)


def _without_update(params: Params) -> Params:
    return {name: value for name, value in params.items() if name not in ("update_jaxpr", "update_consts")}


def _scatter_out(params: Params, avals: Avals) -> Params:
    """That of a `scatter-apply` has the applied function, of which the new element is the second operand."""
    applied = params.get("update_jaxpr")
    jaxpr = applied and applied.replace(invars=[*applied.invars, Var(ShapedArray((), avals[2].dtype))])
    return {**params, "update_jaxpr": jaxpr, "update_consts": ()}


def _scatter_meant(params: Params) -> Any:
    """`scatter-apply` where there is a function."""
    if params["update_jaxpr"] is None:
        return None
    program = params["update_jaxpr"].with_consts(())
    applied = program.replace(invars=program.invars[:1])
    return functools.partial(scatter_apply_p.bind, update_jaxpr=applied, **_without_update(params))


_SCATTER = ParamsRow(_scatter_out, _without_update, lambda params: "update_consts" in params, _scatter_meant)
_SPLIT = more(out_sharding=None)
_SHARDED = more(sharding=None)
_HOST = more({"mapped": ()}, sharding=None)

TABLE: dict[str, ParamsRow] = {
    **dict.fromkeys("sin cos tan tanh exp exp2 expm1 log log1p sqrt rsqrt cbrt logistic".split(), more(accuracy=None)),
    **dict.fromkeys(("broadcast_in_dim", "convert_element_type", "iota"), _SHARDED),
    **dict.fromkeys(("reduce_sum", "dot_general", "conv_general_dilated", "rng_bit_generator"), _SPLIT),
    "reshape": more(dimensions=None, sharding=None),
    "mul": more(out_dtype=None),
    "triangular_solve": more(dropped={"by_columns": False}),
    "eigh": more({"vectors": True}),
    "jit": ParamsRow(_jit_out, _jit_back, lambda params: "inline" in params),
    "custom_jvp_call": _custom_jvp._replace(meant=_custom_jvp_meant),
    "custom_vjp_call": _custom_vjp,
    "custom_linear_solve": ParamsRow(_solve_out, _solve_back, lambda params: "jaxprs" in params),
    "scatter": _SCATTER,
    "scatter-apply": _SCATTER,
    "scatter-add": _scatter(add),
    "scatter-sub": _scatter(sub),
    "scatter-mul": _scatter(mul),
    "scatter-min": _scatter(min),
    "scatter-max": _scatter(max),
    "reduce": ParamsRow(_reduce_out, _reduce_back, lambda params: "computation" in params),
    "pure_callback": _HOST,
    "io_callback": _HOST,
    "debug_callback": ParamsRow(_debug_out, _debug_back, lambda params: "effect" in params),
    "debug_print": ParamsRow(_print_out, _print_back, lambda params: "static_args" in params),
}

NAMED_IN_JAX = {"scatter-apply": scatter_p}
"""The primitive of JAX's in place of one of xlamini's alone, with the params that the table says."""

OPEN = frozenset({"remat2", "shard_map", *(name for name in TABLE if name.startswith("scatter"))})
"""The primitives whose programs among the params are open in JAX."""
