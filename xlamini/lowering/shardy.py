"""Shardings in Shardy, the MLIR dialect of XLA's partitioner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core import AbstractMesh, AxisType, PartitionSpec, memoised
from xlamini.core.errors import ShardingError
from xlamini.lowering.mlir import Interned
from xlamini.runtime.meshes.mesh import with_axes


class Meshes:
    """The meshes of a module: `sdy.mesh @mesh = <["x"=2, "y"=4]>`, each emitted at its first use.

    The module's own `mesh` may be an AbstractMesh: an exported module is for any devices, which have only numbers.
    """

    def __init__(self, module: ir.Module, mlir: Interned, mesh: Any):
        self._module, self._mlir, self._mesh = module, mlir, mesh
        self.devices: list[Any] = _devices_of(mesh)
        self.symbols: dict[Any, str] = {}
        """The symbol of each mesh, in order of emission."""
        self._defined: dict[ir.Attribute, str] = {}
        self._first: str | None = None

    def sharding(self, sharding: Any, ndim: int, is_open: bool = False) -> ir.Attribute:
        """The attribute `#sdy.sharding<@mesh, [{"x"}, {}]>` for an array of rank `ndim`.

        If it `is_open`, as `[{"x", ?}, {?}]`, the compiler may split dimensions further. The sharding of a type, over
        an AbstractMesh with Explicit and Auto axes, is open too, but not along explicit axes.
        """
        mesh = sharding.mesh
        if isinstance(mesh, AbstractMesh) and mesh.auto_axes and mesh.explicit_axes:
            return self._of_type(sharding, ndim)
        entries = [_entry(p, is_open) for p in (*sharding.spec, *[None] * (ndim - len(sharding.spec)))]
        terms = _listed("unreduced", sharding.spec.unreduced)
        return self._mlir.parse(f"#sdy.sharding<@{self._symbol(mesh)}, [{', '.join(entries)}]{terms}>")

    def _of_type(self, sharding: Any, ndim: int) -> ir.Attribute:
        names = sharding.spec.names_of(ndim)
        used = sharding.spec.unreduced.union(*names)
        entries = ", ".join(_entry(axes, True) for axes in names)
        others = _listed("replicated", [n for n in sharding.mesh.explicit_axes if n not in used])
        terms = _listed("unreduced", sharding.spec.unreduced)
        return self._mlir.parse(f"#sdy.sharding<@{self._symbol(sharding.mesh)}, [{entries}]{others}{terms}>")

    def whole(self, ndim: int) -> ir.Attribute:
        """The sharding of a replicated array."""
        return self._mlir.parse(f"#sdy.sharding<@{self._symbol(self._mesh)}, [{', '.join(['{}'] * ndim)}]>")

    def on_first(self, count: int) -> ir.Attribute:
        """The shardings of an operation's results if only the first device computes it."""
        if self._first is None:
            self._first = self._define("first_device", "<[], device_ids=[0]>")
        return self._mlir.parse(f"#sdy.sharding_per_value<[{', '.join([f'<@{self._first}, []>'] * count)}]>")

    def numbers(self, mesh: Any) -> np.ndarray:
        """The program's device numbers of a mesh's devices, in the mesh's order."""
        numbers = {device: number for number, device in enumerate(self.devices)}
        devices = _devices_of(self._with_devices(mesh))
        _check_devices([device for device in devices if device not in numbers], len(numbers))
        return np.array([numbers[device] for device in devices])

    def linked(self, mesh: ir.Attribute) -> tuple[str, bool]:
        """The symbol for a mesh of a module that is linked into this one, and whether the module has that mesh."""
        known = mesh in self._defined
        return self._defined.setdefault(mesh, self._unused()), known

    def _unused(self) -> str:
        count = len(self._defined) - (self._first is not None)
        return f"mesh_{count}" if count else "mesh"

    def _symbol(self, mesh: Any) -> str:
        mesh = _untyped(self._with_devices(mesh))
        known = self.symbols.get(mesh)
        if known is None:
            known = self.symbols[mesh] = self._write(mesh)
        return known

    def _with_devices(self, axes: Any) -> Any:
        """The mesh with these axes: one of the module, or else the program's devices in a grid of their sizes."""
        if not isinstance(axes, AbstractMesh):
            return axes
        known = (self._mesh, *self.symbols)
        fitting = (mesh for mesh in known if mesh is not None and mesh.shape_tuple == axes.shape_tuple)
        return next(fitting, None) or with_axes(self._mesh, axes)

    def _write(self, mesh: Any) -> str:
        axes = ", ".join(f'"{name}"={size}' for name, size in mesh.shape_tuple)
        numbers = self.numbers(mesh).tolist()
        order = "" if numbers == sorted(numbers) else f", device_ids={numbers}"
        return self._define(self._unused(), f"<[{axes}]{order}>")

    def _define(self, symbol: str, text: str) -> str:
        """The symbol of a mesh, which is emitted unless the module has it, linked from another, under another name."""
        mesh = self._mlir.parse(f"#sdy.mesh{text}")
        known = self._defined.setdefault(mesh, symbol)
        if known == symbol:
            ir.Operation.create(
                "sdy.mesh",
                attributes={"sym_name": ir.StringAttr.get(symbol, self._mlir.context), "mesh": mesh},
                loc=self._mlir.unknown,
                ip=ir.InsertionPoint.at_block_begin(self._module.body),
            )
        return known


def _devices_of(mesh: Any) -> list[Any]:
    """The devices of a mesh, in its order; those of an AbstractMesh are numbers."""
    if mesh is None:
        return []
    return list(range(mesh.size)) if isinstance(mesh, AbstractMesh) else list(mesh.devices.flat)


@memoised("sharding: meshes without axis types", 256)
def _untyped(mesh: Any) -> Any:
    """A mesh with all axes of type Auto, because Shardy has no axis types."""
    return mesh.update_axis_types(dict.fromkeys(mesh.axis_names, AxisType.Auto))


def _listed(what: str, axes: Iterable[Any]) -> str:
    """A further field of a sharding attribute: `, unreduced={"x"}`; nothing if there are no axes."""
    names = ", ".join(sorted(f'"{name}"' for name in axes))
    return f", {what}={{{names}}}" if names else ""


def _entry(partition: Any, is_open: bool) -> str:
    """The entry of a dimension: `{"x", "y"}`; `{?}` for a dimension that the compiler may split."""
    if partition is PartitionSpec.UNCONSTRAINED:
        return "{?}"
    names = () if partition is None else partition if isinstance(partition, tuple) else (partition,)
    further = ["?"] if is_open else []
    return "{" + ", ".join([f'"{name}"' for name in names] + further) + "}"


def _check_devices(foreign: Sequence[Any], count: int) -> None:
    if foreign:
        raise ShardingError(
            f"a program runs on {count} devices, and {foreign[0]} of a mesh named in it is none of them: a value stays "
            "on the devices of its program; move it by device_put outside of the jitted function"
        )
