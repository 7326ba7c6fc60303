"""Physical lowering of random keys: a program on keys becomes one on the uint32 words of the keys.

    physical(jaxpr)  ->  jaxpr in which a key array of shape s is an array of words of shape (*s, words)

A primitive that only moves elements is batched over the dimension of words. Primitives on keys have a rule of their
own, and a jaxpr inside an equation is rewritten recursively.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import Axis, Equation, ExtendedDType, Jaxpr, ShapedArray, Values, rewrite, subjaxprs
from xlamini.core.program.bindable import around, further
from xlamini.core.program.jaxpr import derived
from xlamini.core.program.rewriting import rewritten_params
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.bindings import bound, builder, read, write
from xlamini.primitives import index_in_dim, move_batch_dim


@rewrite
def physical(jaxpr: Jaxpr) -> Jaxpr:
    """The program on words in place of keys; `jaxpr` itself if it has no keys."""
    if not _has_keys(jaxpr):
        return jaxpr
    avals = [physical_aval(a) for a in jaxpr.in_avals]
    result, _ = build(lambda *words: _push_words(jaxpr, words), avals, jaxpr.name)
    return result


def is_extended(aval: ShapedArray) -> bool:
    """Whether the dtype is an extended dtype: keys, not numbers."""
    return isinstance(aval.dtype, ExtendedDType)


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the physical array of words that represents one of type `aval`."""
    if not is_extended(aval):
        return aval
    words = ShapedArray((*aval.shape, *aval.dtype.physical_shape), aval.dtype.physical_dtype)
    split = aval.explicit_sharding and aval.explicit_sharding.with_entries(
        (*aval.explicit_sharding.entries, *[()] * len(aval.dtype.physical_shape))
    )
    return words.varying(aval.vma).with_sharding(split).in_space(aval.memory_space)


def _has_keys(jaxpr: Jaxpr) -> bool:
    # Every program is checked, so first the distinct types are collected, which are few.
    types = {id(v.aval): v.aval for eqn in jaxpr.eqns for v in eqn.outvars}
    if any(map(is_extended, (*jaxpr.in_avals, *types.values()))):
        return True
    with_jaxprs = [eqn for eqn in jaxpr.eqns if eqn.primitive.higher_order]
    return any(map(_has_keys_inside, with_jaxprs))


def _has_keys_inside(eqn: Equation) -> bool:
    inside = subjaxprs(eqn)
    if not inside:
        return False
    with around(eqn):
        return any(physical(inner) is not inner for inner in inside)


def _touches_keys(eqn: Equation) -> bool:
    return (
        any(is_extended(v.aval) for v in eqn.outvars)
        or any(is_extended(a.aval) for a in eqn.invars)
        or _has_keys_inside(eqn)
    )


def _push_words(jaxpr: Jaxpr, words: Sequence[Any]) -> list[Any]:
    env, target = bound(jaxpr, words), builder()
    for eqn in jaxpr.eqns:
        inputs = read(env, eqn.invars)
        if not _touches_keys(eqn):
            env.update(zip(eqn.outvars, target.replay(eqn, inputs), strict=True))
            continue
        target.provenance = derived("physical", eqn)
        write(env, eqn, _apply(eqn, inputs))
    target.provenance = None
    return read(env, jaxpr.outvars)


def _apply(eqn: Equation, inputs: Values) -> Any:
    """The outputs of one equation, on words in place of keys."""
    if subjaxprs(eqn):
        return eqn.primitive.bind(*inputs, **rewritten_params(eqn, physical))
    rule = further(eqn.primitive, "physical")
    outs = None if rule is None else rule(inputs, [a.aval for a in eqn.invars], **eqn.params)
    return _word_by_word(eqn, inputs) if outs is None else outs


def _word_by_word(eqn: Equation, inputs: Values) -> Any:
    """The outputs of an equation that only moves keys, by batching it over their words.

    It is applied as it is if they have no dimension of words, but one number each.
    """
    dims = [a.aval.ndim if _has_words(a.aval) else None for a in eqn.invars]
    if dims.count(None) == len(dims):
        return eqn.primitive.bind(*inputs, **eqn.params)
    count = next(x.shape[d] for x, d in zip(inputs, dims, strict=True) if d is not None)
    outs, found = eqn.primitive.batch(Axis(count), inputs, dims, **eqn.params)
    if not eqn.primitive.multiple_results:
        return _words_last(outs, found, count, eqn.outvars[0].aval)
    return [_words_last(x, d, count, v.aval) for x, d, v in zip(outs, found, eqn.outvars, strict=True)]


def _has_words(aval: ShapedArray) -> bool:
    return is_extended(aval) and bool(aval.dtype.physical_shape)


def _words_last(x: Any, dim: int | None, count: int, aval: ShapedArray) -> Any:
    """An output of type `aval` with its words along the last dimension; one without keys is equal for all words."""
    if _has_words(aval):
        return move_batch_dim(x, count, dim, aval.ndim)
    return x if dim is None else index_in_dim(x, 0, dim, keepdims=False)
