"""The version of PJRT's C API, read from the structure behind a plugin's capsule."""
from __future__ import annotations

import ctypes
from typing import Any


class _Api(ctypes.Structure):
    """The first fields of PJRT_Api, which are common to all versions."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("extensions", ctypes.c_void_p),
        ("version_size", ctypes.c_size_t),
        ("version_extensions", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
    )


def plugin_version(capsule: Any) -> tuple[int, int]:
    """The major and minor version of a loaded plugin's C API."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    api = _Api.from_address(pointer_of(capsule, b"pjrt_c_api"))
    return api.major, api.minor
