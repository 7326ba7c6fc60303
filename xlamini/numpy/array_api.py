"""The Python array API standard's namespace information: version, capabilities, devices and dtypes."""
from __future__ import annotations

from typing import Any

from xlamini.core import canonicalize_dtype
from xlamini.numpy.dtypes import isdtype
from xlamini.runtime.devices.platforms import devices

VERSION = "2024.12"
_NAMES = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}


def check_version(api_version: str | None) -> None:
    """ValueError for a version of the standard that this namespace does not follow."""
    if api_version not in (None, VERSION):
        raise ValueError(f"__array_namespace__: api_version {api_version!r} is not there; it is {VERSION!r}")


class ArrayNamespaceInfo:
    """The capabilities, devices and dtypes of the namespace.

    >>> ArrayNamespaceInfo().default_dtypes()["integral"]
    dtype('int32')
    """

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks in compiled programs, shapes that depend on values, and the highest number of axes."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device that arrays are made on if none is named: None, because it is chosen when one is made."""
        return None

    def devices(self) -> list[Any]:
        """All devices, and None for the default one."""
        return [None, *devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes that arrays have if none is named."""
        kinds = {"real floating": float, "complex floating": complex, "integral": int, "indexing": int}
        return {name: canonicalize_dtype(kind) for name, kind in kinds.items()}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The standard's dtypes that are there, those of 64 bits only with x64 on; all, or those of a kind."""
        names = [name for group in _NAMES.values() for name in group]
        there = {name: canonicalize_dtype(name) for name in names if canonicalize_dtype(name).name == name}
        return {name: dtype for name, dtype in there.items() if kind is None or isdtype(dtype, kind)}


def namespace_info() -> ArrayNamespaceInfo:
    """`__array_namespace_info__` of the standard."""
    return ArrayNamespaceInfo()
