"""Padding of a program: its equations on arrays with room for more than their data.

    run(sizes, jaxpr, operands)  ->  outputs

An equation that would take padding for data is refused with its line.
"""
from __future__ import annotations

from typing import Any

from xlamini.core import CallLike, Equation, Jaxpr, Values, aval_of
from xlamini.core.errors import InconclusiveDimensionOperation, PaddingError, ShapeError
from xlamini.core.program.jaxpr import derived
from xlamini.interpreters.bindings import bound, builder, read, write
from xlamini.primitives.base.elementwise import Elementwise
from xlamini.transforms.buckets import indexing, loops, rules
from xlamini.transforms.buckets.padded_sizes import PaddedSizes

_BY_ELEMENT = (
    "add sub neg add_any select_n bounded copy copy_p real imag complex conj reduce_precision bitcast_convert_type "
    "transpose squeeze stack unstack stop_gradient optimization_barrier cpu_barrier sharding_constraint device_put"
)
_RULES: dict[str, rules.Rule] = {
    **dict.fromkeys(_BY_ELEMENT.split(), rules.bind),
    **dict.fromkeys(
        "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor argmax argmin "
        "euclidean_norm softmax".split(),
        rules.reduction,
    ),
    **dict.fromkeys("cumsum cumprod cummax cummin cumlogsumexp".split(), rules.cumulative),
    **dict.fromkeys(
        "cholesky triangular_solve lu qr geqrf householder_product eig eigh svd schur fft".split(), rules.stacks
    ),
    **dict.fromkeys(
        "scatter scatter-add scatter-sub scatter-mul scatter-min scatter-max scatter-winners".split(),
        indexing.scattered,
    ),
    "sort": rules.sort,
    "top_k": rules.top_k,
    "conv_general_dilated": rules.convolution,
    "dot_general": rules.dot_general,
    "dim_as_value": rules.dim_as_value,
    "assume_unequal": rules.assume_unequal,
    "concatenate": rules.concatenate,
    "split": rules.split,
    "rev": rules.reverse,
    "broadcast_in_dim": rules.resized("shape"),
    "iota": rules.resized("shape"),
    "reshape": indexing.reshaped,
    "slice": indexing.sliced,
    "pad": indexing.padded,
    "dynamic_slice": indexing.dynamically_sliced,
    "dynamic_update_slice": indexing.dynamically_updated,
    "gather": indexing.gathered,
    "random_bits": indexing.random_bits,
    "random_split": indexing.random_split,
    "random_fold_in": rules.bind,
    "random_wrap": rules.bind,
    "random_unwrap": rules.bind,
    "random_clone": rules.bind,
    "scan": loops.scan,
    "while": loops.while_loop,
    "bounded_while": loops.while_loop,
    **dict.fromkeys(
        "cond case custom_linear_solve custom_root iterate noinline".split(), loops.higher_order
    ),
    **dict.fromkeys("reduce_window_sum reduce_window_max reduce_window_min".split(), rules.windows),
    "window_repeat": rules.bind,
    "reduce": rules.general_reduction,
}


def run(sizes: PaddedSizes, jaxpr: Jaxpr, operands: Values) -> list[Any]:
    """The outputs of the program for padded operands; PaddingError if the padding would change a number."""
    env, target = bound(jaxpr, operands), builder()
    outer = target.provenance
    for eqn in jaxpr.eqns:
        target.provenance = derived("pad", eqn)
        write(env, eqn, _padded(sizes, eqn, read(env, eqn.invars)))
    target.provenance = outer
    return read(env, jaxpr.outvars)


def _padded(sizes: PaddedSizes, eqn: Equation, operands: Values) -> Any:
    try:
        outs = _rule(eqn)(sizes, eqn, *operands)
        _check_room(sizes, eqn, outs)
        return outs
    except (PaddingError, ShapeError, InconclusiveDimensionOperation) as error:  # arrays with room may not fit
        if isinstance(error, PaddingError) and error.has_place:
            raise
        raise _placed(eqn, error) from None


def _check_room(sizes: PaddedSizes, eqn: Equation, outs: Any) -> None:
    """A rule whose result is shorter than its type's room has lost data; PaddingError."""
    for out, x in zip(eqn.outvars, outs if isinstance(outs, list | tuple) else [outs], strict=True):
        if (found := aval_of(x).shape) != (wanted := sizes.rooms(out.aval.shape)):
            raise PaddingError(f"its result has room for {found}, not for {wanted}")


def _placed(eqn: Equation, error: Exception) -> PaddingError:
    """The error with its equation and the user's line."""
    types = ", ".join(a.aval.str_short() for a in eqn.invars)
    placed = PaddingError(
        f"{eqn.primitive.name} of {types or 'nothing'} at {eqn.provenance.source or 'an unknown line'} cannot be "
        f"computed in buckets: {error}; compute it outside of the function, or without buckets"
    )
    placed.has_place = True
    return placed


def _rule(eqn: Equation) -> rules.Rule:
    primitive = eqn.primitive
    if primitive.name in _RULES:
        return _RULES[primitive.name]
    if isinstance(primitive, CallLike):
        return rules.call
    if isinstance(primitive, Elementwise) or not rules.touches_sizes(eqn):
        return rules.bind
    raise PaddingError("its result would depend on the padding, or nobody has said that it does not")
