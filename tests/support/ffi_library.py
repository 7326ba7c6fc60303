"""The handlers of ffi_handlers.cc as a library, compiled once for each version of the source and of jaxlib."""
from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import jaxlib.version
import pytest

from tests.support.paths import ROOT
from xlamini import ffi

SOURCE = Path(__file__).with_name("ffi_handlers.cc")
COMPILER = shutil.which("g++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no g++ to compile FFI handlers with")


def compiled(source: Path, target: Path) -> None:
    """Compile a C++ file with FFI handlers to a shared library."""
    options = ["-std=c++17", "-O1", "-w", "-fPIC", "-shared", f"-I{ffi.include_dir()}"]
    subprocess.run([COMPILER or "g++", *options, str(source), "-o", str(target)], check=True)


def library_path() -> Path:
    """The path of the compiled library in .cache; another process may compile it at the same time."""
    digest = hashlib.sha256(SOURCE.read_bytes() + jaxlib.version.__version__.encode()).hexdigest()[:16]
    path = ROOT / ".cache" / "ffi" / f"handlers-{digest}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / "handlers.so"
            compiled(SOURCE, made)
            os.replace(made, path)
    return path


@functools.cache
def library() -> Any:
    """The library, with its handlers registered under their names with `test_` in front."""
    loaded = ctypes.CDLL(str(library_path()))
    for name in ("counter_id", "counter_info"):
        getattr(loaded, name).restype = ctypes.c_void_p
    for name in ("count_of_sums", "take_noted"):
        getattr(loaded, name).restype = ctypes.c_int64
    for name in ("rms", "attributes", "copy", "sum", "note"):
        ffi.register_ffi_target(f"test_{name}", ffi.pycapsule(getattr(loaded, name)))
    for name in ("twice", "length_of_opaque"):
        ffi.register_ffi_target(f"test_{name}", ffi.pycapsule(getattr(loaded, name)), api_version=0)
    addresses = {"type_id": loaded.counter_id(), "type_info": loaded.counter_info()}
    ffi.register_ffi_type("test_counter", {name: ffi.pycapsule(x) for name, x in addresses.items()})
    stages = {"instantiate": loaded.count_instantiate, "execute": loaded.count_execute}
    ffi.register_ffi_target("test_count", {name: ffi.pycapsule(function) for name, function in stages.items()})
    return loaded
