"""The public function `pmap`: a function runs on several devices, each on one entry; a shard_map over one axis.

Each argument is sharded along its mapped axis; a shard has size 1 there, and the axis is squeezed. As in shard_map
without `check_vma`, collectives are differentiated as if every value varied.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from xlamini.core import Avals, PartitionSpec, ShardingError, Values, aval_of, flatten, flatten_from_user, unflatten
from xlamini.core.pytree import structure
from xlamini.core.tracing.state import state
from xlamini.core.wrapping import wraps
from xlamini.primitives import expand_dims, squeeze
from xlamini.runtime import Device, Mesh
from xlamini.runtime.devices.platforms import devices as all_devices, local_devices, process_index
from xlamini.staging import ArgNames, avals_of, check_callable, name_of, replaced
from xlamini.staging.run.jit.cpp_function import wrapped
from xlamini.staging.run.jit.jit_options import Options
from xlamini.staging.run.jit.jitted_function import Jitted
from xlamini.staging.trace.static_args import Selected, check_apart
from xlamini.transforms.axes import axis_leaves
from xlamini.transforms.shard_map.api import ShardMapArguments, checked_mesh, on_each
from xlamini.transforms.shard_map.pmap_processes import entries_here, to_all, to_each
from xlamini.transforms.shard_map.refs import refuse_refs
from xlamini.transforms.vmap import mapped_size

if TYPE_CHECKING:
    from xlamini.staging.aot.jit_type import Wrapped

P = ParamSpec("P")
R = TypeVar("R")

_UNNAMED = "_internal_pmap_axis_name"
Dim = int | None


def pmap(
    fun: Callable[P, R],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Wrapped[P, R]:
    """A compiled function that runs `fun` on several devices, each on one entry along the mapped axis of the arguments.

    Like `vmap` it adds one dimension to the arguments; its size is the number of devices. Prefer `jit` with arrays on a
    mesh, or `shard_map`, in new programs.

    Args:
      fun: the function of one device.
      axis_name: the name of the mapped axis, for collectives such as `lax.psum`.
      in_axes: the mapped axis of each positional argument (None: replicated), as an int or a pytree that is a prefix of
        the argument. Keyword arguments are mapped over axis 0.
      out_axes: the axis along which the devices' results are stacked, likewise; None returns the first device's result.
      static_broadcasted_argnums: arguments that are passed to Python unchanged; they must be hashable.
      devices: the devices, in order; by default the first ones on `backend`, or in a group of processes all of them.
      axis_size: the number of devices; by default the size of the mapped axes.
      donate_argnums: arguments whose buffers may be reused for outputs.

    Results are sharded over the devices along the mapped axis. In a group of processes each process gives, and gets,
    the entries of its own devices, while collectives are over all; inside `jit` only its own devices take part. Raises
    ShardingError if there are too few devices, and ValueError if the sizes of the mapped axes differ or the structure
    of the axes does not fit.

    >>> pmap(lambda x: xlamini.lax.psum(x, "i"), axis_name="i")(xlamini.numpy.ones((1, 3)))
    Array([[1., 1., 1.]], dtype=float32)
    """
    check_callable("pmap", fun)
    static = Selected("static_broadcasted", fun, _numbers(static_broadcasted_argnums), None, "pmap")
    name = _UNNAMED if axis_name is None else axis_name
    over = None if devices is None else tuple(devices)
    mapping = PmapArguments(fun, name, in_axes, out_axes, static.nums, over, backend, axis_size)
    return _compiled(mapping, _numbers(donate_argnums), _ByAllProcesses(mapping, _numbers(donate_argnums)))


class PmapArguments(NamedTuple):
    """The arguments of one `pmap` call."""

    fun: Callable[..., Any]
    axis_name: Any
    in_axes: Any
    out_axes: Any
    static: tuple[int, ...]
    devices: tuple[Device, ...] | None
    backend: str | None
    axis_size: int | None


def _compiled(mapping: PmapArguments, donate: Any, instead: Any = None) -> Any:
    mapped = wraps(mapping.fun)(functools.partial(_mapped, mapping))
    static, donated = Selected("static", mapped, mapping.static, None), Selected("donate", mapped, donate, None)
    check_apart(mapped, static, donated)
    jitted = Jitted(mapped, Options(static, donated))
    jitted.shares_programs, jitted.instead = True, instead
    return wrapped(jitted)


class _ByAllProcesses:
    """The call of a mapped function in a group of processes, if its devices are not those of this process alone."""

    def __init__(self, mapping: PmapArguments, donate: Any):
        self.mapping, self.donate = mapping, donate
        self.compiled: Any = None

    def __call__(self, args: Values, kwargs: dict[str, Any]) -> Callable[..., Any] | None:
        """The function to be called; None inside another program, and if all devices are those of this process."""
        if state.builder is not None:
            return None
        every = self.mapping.devices or all_devices(self.mapping.backend)
        if len({d.process_index for d in every}) == 1:
            return None
        if self.compiled is None:
            whole = self.mapping._replace(devices=tuple(every), axis_size=None)
            self.compiled = _compiled(whole, self.donate)
        return functools.partial(self.run, tuple(every))

    def run(self, devices: tuple[Device, ...], *args: Any, **kwargs: Any) -> Any:
        mapping, rank = self.mapping, process_index(self.mapping.backend)
        mesh, call = Mesh(np.array(devices), (mapping.axis_name,)), _Call(mapping, args, kwargs)
        entries_here(call.size(len(devices)), devices, rank, call.fun_name)
        given, named = call.of(to_all(call.operands.leaves, [_spec(mapping, d) for d in call.dims], mesh))
        out = self.compiled(*given, **named)
        leaves, tree = flatten(out)
        dims = _out_dims(mapping, list(map(aval_of, leaves)), tree)
        return to_each(out, [_spec(mapping, d) for d in dims], mesh, rank)


class _Call:
    """The arguments of one call: the operands, and the dimension along which each is mapped."""

    def __init__(self, mapping: PmapArguments, args: Values, kwargs: dict[str, Any]):
        self.mapping, self.args, self.fun_name = mapping, args, name_of(mapping.fun)
        static = {n % len(args) for n in mapping.static if n < len(args)}
        self.dynamic = [i for i in range(len(args)) if i not in static]
        given = tuple(args[i] for i in self.dynamic)
        refuse_refs("pmap", (given, kwargs))
        leaves, tree = flatten_from_user((given, kwargs))
        names = ArgNames(mapping.fun, tree, self.dynamic)
        avals = avals_of(leaves, names, self.fun_name)
        self.operands = ShardMapArguments(leaves, tree, names, avals, self.fun_name)
        in_axes = _of_dynamic(mapping.in_axes, self.dynamic, len(args))
        self.dims = axis_leaves("in_axes", in_axes, structure(given), kwargs, avals, names, self.fun_name, "pmap")

    def size(self, of_all: int | None = None) -> int:
        """The number of entries here; an `axis_size` of all processes together says nothing of it."""
        asked = None if self.mapping.axis_size == of_all else self.mapping.axis_size
        return mapped_size(self.operands.avals, self.dims, self.operands.names, asked, self.fun_name, "pmap")

    def of(self, leaves: Values) -> tuple[Values, dict[str, Any]]:
        """The positional and the keyword arguments with these leaves in place of the operands."""
        given, kwargs = unflatten(self.operands.tree, leaves)
        args = list(self.args)
        for i, x in zip(self.dynamic, given, strict=True):
            args[i] = x
        return args, kwargs


def _numbers(given: int | Iterable[int]) -> Any:
    return given if isinstance(given, int) else tuple(given)


def _mapped(mapping: PmapArguments, *args: Any, **kwargs: Any) -> Any:
    call = _Call(mapping, args, kwargs)
    devices = np.array(_devices(mapping, call.size(), call.fun_name))
    mesh = checked_mesh("pmap", Mesh(devices, (mapping.axis_name,)), call.fun_name)
    params = {"mesh": mesh, "manual": frozenset(mesh.axis_names), "check_vma": False}
    inside, in_specs = _Inside(mapping, args, call.dynamic, call.dims), [_spec(mapping, d) for d in call.dims]
    return on_each(inside, call.operands, in_specs, lambda traced: inside.out_specs, params)


def _of_dynamic(in_axes: Any, dynamic: Sequence[int], count: int) -> Any:
    """The entries of `in_axes` for the arguments that are not static; entries for static ones are ignored."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) == count:
        return tuple(in_axes[i] for i in dynamic)
    return in_axes


def _devices(mapping: PmapArguments, size: int, fun_name: str) -> Sequence[Device]:
    """One device for each entry; ShardingError if there are fewer devices."""
    known = mapping.devices or local_devices(backend=mapping.backend)
    if size <= len(known):
        return known[:size]
    there = "devices has" if mapping.devices else f"{known[0].platform} has"
    raise ShardingError(
        f"pmap: {fun_name} is mapped over {size} entries, one for each device, but {there} {len(known)}; map over at "
        f"most {len(known)} with vmap inside for the rest, or use jit over a mesh, which splits any size"
    )


def _out_dims(mapping: PmapArguments, avals: Avals, tree: Any) -> Sequence[Dim]:
    return axis_leaves("out_axes", mapping.out_axes, tree, None, avals, None, name_of(mapping.fun), "pmap")


def _spec(mapping: PmapArguments, dim: Dim) -> PartitionSpec:
    return PartitionSpec() if dim is None else PartitionSpec(*[None] * dim, mapping.axis_name)


class _Inside:
    """The per-device function: it squeezes the mapped axis of inputs, expands outputs, and records their specs."""

    def __init__(self, mapping: PmapArguments, args: Values, dynamic: Sequence[int], dims: Sequence[Dim]):
        self.mapping, self.args, self.dynamic, self.dims = mapping, args, dynamic, dims
        self.out_specs: list[PartitionSpec] = []

    def __call__(self, *given: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((given, kwargs))
        entries = [x if d is None else squeeze(x, (d,)) for x, d in zip(leaves, self.dims, strict=True)]
        given, kwargs = unflatten(tree, entries)
        return self._stacked(self.mapping.fun(*replaced(self.args, self.dynamic, given), **kwargs))

    def _stacked(self, out: Any) -> Any:
        leaves, tree = flatten_from_user(out)
        dims = _out_dims(self.mapping, list(map(aval_of, leaves)), tree)
        self.out_specs = [_spec(self.mapping, d) for d in dims]
        return unflatten(tree, [x if d is None else expand_dims(x, (d,)) for x, d in zip(leaves, dims, strict=True)])
