"""The primitive that calls an exported module; lowering links the module into the calling program."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from xlamini.core import Avals, Axis, Dims, Params, Primitive, ShapedArray, Values


class ExportedModule(NamedTuple):
    """The static description of an exported module, as a param of its calls.

    `artifact` is the StableHLO, whose `main` takes the platform index if there are several platforms, then the
    operands, and returns results of the types `out_avals`.
    """

    name: str
    artifact: bytes
    platforms: tuple[str, ...]
    out_avals: tuple[ShapedArray, ...]
    on_any_platform: bool


class CallExported(Primitive):
    """A call of the module's `main`; operands and results are arrays of numbers, not of keys."""

    name = "call_exported"
    multiple_results = True
    lacks: Mapping[str, str] = {
        "jvp": "a module is no jaxpr; Exported.call has the derivative that was exported with it, by custom_vjp",
        "batch": "a module is for arrays of one shape",
    }

    def shape_rule(self, *avals: ShapedArray, module: ExportedModule) -> list[ShapedArray]:
        return list(module.out_avals)

    def memory_space(self, avals: Avals, params: Params) -> None:
        return None

    def jvp(self, primals: Values, tangents: Values, *, module: ExportedModule) -> NoReturn:
        raise TypeError(
            f"{module.name} was exported, and forward mode cannot differentiate that; differentiate, then export"
        )

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, module: ExportedModule
    ) -> NoReturn:
        raise NotImplementedError(
            f"vmap: {module.name} was exported for arrays of one shape; export vmap of it, or call it in lax.map"
        )

    def lower(self, ctx: Any, *operands: Any, module: ExportedModule) -> list[Any]:
        # Imported here because MLIR's bindings cost 0.1 s.
        from xlamini.lowering.linked_modules import call_module

        index = _platform_index(module, ctx.platform)
        number = index if len(module.platforms) > 1 else None
        return call_module(ctx, module.artifact, module.name, operands, module.out_avals, number)

    def shown_params(self, params: Params) -> Params:
        return {"name": params["module"].name, "platforms": params["module"].platforms}


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


call_exported_p = CallExported()
