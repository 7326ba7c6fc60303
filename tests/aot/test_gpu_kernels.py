"""Faults of the first run on a GPU that its compiler shows too: kernels that were not set up, or do not exist."""
from __future__ import annotations

import pytest

from tests.aot.counts import compiled, shaped
from xlamini import lax
from xlamini.runtime.devices import ffi_targets
from xlamini.runtime.devices.nvidia import kernel_module
from xlamini.runtime.devices.plugins import load_plugin
from xlamini.runtime.targets.topology import Target


def test_lapack_is_found_before_kernels_call_it_on_the_host(gpu: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    load_plugin("cuda")
    kernels, found = kernel_module("_hybrid"), []
    monkeypatch.setattr(ffi_targets, "_registered", set())
    monkeypatch.setattr(kernels, "initialize", lambda: found.append(kernels))
    ffi_targets.register_kernels("cuda")
    assert found == [kernels]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_convolutions_of_integers_compile(dtype: str, gpu: Target) -> None:
    x, kernel = shaped(2, 4, 5, 6, dtype=dtype), shaped(4, 2, 3, 2, dtype=dtype)
    program = compiled(
        lambda x, kernel: lax.conv_general_dilated(x, kernel, (1, 1), "SAME", feature_group_count=2), gpu, x, kernel
    )
    assert "__cudnn" not in program.as_text()
