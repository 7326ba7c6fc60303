"""The public function `pmap`: a function runs on several devices, each on one entry; a shard_map over one axis.

Each argument is sharded along its mapped axis; a shard has size 1 there, and the axis is squeezed. As in shard_map
without `check_vma`, collectives are differentiated as if every value varied.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from xlamini.core import PartitionSpec, ShardingError, Values, aval_of, flatten, flatten_from_user, unflatten
from xlamini.core.pytree import structure
from xlamini.primitives import expand_dims, squeeze
from xlamini.runtime import Device, Mesh
from xlamini.runtime.devices.platforms import local_devices
from xlamini.staging import ArgNames, avals_of, check_callable, name_of, replaced
from xlamini.staging.run.structural_jit import jit_anew
from xlamini.staging.trace.static_args import Selected
from xlamini.transforms.axes import axis_leaves
from xlamini.transforms.shard_map.api import Operands, checked_mesh, on_each
from xlamini.transforms.shard_map.refs import refuse_refs
from xlamini.transforms.vmap import mapped_size

if TYPE_CHECKING:
    from xlamini.staging.aot.stages import Wrapped

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
      devices: the devices, in order; by default the first ones of this process on `backend`.
      axis_size: the number of devices; by default the size of the mapped axes.
      donate_argnums: arguments whose buffers may be reused for outputs.

    Results are sharded over the devices along the mapped axis. Raises ShardingError if there are too few devices, and
    ValueError if the sizes of the mapped axes differ or the structure of the axes does not fit.

    >>> pmap(lambda x: xlamini.lax.psum(x, "i"), axis_name="i")(xlamini.numpy.ones((1, 3)))
    Array([[1., 1., 1.]], dtype=float32)
    """
    check_callable("pmap", fun)
    static = Selected("static_broadcasted", fun, _numbers(static_broadcasted_argnums), None, "pmap")
    name = _UNNAMED if axis_name is None else axis_name
    over = None if devices is None else tuple(devices)
    mapping = Mapping(fun, name, in_axes, out_axes, static.nums, over, backend, axis_size)
    mapped = functools.wraps(fun)(functools.partial(_mapped, mapping))
    return jit_anew(mapped, static.nums, _numbers(donate_argnums))


class Mapping(NamedTuple):
    """The arguments of one `pmap` call."""

    fun: Callable[..., Any]
    axis_name: Any
    in_axes: Any
    out_axes: Any
    static: tuple[int, ...]
    devices: tuple[Device, ...] | None
    backend: str | None
    axis_size: int | None


def _numbers(given: int | Iterable[int]) -> Any:
    return given if isinstance(given, int) else tuple(given)


def _mapped(mapping: Mapping, *args: Any, **kwargs: Any) -> Any:
    fun_name, static = name_of(mapping.fun), {n % len(args) for n in mapping.static if n < len(args)}
    dynamic = [i for i in range(len(args)) if i not in static]
    given = tuple(args[i] for i in dynamic)
    refuse_refs("pmap", (given, kwargs))
    leaves, tree = flatten_from_user((given, kwargs))
    names = ArgNames(mapping.fun, tree, dynamic)
    avals = avals_of(leaves, names, fun_name)
    in_axes = _of_dynamic(mapping.in_axes, dynamic, len(args))
    dims = axis_leaves("in_axes", in_axes, structure(given), kwargs, avals, names, fun_name, "pmap")
    size = mapped_size(avals, dims, names, mapping.axis_size, fun_name, "pmap")
    devices = np.array(_devices(mapping, size, fun_name))
    mesh = checked_mesh("pmap", Mesh(devices, (mapping.axis_name,)), fun_name)
    params = {"mesh": mesh, "manual": frozenset(mesh.axis_names), "check_vma": False}
    inside = _Inside(mapping, args, dynamic, dims)
    operands = Operands(leaves, tree, names, avals, fun_name)
    return on_each(inside, operands, [_spec(mapping, d) for d in dims], lambda traced: inside.out_specs, params)


def _of_dynamic(in_axes: Any, dynamic: Sequence[int], count: int) -> Any:
    """The entries of `in_axes` for the arguments that are not static; entries for static ones are ignored."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) == count:
        return tuple(in_axes[i] for i in dynamic)
    return in_axes


def _devices(mapping: Mapping, size: int, fun_name: str) -> Sequence[Device]:
    """One device for each entry; ShardingError if there are fewer devices."""
    known = mapping.devices or local_devices(backend=mapping.backend)
    if size <= len(known):
        return known[:size]
    there = "devices has" if mapping.devices else f"{known[0].platform} has"
    raise ShardingError(
        f"pmap: {fun_name} is mapped over {size} entries, one for each device, but {there} {len(known)}; map over at "
        f"most {len(known)} with vmap inside for the rest, or use jit over a mesh, which splits any size"
    )


def _spec(mapping: Mapping, dim: Dim) -> PartitionSpec:
    return PartitionSpec() if dim is None else PartitionSpec(*[None] * dim, mapping.axis_name)


class _Inside:
    """The per-device function: it squeezes the mapped axis of inputs, expands outputs, and records their specs."""

    def __init__(self, mapping: Mapping, args: Values, dynamic: Sequence[int], dims: Sequence[Dim]):
        self.mapping, self.args, self.dynamic, self.dims = mapping, args, dynamic, dims
        self.out_specs: list[PartitionSpec] = []

    def __call__(self, *given: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((given, kwargs))
        entries = [x if d is None else squeeze(x, (d,)) for x, d in zip(leaves, self.dims, strict=True)]
        given, kwargs = unflatten(tree, entries)
        return self._stacked(self.mapping.fun(*replaced(self.args, self.dynamic, given), **kwargs))

    def _stacked(self, out: Any) -> Any:
        fun_name = name_of(self.mapping.fun)
        leaves, tree = flatten_from_user(out)
        avals = list(map(aval_of, leaves))
        dims = axis_leaves("out_axes", self.mapping.out_axes, tree, None, avals, None, fun_name, "pmap")
        self.out_specs = [_spec(self.mapping, d) for d in dims]
        return unflatten(tree, [x if d is None else expand_dims(x, (d,)) for x, d in zip(leaves, dims, strict=True)])
