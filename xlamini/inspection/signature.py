"""The arguments and results of an inspected function: names, types, bytes, donation, shardings."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import ShapedArray, example_of
from xlamini.core.pytree import keystr, tree_flatten_with_path
from xlamini.runtime.meshes.program_placement import MeshPlacement
from xlamini.staging.aot.stages import Lowered


def arguments_of(lowered: Lowered) -> list[dict[str, Any]]:
    """The arguments as the schema has them."""
    call = lowered._call
    placed = _shardings(lowered, len(call.trace.captured) + len(call.avals))[len(call.trace.captured) :]
    rows = zip(call.trace.names, call.avals, call.donated, placed, strict=True)
    return [{**_typed(name, aval, where), "donated": donated} for name, aval, donated, where in rows]


def results_of(lowered: Lowered) -> list[dict[str, Any]]:
    """The results as the schema has them; each is named by its path in the output."""
    avals = lowered._call.trace.jaxpr.out_avals
    names = [keystr(path) or "result" for path, _ in tree_flatten_with_path(example_of(lowered.out_tree))[0]]
    return [_typed(names[i], aval, None) for i, aval in enumerate(avals)]


def _typed(name: str, aval: ShapedArray, where: Any) -> dict[str, Any]:
    spec = getattr(where, "spec", None) if where is not None else aval.explicit_sharding and aval.explicit_sharding.spec
    return {
        "name": name,
        "type": aval.str_short(),
        "bytes": aval.nbytes,
        "sharding": None if spec is None else str(spec),
    }


def _shardings(lowered: Lowered, count: int) -> Sequence[Any]:
    """The sharding of each input; None for each of a program on one device."""
    program = lowered._program
    if not isinstance(program.device, MeshPlacement):
        return [None] * count
    used = iter(program.device.of_inputs(sum(program.used_inputs)))
    return [next(used) if is_used else None for is_used in program.used_inputs]
