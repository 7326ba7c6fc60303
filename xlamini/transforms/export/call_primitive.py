"""The primitive that calls an exported module; lowering links the module into the calling program."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn

from xlamini.core import (
    AbstractMesh,
    Avals,
    AvalSharding,
    Axis,
    Dims,
    Params,
    Primitive,
    ShapedArray,
    ShapeError,
    Values,
    aval_of,
)
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sharding.partial_sums import NO_SUMS, Sums
from xlamini.core.sharding.propagation import Splits
from xlamini.core.sizes.values import evaluate
from xlamini.primitives import with_batch_first
from xlamini.runtime import NamedSharding
from xlamini.runtime.meshes.current_mesh import get_abstract_mesh
from xlamini.runtime.meshes.named_sharding import split_in_type
from xlamini.staging import chosen, inverse, merged
from xlamini.transforms.control_flow.map import map as map_loop
from xlamini.transforms.export.exported_file import check_calls
from xlamini.transforms.export.shardings import Shardings, over

Sizes = Mapping[str, Any]
"""The values of symbolic sizes, by name."""


class ExportedModule(NamedTuple):
    """The static description of an exported module, as a param of its calls.

    `artifact` is the StableHLO, whose `main` takes the platform index if there are several platforms, then the
    operands, and returns results of the types `out_avals`. `ins` and `outs` are the shardings of both, if it is for
    several devices. `vouched` says that it is known who made it.
    """

    name: str
    artifact: bytes
    platforms: tuple[str, ...]
    out_avals: tuple[ShapedArray, ...]
    on_any_platform: bool
    device_count: int
    ins: Shardings
    outs: Shardings
    vouched: bool

    def sized(self, sizes: Sizes) -> ExportedModule:
        """The module for these values of its symbolic sizes."""
        return self._replace(out_avals=tuple(sized(a, sizes) for a in self.out_avals)) if sizes else self


def _splits(avals: Avals, outs: Avals, params: Params) -> Splits:
    module, pairs = params["module"], zip(params["module"].outs, outs, strict=True)
    return Splits([split_over(module, s, params["mesh"], a.ndim) for s, a in pairs])


def _sums(avals: Avals, outs: Avals, params: Params) -> list[Sums]:
    splits = _splits(avals, outs, params).results
    return [NO_SUMS if split is None else Sums(split.unreduced, split.reduced) for split in splits]


class CallExported(Primitive):
    """A call of the module's `main`; operands and results are arrays of numbers, not of keys.

    `mesh` is the caller's if it has explicit axes, along which the types of the results then show their shardings.
    """

    name = "call_exported"
    multiple_results = True
    sharding: Sharding = Sharding(splits=_splits, chooses=True, sums=_sums, maps_each=True, chooses_memory=True)
    maps_each = True  # an operand may have partial sums: it has been resharded to the type that the module takes
    lacks: Mapping[str, str] = {
        "jvp": "a module is no jaxpr; Exported.call has the derivative that was exported with it, by custom_vjp",
    }

    def shape_rule(self, *avals: ShapedArray, module: ExportedModule, mesh: Any) -> list[ShapedArray]:
        return list(module.out_avals)

    def jvp(self, primals: Values, tangents: Values, *, module: ExportedModule, mesh: Any) -> NoReturn:
        raise TypeError(
            f"{module.name} was exported, and forward mode cannot differentiate that; differentiate, then export"
        )

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, module: ExportedModule, mesh: Any) -> Any:
        """A loop over the examples, because a module is for arrays of the shapes that it was exported for."""
        marks = [d is not None for d in dims]
        first = with_batch_first(operands, dims, axis.size, marks)

        def of_one(examples: Values) -> list[Any]:
            return self.bind(*merged(marks, examples, chosen(first, inverse(marks))), module=module, mesh=mesh)

        outs = map_loop(of_one, chosen(first, marks))
        return outs, [0] * len(outs)

    def lower(self, ctx: Any, *operands: Any, module: ExportedModule, mesh: Any) -> Sequence[Any]:
        # Imported here because MLIR's bindings cost 0.1 s.
        from xlamini.lowering.linked_modules import LinkedModule, call_module

        _check_devices(module, ctx.module)
        index = _platform_index(module, ctx.platform)
        number = index if len(module.platforms) > 1 else None
        placed = _constrained(ctx, module, operands, module.ins, ctx.avals_in)
        check = None if module.vouched else partial(check_calls, trusted=False)
        linked = LinkedModule(module.artifact, module.name, module.out_avals, number, check)
        outs = call_module(ctx, linked, placed, ctx.avals_in)
        return _constrained(ctx, module, outs, module.outs, module.out_avals)

    def shown_params(self, params: Params) -> Params:
        return {"name": params["module"].name, "platforms": params["module"].platforms}


def sized(aval: ShapedArray, sizes: Sizes) -> ShapedArray:
    """The type with values for its symbolic sizes; ShapeError for values below 0."""
    shape = tuple(evaluate(size, sizes) for size in aval.shape)
    if any(isinstance(size, int) and size < 0 for size in shape):
        raise ShapeError(f"the shape {aval.str_short()} would have negative sizes, {shape}")
    return aval.update(shape=shape)


def explicit_mesh(operands: Values) -> AbstractMesh | None:
    """The mesh in the types of the operands, or else the current one; None if it has no explicit axes."""
    splits = (aval_of(x).explicit_sharding for x in operands)
    mesh = next((split.mesh for split in splits if split is not None), get_abstract_mesh())
    return mesh if mesh.explicit_axes else None


def split_over(
    module: ExportedModule, sharding: NamedSharding | None, mesh: AbstractMesh | None, ndim: int
) -> AvalSharding | None:
    """What the type of a value shows of its exported sharding, in a caller over this mesh."""
    if mesh is None or module.device_count != mesh.size:
        return None
    return split_in_type(over(module.name, sharding, mesh, ndim), ndim)


def _check_devices(module: ExportedModule, caller: Any) -> None:
    """ValueError if the calling program runs on another number of devices than a sharded module."""
    if module.device_count == 1:
        return
    if caller.device_count != module.device_count:
        raise ValueError(
            f"{module.name} was exported for {module.device_count} devices, but is called on {caller.device_count}; "
            f"move its arguments to a mesh of {module.device_count} devices, as with "
            "device_put(x, exported.in_shardings_jax(mesh)[0]), or set one with set_mesh"
        )
    if caller.manual_axes:
        raise ValueError(
            f"{module.name} was exported for {module.device_count} devices, but is called in shard_map, whose function "
            "is for one device; call it outside"
        )


def _constrained(
    ctx: Any, module: ExportedModule, values: Values, shardings: Shardings, avals: Avals
) -> Sequence[Any]:
    """The values, constrained to the shardings that a module for several devices has for them."""
    if module.device_count == 1:
        return values
    each = zip(values, shardings, avals, strict=True)
    return [x if s is None else ctx.with_sharding(x, s, aval.ndim) for x, s, aval in each]


def _platform_index(module: ExportedModule, platform: str) -> int:
    """The index of a lowering platform in the module; ValueError if the module does not support it."""
    name = {"gpu": "cuda"}.get(platform, platform)
    if name in module.platforms:
        return module.platforms.index(name)
    if module.on_any_platform:
        return 0
    raise ValueError(
        f"{module.name} was exported for {', '.join(module.platforms)}, but is called on {name}; export it with "
        f"platforms={(*module.platforms, name)}"
    )


call_exported_p: Final = CallExported()
