"""Files with FFI calls, and errors: of the handler, of unknown targets, of wrong arguments."""
from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.ffi_library import needs_compiler
from tests.support.paths import ROOT
from tests.transforms.test_ffi import EPS, X, close, handlers, like, note, rms, rms_in_numpy
from xlamini import effects_barrier, export, jit
from xlamini.errors import FfiTargetError, JaxRuntimeError
from xlamini.ffi import ffi_call

pytestmark = [needs_compiler, pytest.mark.sample(3)]
__all__ = ["handlers"]  # a fixture of every test here

# Files.


FRESH = """
import numpy as np, xlamini
from tests.support.ffi_library import library
from xlamini import export
x = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)
def load(): return xlamini.load({compiled!r})
def call(): return export.deserialize(open({exported!r}, "rb").read(), trusted=True).call
for made in (load, lambda: call()(x)):
    try:
        made()
    except Exception as error:
        print(type(error).__name__, error)
library()
print(np.abs(np.asarray(load()(x)) - np.asarray(call()(x))).max())
"""


@pytest.mark.slow
def test_files_call_the_target_by_its_name(tmp_path: Path, no_cache: None) -> None:
    """Saved and exported programs run in a process that has registered the target, and say so in one that has not."""
    compiled, exported = tmp_path / "compiled", tmp_path / "exported"
    jit(rms).lower(X).compile().save(compiled)
    allowed = [export.DisabledSafetyCheck.custom_call("test_rms")]
    exported.write_bytes(export.export(jit(rms), platforms=("cpu", "cuda"), disabled_checks=allowed)(X).serialize())
    script = FRESH.format(compiled=str(compiled), exported=str(exported))
    found = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    unloaded, uncalled, difference = found.splitlines()
    assert unloaded.startswith("LoadError") and "no FFI target 'test_rms' is registered for the CPU" in unloaded
    assert uncalled.startswith("FfiTargetError no FFI target 'test_rms' is registered for the CPU; there are dce_sink")
    assert float(difference) == 0


def test_export_refuses_targets_that_may_change() -> None:
    with pytest.raises(ValueError, match=r"calls kernels .*: test_rms; .*DisabledSafetyCheck.custom_call\('test_rms'"):
        export.export(jit(rms))(X)
    allowed = [export.DisabledSafetyCheck.custom_call("test_rms")]
    with pytest.raises(NotImplementedError, match=r"FFI target with side effects, .* leave out has_side_effect"):
        export.export(jit(functools.partial(rms, has_side_effect=True)), disabled_checks=allowed)(X)


def test_a_saved_program_keeps_its_side_effects(handlers: Any) -> None:
    handlers.take_noted()
    load = xlamini.load(jit(lambda x: note(x)).lower(1.0).compile().serialize())
    load(7.0)
    effects_barrier()
    assert handlers.take_noted() == 7


@pytest.mark.slow
def test_the_disk_cache_keeps_its_entry_without_the_target(tmp_path: Path, no_cache: None) -> None:
    xlamini.config.update("compilation_cache_dir", str(tmp_path))
    before = xlamini.config.read("persistent_cache_min_compile_time_secs")
    xlamini.config.update("persistent_cache_min_compile_time_secs", 0.0)
    try:
        close(jit(rms)(X), rms_in_numpy(X))
        with pytest.raises(FfiTargetError, match="no FFI target 'test_absent' is registered"):
            jit(lambda x: ffi_call("test_absent", like(x))(x))(X)
        xlamini.clear_caches()
        close(jit(rms)(X), rms_in_numpy(X))
    finally:
        xlamini.config.update("persistent_cache_min_compile_time_secs", before)


# Errors.


def test_errors_of_the_handler() -> None:
    bad = ffi_call("test_rms", like(X))
    for f in (bad, jit(lambda x, **a: bad(x, eps=EPS, mode="other"))):
        with pytest.raises(JaxRuntimeError, match="INVALID_ARGUMENT: rms: the mode must be rms, got other"):
            np.asarray(f(X, eps=EPS, mode="other") if f is bad else f(X))
    with pytest.raises(JaxRuntimeError, match="Wrong number of attributes: expected 2 but got 1"):
        bad(X, eps=EPS).block_until_ready()
    with pytest.raises(JaxRuntimeError, match="Wrong buffer dtype: expected F32 but got S32"):
        bad(X.astype(np.int32), eps=EPS, mode="rms").block_until_ready()
    with pytest.raises(JaxRuntimeError, match="Wrong number of results: expected 1 but got 2"):
        ffi_call("test_rms", [like(X)] * 2)(X, eps=EPS, mode="rms")[0].block_until_ready()


def test_unknown_targets() -> None:
    expected = (
        r"no FFI target 'test_rsm' is registered for the CPU; there are .*test_rms.*; "
        r"call register_ffi_target\('test_rsm', fn, platform='cpu'\) before"
    )
    for run in (lambda f: f(X), lambda f: jit(f)(X), lambda f: jit(f).lower(X).compile()):
        with pytest.raises(FfiTargetError, match=expected):
            run(ffi_call("test_rsm", like(X)))
    with pytest.raises(FfiTargetError, match="target 'test_rms' is typed; leave out custom_call_api_version"):
        ffi_call("test_rms", like(X), custom_call_api_version=2)(X)


OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"vmap_method": "loop"}, ValueError, r"vmap_method must be one of sequential, .*, got 'loop'"),
    ({"custom_call_api_version": 9}, ValueError, r"must be 4 \(the typed FFI\) or 1 to 3, got 9"),
    ({"legacy_backend_config": "x"}, ValueError, "legacy_backend_config is for custom_call_api_version 1 to 3"),
    ({"custom_call_api_version": 3, "legacy_backend_config": 1}, TypeError, "must be a string, got 1"),
    ({"custom_call_api_version": 3}, ValueError, "with attributes, which custom_call_api_version=3 does not pass"),
    ({"input_layouts": [(0,)]}, ValueError, r"input_layouts\[0\] is \(0,\), but the array has 2 dimensions"),
    ({"input_layouts": [(1, 1)]}, ValueError, r"list each of 0 to 1 once, the slowest first"),
    ({"input_layouts": [None, None]}, ValueError, r"input_layouts must have a layout for each of the 1 arrays"),
    ({"output_layouts": (0, 1, 2)}, ValueError, r"output_layouts\[0\] is \(0, 1, 2\), but"),
    ({"input_output_aliases": {0: 1}}, ValueError, "has 0: 1, but there are 1 inputs and 1 outputs"),
    ({"input_output_aliases": {-1: 0}}, ValueError, "has -1: 0, but there are 1 inputs"),
    ({"input_output_aliases": [0]}, TypeError, r"must be a dict from inputs to outputs, \{0: 0\}, got \[0\]"),
    ({"input_output_aliases": {0: 0}, "input_layouts": [(1, 0)]}, ValueError, r"float32\[3,4\] of layout \(1, 0\) and"),
]


@pytest.mark.parametrize(("options", "kind", "message"), OPTIONS)
def test_wrong_options(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        rms(X, **options)


def test_wrong_arguments() -> None:
    call = ffi_call("test_rms", like(X))
    with pytest.raises(TypeError, match=r"argument 'args\[0\]' of test_rms is \[1.0\] of type list, not an array"):
        call([1.0])
    with pytest.raises(TypeError, match=r"attributes\['eps'\] is JitTracer\(float32\[\]\) of type Tracer, which"):
        jit(lambda x: call(x, eps=x[0, 0]))(X)
    with pytest.raises(TypeError, match=r"result_shape_dtypes is 3, without shape and dtype"):
        ffi_call("test_rms", 3)
    with pytest.raises(TypeError, match=r"result_shape_dtypes\[1\] is 'x', without shape and dtype"):
        ffi_call("test_rms", [like(X), "x"])
    with pytest.raises(ValueError, match="is of dtype float64, but 64-bit dtypes are off; write float32"):
        ffi_call("test_rms", np.zeros(3))
    for target in (3, "", "a\0b"):
        with pytest.raises(TypeError, match="target_name must be a string such as 'lapack_spotrf_ffi'"):
            ffi_call(target, like(X))
    for target in ("TopK", "xla_ffi_python_cpu_callback", "xla.sdy.FuncResultSharding"):
        with pytest.raises(ValueError, match=f"{target} is reserved by XLA"):
            ffi_call(target, like(X))
