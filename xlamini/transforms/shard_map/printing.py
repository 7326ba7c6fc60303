"""What `print` shows in a per-device function outside of jit: the value on each device.

The function is traced, so its values are computed for the text alone: a program of the equations that lead to a value
runs on the arguments of the call, and returns the values of all devices in a stack.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from xlamini.core import ExtendedDType, Params, PartitionSpec, Tracer, Values, active, close_over
from xlamini.core.program.hi_types import has_hi
from xlamini.core.tracing.concretization import SHOWN_BY, UnknownValue, program_of
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import expand_dims
from xlamini.primitives.collectives.varying import varying_along
from xlamini.runtime import Mesh
from xlamini.runtime.meshes.current_mesh import set_mesh
from xlamini.transforms.shard_map.manual_axes import manual_axes
from xlamini.transforms.shard_map.primitive import shard_map_p


def showing_values(
    f: Callable[..., Any], leaves: Values, in_specs: Sequence[PartitionSpec], params: Params
) -> Callable[..., Any]:
    """`f`, whose values print as those of each device; `f` itself where arguments or devices are out of reach."""
    mesh = params["mesh"]
    if state.builder is not None or not isinstance(mesh, Mesh) or mesh.is_multi_process:
        return f

    def text(tracer: Tracer) -> str | None:
        return _text(tracer, leaves, in_specs, params)

    def showing(*args: Any, **kwargs: Any) -> Any:
        state.builder.memo[SHOWN_BY] = text
        return f(*args, **kwargs)

    return showing


def _text(tracer: Tracer, leaves: Values, in_specs: Sequence[PartitionSpec], params: Params) -> str | None:
    """The values with their devices; None for a value that comes out of an effect, for keys, and for users' types."""
    if isinstance(tracer.dtype, ExtendedDType) or has_hi([tracer.aval]):
        return None
    try:
        jaxpr, consts = program_of(tracer)
    except UnknownValue:
        return None
    mesh: Mesh = params["mesh"]
    names = tuple(name for name in mesh.axis_names if name in params["manual"])
    specs = {"in_specs": (*(PartitionSpec(),) * len(consts), *in_specs), "out_specs": (PartitionSpec(names),)}
    with _outside(mesh):
        program = _stacking(close_over(jaxpr), params)
        (stack,) = shard_map_p.bind(*consts, *leaves, jaxpr=program, **specs, **params)
        values = np.asarray(stack)
    places = np.ndindex(*(mesh.shape[name] for name in names))
    return "\n".join(_said(mesh, names, at, value) for at, value in zip(places, values, strict=True))


def _stacking(jaxpr: Any, params: Params) -> Any:
    """The jaxpr of one result with a dimension in front of it, along which the devices form a stack."""

    def run(*values: Any) -> list[Any]:
        (value,) = evaluate(jaxpr, values)
        return [varying_along(expand_dims(value, (0,)), params["manual"])]

    with manual_axes(params):
        return build(run, jaxpr.in_avals, jaxpr.name)[0]


def _said(mesh: Mesh, names: tuple[Any, ...], at: tuple[int, ...], value: np.ndarray) -> str:
    places = dict(zip(names, at, strict=True))
    device = mesh.devices[tuple(places.get(name, 0) for name in mesh.axis_names)]
    return f"On {device.platform}:{device.id} at mesh coordinates ({', '.join(map(str, names))},) = {at}:\n{value}\n"


@contextmanager
def _outside(mesh: Mesh) -> Iterator[None]:
    """Leave the function that is being traced: programs run, over the whole mesh."""
    axes, state.axes = state.axes, ()
    try:
        with active(None), set_mesh(mesh):
            yield
    finally:
        state.axes = axes
