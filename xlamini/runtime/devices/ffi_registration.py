"""Registration of FFI targets that users bring: functions of compiled libraries, called by name from programs.

jaxlib's `xla_client` holds registrations for a platform whose plugin has not been loaded yet. A registered function is
part of the process for good: XLA has no way to take one out.
"""
from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

import jaxlib.version
from jaxlib import _jax, xla_client

from xlamini.runtime.devices.ffi_targets import partition_along_batch

_PLATFORMS = {"cpu": "cpu", "host": "cpu", "cuda": "CUDA", "gpu": "CUDA", "rocm": "ROCM"}
"""XLA's names of platforms; `cpu` is Host there, which `xla_client` knows."""
_STAGES = ("instantiate", "prepare", "initialize", "execute")
_UNTYPED, _TYPED = 0, 1

_lock = threading.Lock()
_untyped: dict[tuple[str, str], int] = {}
"""The addresses of untyped functions, by platform and name: XLA aborts if one changes."""
_functions: dict[int, Any] = {}
"""The ctypes objects of functions by address, because XLA calls an address as long as the process lives."""


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Register a compiled function as an FFI target, for programs to call by name with `ffi_call`.

    The function must be what `api_version` says, as for any call through ctypes: XLA calls it at once to ask what it
    supports, and one with another signature crashes.

    Args:
      name: the target's name in programs.
      fn: a capsule of the function, made by `pycapsule`; or a dict of capsules by stage: "execute", and optionally
        "instantiate", "prepare" and "initialize".
      platform: "cpu", "cuda" (or "gpu") or "rocm".
      api_version: 1 for the typed FFI, 0 for XLA's earlier custom calls.
      **kwargs: `traits`, XLA's flags of the handler; 1 allows its call in a command buffer.

    Raises:
      TypeError: `fn` is no capsule of a function, or no dict of them.
      ValueError: another function has the name already; or an unknown platform, stage or version.

    >>> import ctypes
    >>> register_ffi_target("puts", ctypes.CDLL(None).puts)
    Traceback (most recent call last):
        ...
    TypeError: register_ffi_target: fn is of type _FuncPtr, not a capsule; write pycapsule(fn)
    """
    traits = kwargs.pop("traits", 0)
    if kwargs:
        raise TypeError(f"register_ffi_target: unknown arguments {', '.join(kwargs)}; besides its own it takes traits")
    if traits not in (0, 1):
        raise ValueError(f"register_ffi_target: traits must be 0, or 1 to allow command buffers, got {traits!r}")
    where = _platform("register_ffi_target", platform)
    _check_name("register_ffi_target", name)
    if api_version not in (_UNTYPED, _TYPED):
        raise ValueError(
            f"register_ffi_target: api_version must be 1 (the typed FFI) or 0 (untyped), got {api_version!r}"
        )
    _check_function(fn, api_version)
    with _lock:
        _register(name, fn, where, api_version, traits)


def register_ffi_type(name: str, type_registration: Mapping[str, Any], platform: str = "cpu") -> None:
    """Register the type of a handler's state, which its stage "instantiate" makes and "execute" gets.

    Args:
      name: the type's name, unique in the process.
      type_registration: "type_id", a capsule of the address of an `ffi::TypeId`, and "type_info", one of its
        `ffi::TypeInfo`.
      platform: as in `register_ffi_target`.

    Raises:
      TypeError: `type_registration` is no dict of capsules.
      ValueError: the name belongs to another type; or an unknown platform.

    >>> register_ffi_type("counter", {})
    Traceback (most recent call last):
        ...
    TypeError: register_ffi_type: type_registration must be a dict of capsules, "type_id" and "type_info", got {}
    """
    where = _platform("register_ffi_type", platform)
    _check_name("register_ffi_type", name)
    given = dict(type_registration) if isinstance(type_registration, Mapping) else {}
    if "type_id" not in given or given.keys() - {"type_id", "type_info"} or not all(map(_is_capsule, given.values())):
        raise TypeError(
            'register_ffi_type: type_registration must be a dict of capsules, "type_id" and "type_info", got '
            f"{type_registration!r}"
        )
    _install_cpu()
    try:
        xla_client.register_custom_type(name, given, where)
    except _jax.JaxRuntimeError as error:
        raise ValueError(f"register_ffi_type: {error}; choose another name for this type") from None


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> NoReturn:
    """Raise ValueError: XLA registers a type with its description now, by `register_ffi_type`.

    >>> register_ffi_type_id("counter", None)
    Traceback (most recent call last):
        ...
    ValueError: register_ffi_type_id is not supported by this jaxlib; call register_ffi_type
    """
    raise ValueError("register_ffi_type_id is not supported by this jaxlib; call register_ffi_type")


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Declare to XLA that a target works on each example by itself, so that its partitioner may split the batch.

    The leading dimensions of operands and results must be the same batch dimensions. It is a permission: where the
    partitioner makes no use of it, each device gathers the operands. To split a call for certain, use `shard_map`.

    >>> register_ffi_target_as_batch_partitionable("rows_of_a_table")
    """
    _check_name("register_ffi_target_as_batch_partitionable", name)
    partition_along_batch(name)


def pycapsule(funcptr: Any) -> Any:
    """A capsule of a compiled function, as `register_ffi_target` takes it.

    Args:
      funcptr: a function of a library that ctypes has loaded, or its address, as a number or a `c_void_p`.

    Raises:
      TypeError: it is something else.
      ValueError: it is a null pointer.

    >>> import ctypes
    >>> type(pycapsule(ctypes.CDLL(None).puts)).__name__
    'PyCapsule'
    """
    address = _address(funcptr)
    if address is None or not 0 <= address < 2**64:
        raise TypeError(
            f"pycapsule: {funcptr!r} is no function of a library; pass ctypes.CDLL(path).name, or the function's "
            "address as a number"
        )
    if address == 0:
        raise ValueError("pycapsule: the function is a null pointer; look up its name in the library")
    _functions[address] = funcptr
    return _new_capsule(address, None, None)


def include_dir() -> str:
    """The folder of jaxlib's C++ headers, for the compiler: `-I`. Handlers include "xla/ffi/api/ffi.h".

    >>> include_dir().endswith("include")
    True
    """
    return os.path.join(os.path.dirname(os.path.abspath(jaxlib.version.__file__)), "include")


def _register(name: str, fn: Any, platform: str, api_version: int, traits: int) -> None:
    if api_version == _UNTYPED:
        address = _pointer(fn, _get_name(fn))
        if _untyped.setdefault((platform, name), address) != address:
            raise _taken(name)
    _install_cpu()
    try:
        xla_client.register_custom_call_target(name, fn, platform, api_version, traits)
    except _jax.JaxRuntimeError as error:
        if "Duplicate" in str(error):
            raise _taken(name) from None
        raise ValueError(f"register_ffi_target: XLA rejects {name!r}: {error}") from None


def _taken(name: str) -> ValueError:
    return ValueError(
        f"register_ffi_target: another function is registered as {name!r}, and a name is taken for the life of the "
        "process; choose another name"
    )


def _install_cpu() -> None:
    """Let `xla_client` pass registrations for the CPU on to XLA; it asks for that once."""
    xla_client.register_custom_call_handler("cpu", _jax.register_custom_call_target)
    xla_client.register_custom_type_handler("cpu", _jax.register_custom_type)


def _platform(who: str, platform: Any) -> str:
    known = _PLATFORMS.get(platform.lower()) if isinstance(platform, str) else None
    if known is None:
        raise ValueError(f"{who}: platform must be 'cpu', 'cuda' (or 'gpu') or 'rocm', got {platform!r}")
    return known


def _check_name(who: str, name: Any) -> None:
    if not isinstance(name, str) or not name or "\0" in name:
        raise ValueError(f"{who}: the name must be a string with at least one character and no NUL, got {name!r}")


# --- capsules: XLA trusts their addresses, so they are checked here as far as that is possible


def _check_function(fn: Any, api_version: int) -> None:
    if not isinstance(fn, dict):
        _check_capsule(fn, "fn")
        return
    if api_version == _UNTYPED:
        raise TypeError("register_ffi_target: an untyped target (api_version=0) has no stages; pass one capsule as fn")
    unknown = [stage for stage in fn if stage not in _STAGES]
    if unknown or "execute" not in fn:
        raise ValueError(
            f"register_ffi_target: the stages of fn must be among {', '.join(_STAGES)}, execute included, got "
            f"{list(fn)}"
        )
    for stage, capsule in fn.items():
        _check_capsule(capsule, f"fn[{stage!r}]")


def _check_capsule(x: Any, what: str) -> None:
    if not _is_capsule(x):
        raise TypeError(
            f"register_ffi_target: {what} is of type {type(x).__name__}, not a capsule; write pycapsule({what})"
        )
    name = _get_name(x)
    if name not in _CAPSULE_NAMES:
        raise TypeError(
            f"register_ffi_target: {what} is a capsule of {name!r}, not of a function; make one with pycapsule"
        )
    if not _is_code(_pointer(x, name)):
        raise ValueError(
            f"register_ffi_target: {what} points to memory that holds no code; pass pycapsule a function of a loaded "
            "library"
        )


_CAPSULE_NAMES = (None, b"xla._CUSTOM_CALL_TARGET")

# Prototypes of our own: others may set the types of the attributes of `pythonapi`.
_api = ctypes.pythonapi
_new_capsule: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _api)
)
_get_name: Any = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", _api))
_pointer: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


def _is_capsule(x: Any) -> bool:
    return type(x).__name__ == "PyCapsule"


def _address(x: Any) -> int | None:
    """The address of a ctypes function, or one given as a number; None for anything else."""
    if isinstance(x, int) and not isinstance(x, bool):
        return x
    if isinstance(x, ctypes.c_void_p | ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return ctypes.cast(x, ctypes.c_void_p).value or 0
    return None


def _is_code(address: int) -> bool:
    """Whether memory at an address can be executed; on systems that do not tell, yes."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            rows = [line.split(maxsplit=2) for line in maps]
    except OSError:
        return True
    areas = [row[0].split("-") for row in rows if "x" in row[1]]
    return any(int(start, 16) <= address < int(end, 16) for start, end in areas)
