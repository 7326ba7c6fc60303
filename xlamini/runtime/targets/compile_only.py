"""Ahead-of-time compilation for compile-only devices: the program can be inspected and serialized, but not run."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from jaxlib import _jax

from xlamini.core import PlatformError, ShapedArray
from xlamini.core.errors import DeviceNotHereError
from xlamini.runtime.devices.ffi_targets import explained
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.execution.executable import CompiledModule, CompilerOptions, compile_options
from xlamini.runtime.hlo.translation import optimized_cost
from xlamini.runtime.meshes.program_placement import DeviceOrMesh, devices_of
from xlamini.runtime.sharding import DeviceList
from xlamini.runtime.targets.topology import Target, target_of


def compile_for_target(
    module: Any,
    *,
    name: str,
    calls_python: bool,
    place: DeviceOrMesh,
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    donated: Iterable[int],
    compiler_options: CompilerOptions | None,
    effectful: bool,
) -> CompileOnlyModule:
    """Compile a StableHLO module for the compile-only devices of a target; the arguments are as in `compile_module`.

    Raises:
      PlatformError: it calls Python functions, which another machine does not have.
      FfiTargetError: it calls an FFI target that is not registered.
      JaxRuntimeError: XLA cannot compile it, or does not know an option.
    """
    if calls_python:
        raise PlatformError(
            f"{name} calls Python functions while it runs (pure_callback, io_callback, debug.print, …), which a device "
            "of another machine cannot; leave these calls out of what is compiled for a target"
        )
    try:
        made = compiled_ahead(module, devices_of(place), compiler_options or {})
    except _jax.JaxRuntimeError as error:
        raise explained(error, place.platform) from None
    compiled = CompileOnlyModule(made, place, in_avals, out_avals, frozenset(donated), name)
    compiled.effectful = effectful
    return compiled


def compiled_ahead(module: Any, devices: Sequence[Device], options: CompilerOptions) -> Any:
    """Compile a StableHLO module with XLA's compiler for the devices of a target.

    On a GPU XLA tries several tilings of a matrix product. Without one it takes the first, which does not fit some
    products over a middle dimension; then matrix products are left to libraries.
    """
    compiler, where = devices[0].client, DeviceList(devices)
    try:
        return compiler.compile(module, where, compile_options(devices, options))
    except _jax.JaxRuntimeError as error:
        if _NO_TILING not in str(error):
            raise
    return compiler.compile(module, where, compile_options(devices, {**_PRODUCTS_BY_LIBRARIES, **options}))


_NO_TILING, _PRODUCTS_BY_LIBRARIES = "Couldn't find output tile sizes", {"xla_gpu_enable_triton_gemm": False}


class CompileOnlyModule(CompiledModule):
    """A program compiled for compile-only `devices` of a `target`; `place`, the first step of a call, raises."""

    __slots__ = ("devices", "name", "target")
    devices: tuple[Device, ...]
    name: str

    def __init__(
        self,
        made: Any,
        place: DeviceOrMesh,
        in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray],
        donated: frozenset[int],
        name: str,
    ):
        super().__init__(made, place, in_avals, out_avals, donated)
        self.name, self.devices = name, devices_of(place)
        self.target: Target | None = target_of(self.devices[0])

    def place(self, values: Sequence[Any]) -> NoReturn:
        """Raises DeviceNotHereError, because a compile-only device holds no arrays."""
        where = "a device" if self.target is None else f"{self.target.name} ({self.target.device_kind})"
        raise DeviceNotHereError(
            f"{self.name} was compiled for {where}, which is not here, so it cannot be called; write serialize() to a "
            "file and xlamini.load it on a machine that has the device, or compile() without a target to run it here"
        )

    def call(self, arrays: Sequence[Any], committed: bool = False) -> NoReturn:
        """Raises DeviceNotHereError, as `place` does."""
        self.place(arrays)

    def cost_analysis(self) -> dict[str, float]:
        """The cost estimates of the platform's compiler; XLA's generic HLO analysis where it has none."""
        try:
            return self.loaded.cost_analysis()
        except _jax.JaxRuntimeError:
            return optimized_cost(self.loaded)
