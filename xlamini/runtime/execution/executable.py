"""Executables: a StableHLO module, compiled and loaded, as a callable from Arrays to Arrays."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _jax

from xlamini.core import ShapedArray
from xlamini.core.flags.compile_flags import LEVELS
from xlamini.core.program.avals import space_of
from xlamini.core.program.call_graph import Places
from xlamini.core.program.memory_space import is_elsewhere
from xlamini.runtime.arrays.layout import Order, orders_of, relaid, use
from xlamini.runtime.arrays.to_device import ArrayImpl, device_put_value
from xlamini.runtime.devices import nvidia
from xlamini.runtime.devices.ffi_targets import explained, register_kernels
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.execution.collective_callbacks import check_not_nested
from xlamini.runtime.execution.effects import run_with_callbacks
from xlamini.runtime.execution.partitioner import PartitionedCall, raise_failure
from xlamini.runtime.execution.program_limit import crowd
from xlamini.runtime.execution.serial_execution import exchanges_data, run_alone
from xlamini.runtime.fork import bar, process
from xlamini.runtime.meshes.named_sharding import without_trailing_none
from xlamini.runtime.meshes.program_placement import (
    DeviceOrMesh,
    MeshPlacement,
    devices_of,
    input_shardings,
    output_shardings,
)
from xlamini.runtime.sharding import DeviceList, on_device
from xlamini.runtime.versions import BUILD_OPTIONS, array_result_handler

CompilerOptions = Mapping[str, bool | int | float | str]
"""XLA's options by name, which `jit` and `Lowered.compile` take as `compiler_options`.

>>> options: CompilerOptions = {"xla_cpu_enable_fast_math": False}
>>> xlamini.jit(lambda x: x + 1, compiler_options=options)(1.0)
Array(2., dtype=float32, weak_type=True)
"""


def compile_module(
    module: Any,
    *,
    place: DeviceOrMesh,
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    donated: Iterable[int] = (),
    compiler_options: CompilerOptions | None = None,
    host_callbacks: Sequence[Callable[..., Any]] = (),
    partitioners: Sequence[PartitionedCall] = (),
    ordered: bool = False,
    effectful: bool = False,
) -> Executable:
    """Compile a StableHLO module for a device, or for the devices of a mesh, and load it there.

    Args:
      module: an `ir.Module`, or, without callbacks, its text or bytecode; its `main` takes and returns flat arrays.
      place: the device or mesh placement it runs on.
      in_avals: the types that `main` takes, hidden constants first, unused arguments left out.
      out_avals: the types of the Arrays it returns, including weak types.
      donated: the indices of `main`'s donated arguments, as in the module's attributes.
      compiler_options: XLA's compiler options by name, such as {"xla_backend_optimization_level": 1}.
      host_callbacks: the Python functions that the module calls, by their index in the module.
      partitioners: the calls that Python divides while XLA compiles; what they raise is raised.
      ordered: whether it has ordered effects, so that it runs after earlier ordered programs.
      effectful: whether it calls FFI targets with side effects, for which effects_barrier waits.

    Raises:
      FfiTargetError: it calls an FFI target that is not registered.
      JaxRuntimeError: XLA cannot compile it, or an option is unknown.
    """
    if process.is_barred:
        bar()
    called = [list(host_callbacks)] if host_callbacks else []  # with functions, jaxlib takes no text or bytecode
    devices = place.devices if isinstance(place, MeshPlacement) else (place,)
    options = compile_options(devices, compiler_options or {})
    try:
        loaded = place.client.compile_and_load(module, DeviceList(devices), options, *called)
    except _jax.JaxRuntimeError as error:
        raise_failure(partitioners)
        raise explained(error, place.platform) from None
    executable = Executable(loaded, place, in_avals, out_avals, frozenset(donated))
    executable.calls_python, executable.ordered, executable.effectful = bool(host_callbacks), ordered, effectful
    return executable


def load_program(
    serialized: bytes,
    *,
    place: DeviceOrMesh,
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    donated: Iterable[int] = (),
    compiler_options: CompilerOptions | None = None,
    effectful: bool = False,
) -> Executable:
    """Load the bytes of `Executable.serialize`, on the devices it was compiled for; arguments as `compile_module`.

    The bytes are machine code that runs unchecked, so they must come from a place that nobody else can write to.

    Raises:
      FfiTargetError: it calls an FFI target that is not registered.
      JaxRuntimeError: this jaxlib cannot load it.
    """
    if process.is_barred:
        bar()
    client, devices = place.client, devices_of(place)
    options = compile_options(devices, compiler_options or {})
    try:
        loaded = client.deserialize_executable(serialized, DeviceList(devices), options)
    except _jax.JaxRuntimeError:
        # Kernels are registered when a program that calls one is lowered; a loaded program was lowered elsewhere.
        register_kernels(client.platform)
        loaded = _load_again(client, serialized, devices, options)
    executable = Executable(loaded, place, in_avals, out_avals, frozenset(donated))
    executable.serialized, executable.effectful = serialized, effectful
    executable.read_orders()
    return executable


def _load_again(client: Any, serialized: bytes, devices: Sequence[Device], options: Any) -> Any:
    try:
        return client.deserialize_executable(serialized, DeviceList(devices), options)
    except _jax.JaxRuntimeError as error:
        raise explained(error, client.platform) from None


def is_compile_only(device: Any) -> bool:
    """Whether a device is compile-only, that is, belongs to a target."""
    return isinstance(getattr(device, "client", None), _jax.CompileOnlyPyClient)


def compile_options(devices: Sequence[Device], overrides: CompilerOptions) -> _jax.CompileOptions:
    """The compile options of a program for these devices; TypeError unless `overrides` is a dict by option name."""
    options = _jax.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = len(devices)
    ids = np.array([[d.id for d in devices]], np.int32)
    options.device_assignment = _jax.DeviceAssignment.create(ids)
    build = options.executable_build_options
    folder = nvidia.toolkit() if devices[0].platform in ("gpu", "cuda") else None
    if folder is not None:
        build.debug_options.xla_gpu_cuda_data_dir = folder
    check_options(overrides)
    options.env_option_overrides = [option for option in overrides.items() if option[0] not in _BUILD_OPTIONS]
    for name in _BUILD_OPTIONS & overrides.keys():
        if name in BUILD_OPTIONS:
            setattr(build, name, LEVELS.get(overrides[name], overrides[name]))  # type: ignore[arg-type]
        else:
            warnings.warn(f"this jaxlib has no option {name}, which is left out", UserWarning, stacklevel=2)
    if len(devices) > 1:
        build.use_spmd_partitioning = build.use_shardy_partitioner = True
        build.allow_spmd_sharding_propagation_to_output = [True]
    return options


_RANGES = {"xla_cpu_parallel_codegen_split_count": range(1, 1025)}
"""XLA checks the type of an option, but not its value: outside these it aborts or exhausts the memory."""

_EFFORTS = frozenset({"exec_time_optimization_effort", "memory_fitting_effort"})
_LEVELS = frozenset({"optimization_level", "memory_fitting_level"})
_BUILD_OPTIONS = _EFFORTS | _LEVELS
"""The options that XLA does not take by name."""


def check_options(options: CompilerOptions) -> None:
    """TypeError unless the compiler options are a dict of numbers and strings; ValueError if XLA would abort on one."""
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise TypeError(f"compiler_options must be a dict of options by name, got {options!r}")
    for name, value in options.items():
        if not isinstance(value, bool | int | float | str):
            raise TypeError(f"compiler_options[{name!r}] must be a bool, a number or a string, got {value!r}")
        _check_effort(name, value)
        allowed = _RANGES.get(name)
        if allowed is not None and _number(value) not in allowed:
            raise ValueError(
                f"compiler_options[{name!r}] must be from {allowed.start} to {allowed.stop - 1}, got {value!r}"
            )


def _check_effort(name: str, value: Any) -> None:
    if name in _EFFORTS and not (isinstance(value, int | float) and -1 <= value <= 1):
        raise ValueError(f"{name} must be a number from -1 to 1, got {value!r}")
    if name in _LEVELS and value not in LEVELS:
        raise ValueError(f"{name} must be {', '.join(map(repr, LEVELS))}, got {value!r}")


def _number(value: float | str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


class ProgramOrigin(NamedTuple):
    """A program of this process: its name, and where its equations are."""

    name: str
    places: Places


class SegmentPlace(NamedTuple):
    """Which segment of a program an executable is, and the numbers of the segments in the order of a call."""

    number: int
    order: tuple[int, ...]


class CompiledModule:
    """A compiled program, loaded or not, with its analyses.

    `loaded` is PJRT's object; `in_shardings` and `out_shardings` are those of its arguments and results.
    `memory_needed` is the bytes of its results and temporaries, computed on demand, which takes 30 ms for a large
    program. `several` says whether it is for more than one device.
    `origin` is the program that it was loaded for, as the names and lines in its code are those of the process that
    compiled it. `source` refers weakly to what a jitted function's was made from. `serialized` is the bytes it was
    loaded from: XLA's CPU client loses its functions' names in loading, and cannot serialize it a second time.
    """

    calls_python: bool
    effectful: bool
    ordered: bool
    donated: frozenset[int]
    loaded: Any
    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]

    is_single = True
    orders: Sequence[Order] = ()
    """The orders in which its arguments lie in memory; empty if all are row-major."""
    """Whether it is a single PJRT executable, which C++ dispatch can run."""

    __slots__ = (
        "__weakref__",
        "_runs_alone",
        "calls_python",
        "donated",
        "effectful",
        "in_avals",
        "in_shardings",
        "loaded",
        "memory_needed",
        "ordered",
        "origin",
        "out_avals",
        "out_shardings",
        "segment",
        "serialized",
        "several",
        "source",
    )

    def __init__(
        self,
        loaded: Any,
        place: DeviceOrMesh,
        in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray],
        donated: frozenset[int],
    ):
        self.loaded, self.donated = loaded, donated
        self.calls_python = self.ordered = self.effectful = False
        self.several: bool = isinstance(place, MeshPlacement) and len(place.devices) > 1
        self._runs_alone = None if self.several and place.platform == "cpu" else False
        self.memory_needed: int | None = None
        self.origin: ProgramOrigin | None = None
        self.source: Callable[[], Any] | None = None
        self.segment: SegmentPlace | None = None
        self.serialized: bytes | None = None
        self.in_avals, self.out_avals = list(in_avals), list(out_avals)
        self.in_shardings: list[Any]
        self.out_shardings: list[Any]
        if isinstance(place, MeshPlacement) or any(map(is_elsewhere, map(space_of, (*in_avals, *out_avals)))):
            self.in_shardings = input_shardings(place, self.in_avals)
            self.out_shardings = output_shardings(place, self.out_avals, loaded)
        else:
            here = on_device(place)
            self.in_shardings, self.out_shardings = [here] * len(self.in_avals), [here] * len(self.out_avals)

    @property
    def runs_alone(self) -> bool:
        """Whether it must run alone: a CPU program with collectives (serial_execution.py)."""
        if self._runs_alone is None:
            self._runs_alone = exchanges_data(self.loaded)
        return self._runs_alone

    @property
    def is_awaited(self) -> bool:
        """Whether effects_barrier waits for its runs: it calls Python functions, or FFI targets with side effects."""
        return self.calls_python or self.effectful

    def cost_analysis(self) -> dict[str, float]:
        """XLA's cost estimates: `flops`, `bytes accessed`, …; a loop's body counts once."""
        return self.loaded.cost_analysis()

    def memory_analysis(self) -> _jax.CompiledMemoryStats:
        """The memory statistics: bytes of arguments, outputs, temporaries and code."""
        return self.loaded.get_compiled_memory_stats()

    def as_text(self) -> str:
        """The text of the optimized HLO."""
        return "\n\n".join(module.to_string() for module in self.loaded.hlo_modules())

    def serialize(self) -> bytes:
        """The compiled program as bytes, which load with this version of jaxlib on this kind of device."""
        return self.loaded.serialize() if self.serialized is None else self.serialized


class Executable(CompiledModule):
    """A compiled program, loaded on its devices."""

    __slots__ = ("_handlers", "orders")

    def __init__(
        self,
        loaded: _jax.LoadedExecutable,
        place: DeviceOrMesh,
        in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray],
        donated: frozenset[int],
    ):
        super().__init__(loaded, place, in_avals, out_avals, donated)
        pairs = list(zip(self.out_avals, self.out_shardings, strict=True))
        self._handlers = [[array_result_handler(*pair, committed) for pair in pairs] for committed in (False, True)]
        self.orders: Sequence[Order] = ()
        crowd.add(self)

    def read_orders(self) -> None:
        """Note the orders of its arguments and results in memory, of which some may not be row-major."""
        orders = orders_of(self.loaded.get_parameter_layouts())
        self.orders = orders if any(orders) else ()
        if any(orders_of(self.loaded.get_output_layouts())):
            use.any_other = True

    def place(self, values: Sequence[Any]) -> list[ArrayImpl]:
        """The arguments as Arrays of the program's input types and shardings."""
        return placed_on(self.in_shardings, self.in_avals, values, self.orders)

    def call(self, arrays: Sequence[ArrayImpl], committed: bool = False) -> list[ArrayImpl]:
        """Run the program on placed Arrays; it returns before the results have been computed.

        PJRT does not compare dtypes: the arrays must be of `in_avals`.
        """
        if process.is_barred:
            bar()
        if self.several:
            check_not_nested()
        if self.is_awaited:
            results = run_with_callbacks(self.loaded, arrays, self.ordered, self.several)
        elif self.runs_alone:
            results = run_alone(self.loaded, arrays)
        else:
            results = self.loaded.execute_sharded(arrays)
        return results.consume_with_handlers(self._handlers[committed])


def placed_on(
    shardings: Sequence[Any], avals: Sequence[ShapedArray], values: Sequence[Any], orders: Sequence[Order] = ()
) -> list[ArrayImpl]:
    """Arguments as Arrays of these types and shardings, in these orders."""
    arrays = [
        x if type(x) is ArrayImpl and x._sharding is sharding else _place_argument(x, sharding, aval)
        for x, sharding, aval in zip(values, shardings, avals, strict=True)
    ]
    return relaid(arrays, orders or [None] * len(arrays)) if use.any_other or orders else arrays


def _place_argument(x: Any, sharding: Any, aval: ShapedArray) -> Any:
    """An argument transferred to the program's input sharding; a number or an ndarray becomes an Array of `aval`."""
    if isinstance(x, ArrayImpl):
        return x if without_trailing_none(x._sharding) == sharding else device_put_value(x, sharding, committed=False)
    if not sharding.is_fully_addressable and not sharding.is_fully_replicated:
        raise ValueError(
            f"an argument of type {aval.str_short()} that each process has for itself cannot be split over devices of "
            f"several, {sharding}; make one array of it with make_array_from_process_local_data, or, if it is the same "
            "in all of them, device_put it"
        )
    return device_put_value(x, sharding, committed=False, aval=aval)
