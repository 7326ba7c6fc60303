"""`jax.interpreters.batching`: rules of `vmap`, as views of the rules that primitives have."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast

from xlamini.as_jax.jaxprs.binding import own_params
from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import Trace, refuse, refuse_trace
from xlamini.core.program.avals import Dims, Values
from xlamini.core.program.named_axes import Axis
from xlamini.core.program.primitive import Primitive
from xlamini.extend import RuleTable, batch_rule
from xlamini.extend.rules import as_values
from xlamini.primitives.base.batch_ops import move_batch_dim, with_batch_first
from xlamini.primitives.shape.shape import moveaxis as moveaxis

__getattr__: Final = fall_through(__name__)

Rule = Callable[..., Any]

not_mapped = None


def register_vmappable(data_type: type, *rules: Any) -> None:
    """No object of the class can be made any more: `vmap` would map all arrays in it, whatever these rules say."""

    def refuse_object(cls: type, *args: Any, **kwargs: Any) -> Any:
        refuse(f"{data_type.__qualname__}, which register_vmappable was given,", "vmap maps all arrays of a pytree")

    data_type.__new__ = refuse_object


def unregister_vmappable(data_type: type) -> None:
    """Let objects of the class be made again."""
    del data_type.__new__


class BatchTrace(Trace):
    """The trace of a `vmap`; libraries ask whether a trace is one."""


class BatchTracer:
    """A value with a batch dimension. There are none while a function is traced: `vmap` rewrites its program."""

    def __init__(self, *args: Any, **kwargs: Any):
        refuse_trace("BatchTracer")


def to_elt(trace: Any, get_idx: Any, x: Any, spec: Any) -> Any:
    """One element of a mapped value, which only the rules of `register_vmappable` ask for."""
    refuse("to_elt", "vmap maps all arrays of a pytree")


class AxisData(NamedTuple):
    """The axis that a `vmap` adds, as the rules of `fancy_primitive_batchers` see it."""

    name: Any
    size: int
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


def _of_axis(call: Callable[[Rule, Axis, Values, Dims, dict[str, Any]], Any]) -> Any:
    """How a primitive's method calls a rule in one of JAX's conventions; results are checked as `batch_rule`'s are."""

    def as_method(primitive: Primitive, rule: Rule) -> Rule:
        def method(axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
            outs, out_dims = call(rule, axis, as_values(operands), tuple(dims), params)
            if primitive.multiple_results and not isinstance(out_dims, Sequence):
                out_dims = [out_dims] * len(outs)
            return outs, out_dims

        return method

    return as_method


def _any_axis(primitive: Primitive, method: Rule) -> Rule:
    """A primitive's rule without its axis: the size is that of an operand."""

    def rule(operands: Values, dims: Dims, **params: Any) -> Any:
        sizes = [x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None]
        return batch_rule[primitive](Axis(sizes[0]), operands, dims, **own_params(primitive, params))

    return rule


def _with_size_and_name(primitive: Primitive, method: Rule) -> Rule:
    return lambda size, name, trace, operands, dims, **params: method(
        Axis(size, name), operands, dims, **own_params(primitive, params)
    )


def _with_data(primitive: Primitive, method: Rule) -> Rule:
    return lambda data, operands, dims, **params: method(
        Axis(data.size, data.name), operands, dims, **own_params(primitive, params)
    )


primitive_batchers: Final = RuleTable(
    "batch", _of_axis(lambda rule, axis, xs, dims, params: rule(xs, dims, **params)), _any_axis
)
axis_primitive_batchers: Final = RuleTable(
    "batch",
    _of_axis(lambda rule, axis, xs, dims, params: rule(axis.size, axis.name, None, xs, dims, **params)),
    _with_size_and_name,
)
fancy_primitive_batchers: Final = RuleTable(
    "batch",
    _of_axis(lambda rule, axis, xs, dims, params: rule(AxisData(axis.name, axis.size), xs, dims, **params)),
    _with_data,
)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """The value with its batch dimension first; one without is repeated."""
    return move_batch_dim(x, size, bdim, 0)


def broadcast(x: Any, size: int, axis: int, mesh_axis: Any = None) -> Any:
    """The value repeated along a new dimension."""
    return move_batch_dim(x, size, None, axis)


def defvectorized(primitive: Primitive) -> None:
    """Give the batch rule of a primitive of one operand that acts on each element alone."""

    def rule(operands: Values, dims: Dims, **params: Any) -> Any:
        return primitive.bind(*operands, **params), dims[0]

    primitive_batchers[primitive] = rule


def defreducer(primitive: Primitive) -> None:
    """Give the batch rule of a reduction of one operand along its param `axes`."""

    def rule(operands: Values, dims: Dims, *, axes: Sequence[int], **params: Any) -> Any:
        (x,), (dim,) = operands, cast(tuple[int], dims)
        inside = tuple(axis + (axis >= dim) for axis in axes)
        return primitive.bind(x, axes=inside, **params), dim - sum(axis < dim for axis in inside)

    primitive_batchers[primitive] = rule


def defbroadcasting(primitive: Primitive) -> None:
    """Give the batch rule of a primitive that acts on each element of operands of one shape."""

    def rule(axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        return primitive.bind(*with_batch_first(operands, dims, axis.size), **params), 0

    batch_rule[primitive] = rule
