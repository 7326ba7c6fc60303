"""Physical: a program on random keys becomes one on the words that keys are made of.

    physical(jaxpr)  ->  jaxpr in which a key array of shape s is an array of words of shape (*s, words)

What only moves elements about does so for each word: it is batched over the last dimension. Primitives about keys say
for themselves what they do to words, and a jaxpr inside an equation is rewritten in the same way.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import ExtendedDType
from xlamini.core.jaxpr import Equation, Jaxpr, subjaxprs
from xlamini.core.primitive import Axis
from xlamini.core.provenance import derived
from xlamini.core.rewriting import rewrite
from xlamini.core.sharding.aval_sharding import Split
from xlamini.core.tracer import build
from xlamini.interpreters.environment import bound, builder, read, write
from xlamini.primitives.batch_ops import move_batch_dim
from xlamini.primitives.slice import index_in_dim


@rewrite
def physical(jaxpr: Jaxpr) -> Jaxpr:
    """The same program with words in place of keys; `jaxpr` itself if it has no keys."""
    if not _has_keys(jaxpr):
        return jaxpr
    avals = [physical_aval(a) for a in jaxpr.in_avals]
    result, _ = build(lambda *words: _push_words(jaxpr, words), avals, jaxpr.name)
    return result


def is_extended(aval: ShapedArray) -> bool:
    """Whether the elements are keys, not numbers."""
    return isinstance(aval.dtype, ExtendedDType)


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the array that lies beneath one of type `aval`."""
    if not is_extended(aval):
        return aval
    words = ShapedArray((*aval.shape, *aval.dtype.physical_shape), aval.dtype.physical_dtype)
    split = aval.split and Split(aval.split.mesh, (*aval.split.entries, *[()] * len(aval.dtype.physical_shape)))
    return words.varying(aval.vma).divided(split)


def _has_keys(jaxpr: Jaxpr) -> bool:
    # Every program comes here, so first the types are found, which are few.
    types = {id(v.aval): v.aval for eqn in jaxpr.eqns for v in eqn.outvars}
    if any(map(is_extended, (*jaxpr.in_avals, *types.values()))):
        return True
    with_jaxprs = [eqn for eqn in jaxpr.eqns if eqn.primitive.higher_order]
    return any(map(_has_keys_inside, with_jaxprs))


def _has_keys_inside(eqn: Equation) -> bool:
    with eqn.primitive.around(eqn.params):
        return any(physical(inner) is not inner for inner in subjaxprs(eqn))


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
        write(env, eqn, _applied(eqn, inputs))
    target.provenance = None
    return read(env, jaxpr.outvars)


def _applied(eqn: Equation, inputs: Sequence[Any]) -> Any:
    """The outputs of one equation for words in place of keys."""
    if subjaxprs(eqn):
        with eqn.primitive.around(eqn.params):
            params = {name: _param(value) for name, value in eqn.params.items()}
        return eqn.primitive.bind(*inputs, **params)
    outs = eqn.primitive.physical(inputs, [a.aval for a in eqn.invars], **eqn.params)
    return _word_by_word(eqn, inputs) if outs is None else outs


def _param(value: Any) -> Any:
    if isinstance(value, Jaxpr):
        return physical(value)
    return type(value)(map(_param, value)) if isinstance(value, tuple | list) else value


def _word_by_word(eqn: Equation, inputs: Sequence[Any]) -> Any:
    """The outputs of an equation that moves keys about: it moves each word of them."""
    dims = [a.aval.ndim if is_extended(a.aval) else None for a in eqn.invars]
    count = next(x.shape[d] for x, d in zip(inputs, dims, strict=True) if d is not None)
    outs, found = eqn.primitive.batch(Axis(count), inputs, dims, **eqn.params)
    if not eqn.primitive.multiple_results:
        return _words_last(outs, found, count, eqn.outvars[0].aval)
    return [_words_last(x, d, count, v.aval) for x, d, v in zip(outs, found, eqn.outvars, strict=True)]


def _words_last(x: Any, dim: int | None, count: int, aval: ShapedArray) -> Any:
    """An output of type `aval` with its words along the last dimension; what is no key is the same for each word."""
    if is_extended(aval):
        return move_batch_dim(x, count, dim, aval.ndim)
    return x if dim is None else index_in_dim(x, 0, dim, keepdims=False)
