"""Registration of FFI targets: capsules, names, platforms, types; what is wrong raises and never aborts."""
from __future__ import annotations

import ctypes
import datetime
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jaxlib import _jax, xla_client

from tests.support.ffi_library import library, needs_compiler
from xlamini import ShapeDtypeStruct, ffi, jit, pure_callback
from xlamini.runtime.devices import ffi_targets

PUTS = ctypes.CDLL(None).puts


def test_headers_are_found() -> None:
    assert (Path(ffi.include_dir()) / "xla/ffi/api/ffi.h").is_file()


def test_a_capsule_holds_the_function() -> None:
    address = ctypes.cast(PUTS, ctypes.c_void_p).value
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    for function in (PUTS, address, ctypes.c_void_p(address)):
        assert get(ffi.pycapsule(function), None) == address


@pytest.mark.parametrize("function", ["puts", None, print, 1.5, True, -1, 2**64, [PUTS]])
def test_what_is_no_function_has_no_capsule(function: Any) -> None:
    with pytest.raises(TypeError, match=r"pycapsule: .* is no function of a library; pass ctypes.CDLL\(path\).name"):
        ffi.pycapsule(function)


@pytest.mark.parametrize("null", [0, ctypes.c_void_p(None)])
def test_a_null_pointer_has_no_capsule(null: Any) -> None:
    with pytest.raises(ValueError, match="pycapsule: the function is a null pointer"):
        ffi.pycapsule(null)


CAPSULE = ffi.pycapsule(PUTS)
DATA = ctypes.create_string_buffer(64)
WRONG: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (PUTS, {}, TypeError, r"fn is of type _FuncPtr, not a capsule; write pycapsule\(fn\)"),
    (None, {}, TypeError, "fn is of type NoneType, not a capsule"),
    ({"execute": PUTS}, {}, TypeError, r"fn\['execute'\] is of type _FuncPtr, not a capsule"),
    (datetime.datetime_CAPI, {}, TypeError, "fn is a capsule of b'datetime.datetime_CAPI', not of a function"),
    (ffi.pycapsule(12345), {}, ValueError, "fn points to memory that holds no code"),
    (ffi.pycapsule(ctypes.addressof(DATA)), {}, ValueError, "fn points to memory that holds no code"),
    ({}, {}, ValueError, r"must be among instantiate, prepare, initialize, execute, execute included, got \[\]"),
    ({"execute": CAPSULE, "run": CAPSULE}, {}, ValueError, r"got \['execute', 'run'\]"),
    ({"execute": CAPSULE}, {"api_version": 0}, TypeError, r"untyped target \(api_version=0\) has no stages"),
    (CAPSULE, {"api_version": 7}, ValueError, "api_version must be 1 .* or 0 .*, got 7"),
    (CAPSULE, {"platform": "cdua"}, ValueError, "platform must be 'cpu', 'cuda' .* or 'rocm', got 'cdua'"),
    (CAPSULE, {"trait": 1}, TypeError, "unknown arguments trait; besides its own it takes traits"),
    (CAPSULE, {"traits": -1}, ValueError, "traits must be 0, or 1 .*, got -1"),
]


@pytest.mark.parametrize(("fn", "options", "kind", "message"), WRONG)
def test_wrong_registrations(fn: Any, options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=f"register_ffi_target: .*{message}"):
        ffi.register_ffi_target("test_wrong", fn, **options)
    assert "test_wrong" not in _jax.custom_call_targets("Host")


@pytest.mark.parametrize("name", [3, "", "a\0b", None])
def test_wrong_names(name: Any) -> None:
    with pytest.raises(ValueError, match="the name must be a string with at least one character and no NUL"):
        ffi.register_ffi_target(name, CAPSULE)


@pytest.mark.full
@needs_compiler
def test_a_name_has_one_function() -> None:
    handlers = library()
    for name in ("rms", "twice"):  # a typed one and an untyped one, for which XLA aborts
        same, version = ffi.pycapsule(getattr(handlers, name)), int(name == "rms")
        ffi.register_ffi_target(f"test_{name}", same, platform="Host", api_version=version)
        with pytest.raises(ValueError, match=rf"another function is registered as 'test_{name}', and a name is taken"):
            ffi.register_ffi_target(f"test_{name}", ffi.pycapsule(handlers.sum), api_version=version)


@pytest.mark.slow
@needs_compiler
def test_types() -> None:
    library()
    for wrong in (3, {}, {"type_id": 3}, {"type_id": CAPSULE, "name": CAPSULE}, CAPSULE):
        with pytest.raises(TypeError, match="type_registration must be a dict of capsules"):
            ffi.register_ffi_type("test_type", wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Type name test_counter already registered .*; choose another name"):
        ffi.register_ffi_type("test_counter", {"type_id": ffi.pycapsule(ctypes.addressof(DATA))})
    with pytest.raises(ValueError, match="register_ffi_type_id is not supported by this jaxlib"):
        ffi.register_ffi_type_id("test_counter", CAPSULE)


def test_functions_that_python_made_live_on() -> None:
    """XLA calls the address as long as the process lives, so ctypes must not free it."""
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(ctypes.c_float)))

    def triple(out: int, operands: Any) -> None:
        ctypes.c_float.from_address(out).value = 3 * operands[0][0]

    ffi.register_ffi_target("test_triple", ffi.pycapsule(prototype(triple)), api_version=0)
    call = ffi.ffi_call("test_triple", ShapeDtypeStruct((), "float32"), custom_call_api_version=1)
    assert float(call(np.float32(5))) == 15


def test_targets_of_a_platform_wait_for_its_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is registered before a plugin is loaded reaches it then, and what is registered later at once."""
    monkeypatch.setattr(xla_client, "_custom_callback", {})
    monkeypatch.setattr(xla_client, "_custom_callback_handler", {})
    monkeypatch.setattr(xla_client, "_custom_type_id", {})
    monkeypatch.setattr(xla_client, "_custom_type_id_handler", {})
    seen: list[Any] = []
    ffi.register_ffi_target("test_early", CAPSULE, platform="gpu")
    ffi.register_ffi_type("test_early_type", {"type_id": CAPSULE}, platform="CUDA")
    register = functools.partial(_record, seen)
    ffi_targets._register_of_users("CUDA", register, register)
    ffi.register_ffi_target("test_late", {"execute": CAPSULE}, platform="cuda", traits=1)
    assert seen == [
        ("test_early_type", {"type_id": CAPSULE}),
        ("test_early", CAPSULE, "CUDA", 1, 0),
        ("test_late", {"execute": CAPSULE}, "CUDA", 1, 1),
    ]


def _record(seen: list[Any], *args: Any) -> None:
    seen.append(args)


def test_batch_partitionable_targets_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    record = functools.partial(_record, seen)
    monkeypatch.setattr(ffi_targets._jax, "register_custom_call_as_batch_partitionable", record)
    monkeypatch.setattr(ffi_targets, "loaded_plugin", lambda name: "api" if name == "cuda" else None)
    monkeypatch.setattr(ffi_targets, "batch_partitionable", [])
    ffi.register_ffi_target_as_batch_partitionable("test_rows")
    assert seen == [("test_rows",), ("test_rows", "api")]
    assert ffi_targets.batch_partitionable == ["test_rows"]


def test_a_gpus_kernel_that_calls_python_is_registered_when_a_program_that_needs_it_is_lowered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ffi_targets, "register_kernels", asked.append)
    x, mask = ShapeDtypeStruct((3,), np.float32), ShapeDtypeStruct((3,), bool)
    program = jit(lambda *xs: pure_callback(np.where, x, *xs)).trace(mask, x, x).lower(lowering_platforms=("cuda",))
    assert "@xla_ffi_python_gpu_callback" in program.as_text()
    assert asked == ["cuda"]


def test_parts_of_bytes_do_not_pass_between_a_gpu_and_python() -> None:
    x = ShapeDtypeStruct((3,), "int4")
    program = jit(lambda x: pure_callback(lambda x: x, x, x)).trace(x)
    with pytest.raises(NotImplementedError, match=r"pure_callback: int4 does not pass .* x.astype\('int8'\)"):
        program.lower(lowering_platforms=("cuda",))
