"""vmap: automatic batching, from a function of single examples to a function of a batch."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from xlamini.core import (
    Avals,
    Axis,
    Jaxpr,
    Values,
    aval_of,
    canonicalize_dtype,
    flatten,
    flatten_axes,
    flatten_from_user,
    named_axis,
    unflatten,
)
from xlamini.core.errors.api_boundary import is_api_boundary, trim
from xlamini.core.flags.config import recorder
from xlamini.core.program.hi_types import HiAval, is_hi_value
from xlamini.core.pytree import structure
from xlamini.core.sizes.expression import as_size
from xlamini.core.wrapping import wraps
from xlamini.interpreters.batch import Dims, batch, push_batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import BOOL, convert, kind_of, move_batch_dim, sum_over
from xlamini.staging import (
    ArgNames,
    Cells,
    LeafNames,
    Trace,
    avals_of,
    check_callable,
    checked_avals,
    describe_as,
    has_refs,
    name_of,
    rebuilt,
    replaced,
    retry_with_refs,
    store,
    threaded,
    values_of,
)
from xlamini.staging.run.eager.program_cache import apply, transformed, transformed_jaxpr
from xlamini.staging.trace.arguments import SomeNames, brief
from xlamini.staging.trace.ref_arguments import OpenedRefs, pure
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.tracing import kind_of_trace, trace
from xlamini.transforms.axes import axis_leaves, unbatched_aval
from xlamini.transforms.vmap_plans import VmapPlan, plan_key, plans

if TYPE_CHECKING:
    from xlamini.transforms.cond.on_cond import OnCond

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
    on_cond: OnCond = "select",
) -> Callable[P, R]:
    """A function that maps `fun` over an axis of its arguments.

    `in_axes` is the mapped axis of each positional argument (None: all examples share the argument), as an int or a
    pytree that is a prefix of the argument; `out_axes` is the position of the mapped axis in each output. Keyword
    arguments are mapped over axis 0. `axis_name` names the axis for collectives such as `lax.psum`. `spmd_axis_name` is
    one or several mesh axes: a sharding constraint in `fun` (`with_sharding_constraint`) and the specs of a `shard_map`
    shard the mapped axis along them; without it the compiler chooses. With `sum_match` an output with `out_axes=None`
    that depends on a mapped argument is the sum over the examples; without it that is an error.

    Where the predicate of a `cond` or the index of a `switch` is mapped, all branches run for all examples, and each
    result is selected. With `on_cond="error"` that is a ValueError, with "warn" a UserWarning, with the cond's line.

    Raises ValueError if the sizes of the mapped axes differ, or the structure of the axes does not fit.

    >>> xlamini.vmap(xlamini.numpy.dot)(xlamini.numpy.ones((5, 3)), xlamini.numpy.ones((5, 3))).shape
    (5,)
    """
    check_callable("vmap", fun)
    axis_size = _checked_axis_size(axis_size)
    _check_axis_name(axis_name)
    if on_cond != "select":
        from xlamini.transforms.cond.on_cond import check_on_cond  # for those who ask only

        check_on_cond(on_cond)
    along = () if spmd_axis_name is None else spmd_axis_name
    along = along if isinstance(along, tuple) else (along,)
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    mapping = VmapArguments(fun, in_axes, out_axes, axis_name, axis_size, along, bool(sum_match), on_cond)

    @is_api_boundary
    @wraps(fun)
    def vmapped(*args: Any, **kwargs: Any) -> Any:
        try:
            if has_refs(flatten_from_user((args, kwargs))[0]):
                return _with_refs_mapped(mapping, args, kwargs)
            return retry_with_refs(_mapped, _threading, mapping, args, kwargs)
        except Exception as error:  # in place of `api_boundary`, which would wrap each new function twice
            trim(error)
            raise

    text = f"{name_of(fun)} mapped over {_shown(in_axes)} of its arguments, which are batches of what it takes."
    return describe_as(vmapped, text, fun)


def _shown(in_axes: Any) -> str:
    """The axes in words; a user's class that has axes for leaves may fail to print them."""
    entries = in_axes if isinstance(in_axes, tuple) else (in_axes,)
    plain = all(entry is None or isinstance(entry, int) for entry in entries)
    return f"the axes {in_axes}" if plain else "axes"


class VmapArguments(NamedTuple):
    """The arguments of one `vmap` call."""

    fun: Callable[..., Any]
    in_axes: Any
    out_axes: Any
    axis_name: Any
    axis_size: int | None
    along: tuple[Any, ...]
    sum_match: Any
    on_cond: OnCond = "select"


def _with_refs_mapped(mapping: VmapArguments, args: Values, kwargs: dict[str, Any]) -> Any:
    """The call, with the refs among the arguments mapped as `in_axes` says: each example has a ref of its part."""
    refs = OpenedRefs(f"{name_of(mapping.fun)} for vmap", (tuple(args), kwargs))
    args, kwargs = refs.tree
    leaves, in_tree = flatten(refs.tree)
    avals = avals_of(leaves, names := ArgNames(mapping.fun, in_tree), name_of(mapping.fun))
    dims = axis_leaves("in_axes", mapping.in_axes, structure(args), kwargs, avals, names, name_of(mapping.fun))
    of_refs = refs.of_refs(dims)
    of_values = mapping._replace(
        fun=pure(mapping.fun), out_axes=(mapping.out_axes, of_refs), sum_match=(mapping.sum_match, False)
    )
    with refs.passed():
        out, values = retry_with_refs(_of_values, _threading, of_values, args, kwargs)
    refs.store(values)
    return out


def _of_values(mapping: VmapArguments, args: Values, kwargs: dict[str, Any]) -> Any:
    """The outputs and the final values of refs, among which a mapped one without an axis has an error of its own."""
    try:
        return _mapped(mapping, args, kwargs)
    except MappedOutputError as error:
        raise ValueError(
            f"{error}. So is a ref, where {name_of(mapping.fun)} is performing a set/swap operation with vmapped value "
            "on an unbatched array reference. Move the array reference to be an argument to the vmapped function, with "
            "an axis in in_axes"
        ) from None


def _mapped(mapping: VmapArguments, args: Values, kwargs: dict[str, Any]) -> Any:
    fun, fun_name = mapping.fun, name_of(mapping.fun)
    leaves, in_tree = flatten_from_user((args, kwargs))
    if not all(map(_is_operand, leaves)):
        return _without_objects(mapping, args, kwargs)
    names = ArgNames(fun, in_tree)
    avals = checked_avals(leaves, names, fun_name, ", or close over it")
    key = plan_key(mapping, in_tree, avals)
    if key is not None and (plan := plans.get(key)) is not None:
        return rebuilt(plan.out_tree, apply(plan.jaxpr, leaves))
    dims = axis_leaves("in_axes", mapping.in_axes, structure(args), kwargs, avals, names, fun_name)
    size = mapped_size(avals, dims, names, mapping.axis_size, fun_name)
    axis = Axis(size, mapping.axis_name, along=mapping.along, placed=_axis_sharding(avals, dims))
    mapped = [i for i, dim in enumerate(dims) if dim is not None]
    traced = _trace_example(fun, in_tree, leaves, mapped, avals, dims, names, axis)
    options = _options(traced, axis, [dims[i] for i in mapped], mapping)
    out = _run(traced, options, [leaves[i] for i in mapped], fun_name)
    if key is not None and not traced.captured:
        jaxpr = transformed_jaxpr(traced.jaxpr, _batch, options, tuple(avals), traced.jaxpr.name)  # made by `_run`
        plans.keep(key, VmapPlan(jaxpr, traced.out_tree))
    return out


def _is_operand(x: Any) -> bool:
    if isinstance(x, type | ShapeDtypeStruct):  # numpy's scalar types have dtypes too
        return False
    is_array = hasattr(x, "dtype") and hasattr(x, "shape")
    return is_array or isinstance(x, bool | int | float | complex) or is_hi_value(x)


def _without_objects(mapping: VmapArguments, args: Values, kwargs: dict[str, Any]) -> Any:
    """The call with the leaves that are no arrays fixed: functions, texts, objects, which nobody maps, and types.

    Of a type that is mapped the function gets that of one example.
    """
    leaves, tree = flatten_from_user((args, kwargs))
    names = ArgNames(mapping.fun, tree)
    dims = flatten_axes("vmap", mapping.in_axes, structure(args)) + [0] * structure(kwargs).num_leaves
    for i, (x, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is not None and isinstance(x, ShapeDtypeStruct):
            mapping = mapping._replace(axis_size=x.shape[dim] if mapping.axis_size is None else mapping.axis_size)
            leaves[i] = x.update(shape=x.shape[:dim] + x.shape[dim % x.ndim + 1 :])
        elif dim is not None and not _is_operand(x):
            raise TypeError(
                f"argument {names[i]!r} of {name_of(mapping.fun)} is {brief(x)} of type {type(x).__name__}, not an "
                "array or a number; pass an array, give it the axis None, or close over it"
            )
    arrays = [i for i, x in enumerate(leaves) if _is_operand(x)]

    def of_arrays(*given: Any) -> Any:
        args, kwargs = unflatten(tree, replaced(leaves, arrays, given))
        return mapping.fun(*args, **kwargs)

    of_arrays.__name__ = name_of(mapping.fun)
    pure = mapping._replace(fun=of_arrays, in_axes=tuple(dims[i] for i in arrays))
    return _mapped(pure, tuple(leaves[i] for i in arrays), {})


def _axis_sharding(avals: Avals, dims: Dims) -> tuple[Any, tuple[Any, ...]] | None:
    """The mesh, and its axes along which an argument's type shards the mapped axis; None if none does."""
    for aval, dim in zip(avals, dims, strict=True):
        if dim is not None and aval.explicit_sharding is not None and aval.explicit_sharding.entries[dim]:
            return aval.explicit_sharding.mesh, aval.explicit_sharding.entries[dim]
    return None


def _threading(cells: Cells, mapping: VmapArguments, args: Values, kwargs: dict[str, Any]) -> Any:
    """The call with the refs that the function reads or writes threaded through it as unmapped values."""
    axes = mapping.in_axes if isinstance(mapping.in_axes, tuple) else (mapping.in_axes,) * len(args)
    outs = {"out_axes": (mapping.out_axes, None), "sum_match": (mapping.sum_match, False)}
    pure = mapping._replace(fun=threaded(mapping.fun, cells), in_axes=(None, *axes), **outs)
    out, values = _of_values(pure, (values_of(cells), *args), kwargs)
    store(cells, values)
    return out


class MappedOutputError(ValueError):
    """An output with `out_axes=None` depends on a mapped argument: the words, or its number and its batch dimension."""


def _checked_axis_size(axis_size: Any) -> int | None:
    if axis_size is None:
        return None
    size: Any = int(axis_size) if isinstance(axis_size, float) and axis_size.is_integer() else axis_size
    if not hasattr(size, "__index__") or as_size(size) < 0:
        raise TypeError(f"vmap: axis_size must be an int, 0 or more, got {axis_size!r}")
    return as_size(size)


def _check_axis_name(axis_name: Any) -> None:
    try:
        hash(axis_name)
    except TypeError:
        raise TypeError(f"vmap: axis_name must be hashable, such as 'batch', got {axis_name!r}") from None


def _trace_example(
    fun: Callable[..., Any],
    in_tree: Any,
    leaves: Values,
    mapped: Sequence[int],
    avals: Avals,
    dims: Dims,
    names: Sequence[str],
    axis: Axis,
) -> Trace:
    """Trace the function of the mapped leaves, for one example; what the examples share it gets as it is, as in JAX.

    So Python control flow may read a shared number, and a class may keep it among its metadata.
    """

    def of_mapped(*tracers: Any) -> Any:
        args, kwargs = unflatten(in_tree, replaced(leaves, mapped, tracers))
        return fun(*args, **kwargs)

    single = [unbatched_aval(avals[i], dims[i], axis.size) for i in mapped]
    tree = flatten((tuple(mapped), {}))[1]
    with named_axis(axis):
        shown = SomeNames(names, mapped)
        return trace(of_mapped, tree, single, None, shown, name_of(fun), reuse_equal=True, kind=kind_of_trace())


def _options(traced: Trace, axis: Axis, dims: Dims, mapping: VmapArguments) -> tuple[Axis, Dims, Dims, Sequence[bool]]:
    """The options of `_batch`."""
    in_dims, name = (*(None,) * len(traced.captured), *dims), name_of(mapping.fun)
    out_dims = axis_leaves("out_axes", mapping.out_axes, traced.out_tree, None, traced.jaxpr.out_avals, None, name)
    sums = tuple(flatten_axes("vmap", mapping.sum_match, traced.out_tree))
    if mapping.on_cond != "select":
        from xlamini.transforms.cond.on_cond import report_conds  # for those who ask only

        report_conds(traced.jaxpr, axis, in_dims, mapping.on_cond)
    return axis, in_dims, tuple(out_dims), sums


def _run(traced: Trace, options: tuple, leaves: Values, name: str) -> Any:
    try:
        outs = transformed(_batch, traced.jaxpr, options, [*traced.captured, *leaves])
    except MappedOutputError as error:
        number, dim = error.args
        raise MappedOutputError(
            f"at vmap {LeafNames('out_axes', traced.out_tree)[number]}, got axis spec None but output was batched on "
            f"axis {dim}: this output of {name} depends on a mapped argument; give it an axis"
        ) from None
    return rebuilt(traced.out_tree, outs)


def _batch(
    jaxpr: Jaxpr, axis: Axis, in_dims: Dims, out_dims: Dims, sums: Sequence[bool], operands: Values
) -> list[Any]:
    """The outputs of the batched `jaxpr`, with their batch dimensions moved to `out_dims`, or summed."""
    outs, dims = _pushed(jaxpr, axis, operands, in_dims)
    return [
        _summed(x, d) if summed and out_dim is None and d is not None else _move(x, axis, d, out_dim, number)
        for number, (x, d, out_dim, summed) in enumerate(zip(outs, dims, out_dims, sums, strict=True))
    ]


def _pushed(jaxpr: Jaxpr, axis: Axis, operands: Values, dims: Dims) -> tuple[list[Any], Sequence[int | None]]:
    """The batched outputs and their dimensions; for a recorder by a rewrite of its own, which so becomes a stage."""
    if recorder.value is None:
        return push_batch(jaxpr, axis, operands, dims)
    batched, out_dims = batch(jaxpr, axis, dims)
    return evaluate(batched, operands), out_dims


def _summed(x: Any, dim: int) -> Any:
    """The sum over the batch dimension; of booleans, the number of those that are true."""
    return sum_over(convert(x, canonicalize_dtype(int)) if kind_of(aval_of(x).dtype) is BOOL else x, [dim])


def _move(x: Any, axis: Axis, dim: int | None, out_dim: int | None, number: int) -> Any:
    if out_dim is None:
        if dim is None:
            return x
        raise MappedOutputError(number, dim)
    return move_batch_dim(x, axis.size, dim, out_dim)


def mapped_size(
    avals: Sequence[Any],
    dims: Dims,
    names: Sequence[str],
    axis_size: int | None,
    fun_name: str,
    caller: str = "vmap",
) -> int:
    """The size of the mapped axes; ValueError if they differ."""
    first: dict[int, int | None] = {}
    for i, (aval, dim) in enumerate(zip(avals, dims, strict=True)):
        if dim is not None and type(aval) is not HiAval:  # whose spec tells no size
            first.setdefault(aval.shape[dim], i)
    if axis_size is not None:
        first.setdefault(axis_size, None)
    if len(first) == 1:
        return next(iter(first))
    if not first:
        raise ValueError(
            f"{caller}: nothing is mapped: in_axes is None for every argument of {fun_name}; map one, or pass axis_size"
        )

    def where(i: int | None) -> str:
        if i is None:
            return "axis_size"
        return f"axis {dims[i]} of {names[i]} ({avals[i].str_short(short_dtypes=False)})"

    sizes = "; ".join(f"{where(i)} has size {size}" for size, i in first.items())
    raise ValueError(f"{caller} got inconsistent sizes for array axes to be mapped, of {fun_name}'s arguments: {sizes}")
