"""The primitive that calls an exported module, which becomes part of the program that calls it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from xlamini.core.avals import ShapedArray
from xlamini.core.primitive import Axis, Primitive


class ExportedModule(NamedTuple):
    """What a call of an exported function needs of it.

    `artifact` is the StableHLO, whose `main` takes the operands, after the number of the platform if there are several,
    and gives results of the types `out_avals`.
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

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, module: ExportedModule) -> NoReturn:
        raise TypeError(
            f"{module.name} was exported, and forward mode cannot differentiate that; differentiate, then export"
        )

    def batch(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], *, module: ExportedModule
    ) -> NoReturn:
        raise NotImplementedError(
            f"vmap: {module.name} was exported for arrays of one shape; export vmap of it, or call it in lax.map"
        )

    def lower(self, ctx: Any, *operands: Any, module: ExportedModule) -> list[Any]:
        # Imported here because MLIR's bindings cost 0.1 s.
        from xlamini.lowering.linked_modules import call_module

        found = _number_of(module, ctx.platform)
        number = found if len(module.platforms) > 1 else None
        return call_module(ctx, module.artifact, module.name, operands, module.out_avals, number)

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"name": params["module"].name, "platforms": params["module"].platforms}


def _number_of(module: ExportedModule, platform: str) -> int:
    """The number of the platform that a program is lowered for; ValueError for one that the module is not for."""
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
