"""A checked shard_map: each device has an error of its own; that of the whole is that of the first device with one."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Jaxpr, Params, PartitionSpec, Values
from xlamini.interpreters.check import Errors, check
from xlamini.interpreters.error_values import ErrorLoop, of_turns
from xlamini.transforms.shard_map.manual_axes import manual_axes
from xlamini.transforms.shard_map.primitive import raised


def checked_shards(
    run: Callable[..., list[Any]], errors: Errors, jaxpr: Jaxpr, operands: Values, params: Params
) -> Any:
    """The results and the error; `run` binds a shard_map of another jaxpr."""
    mesh, ins, outs = params["mesh"], params["in_specs"], params["out_specs"]
    with manual_axes(params):
        made = check(jaxpr, errors)
        count, total = len(jaxpr.outvars), len(made.jaxpr.outvars)
        stacked = raised(made.jaxpr, tuple(range(count, total)))
    axes = tuple(name for name in mesh.axis_names if name in params["manual"])
    specs = (*outs, *(PartitionSpec(axes),) * (total - count))
    found = run(stacked, ins, specs, params, operands)
    if total == count:
        return found, made.error
    each = made.error.rebuilt(found[count:])
    return found[:count], of_turns(each).within(ErrorLoop("device", tuple((name, mesh.shape[name]) for name in axes)))
