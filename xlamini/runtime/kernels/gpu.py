"""What XLA's compiler for a GPU makes of kernels, read from its dumps."""
from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.execution.executable import compile_options
from xlamini.runtime.files.module_reader import new_context
from xlamini.runtime.kernels.ptx import GpuCode, gpu_code, has_entry
from xlamini.runtime.kernels.ptxas import registers_of
from xlamini.runtime.sharding import DeviceList
from xlamini.runtime.targets.topology import target_of


def gpu_codes(kernels: Sequence[bytes], device: Device, options: Mapping[str, Any]) -> list[GpuCode | None]:
    """What XLA makes of each kernel, a StableHLO module, for a device; None where it wrote no PTX."""
    return [_code(kernel, device, options) for kernel in kernels]


def _code(kernel: bytes, device: Device, options: Mapping[str, Any]) -> GpuCode | None:
    with tempfile.TemporaryDirectory(prefix="xlamini-kernels-", ignore_cleanup_errors=True) as name:
        _compile(kernel, device, {**options, "xla_dump_to": name})
        texts = [path.read_text() for path in sorted(Path(name).glob("*.ptx"))]
        launches = "".join(path.read_text() for path in Path(name).glob("*thunk_sequence.txt"))
    ptx = next(filter(has_entry, texts), None)
    return None if ptx is None else gpu_code(ptx, launches, registers_of(ptx))


def _compile(kernel: bytes, device: Device, options: Mapping[str, Any]) -> None:
    module, where = ir.Module.parse(kernel, new_context()), DeviceList((device,))
    client: Any = device.client
    compiled = client.compile if target_of(device) else client.compile_and_load
    compiled(module, where, compile_options((device,), dict(options)))
