"""Broken set-ups: folders with packages and plugins that fail, each in its own way."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

COMPILER = shutil.which("gcc")

_SOURCE = """
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
static void *nothing(void *arguments) { return NULL; }
typedef void *(*Function)(void *);
static struct {
  size_t size; void *extensions; size_t version_size; void *version_extensions; int major, minor;
  Function functions[200];
} api = {sizeof(api), NULL, 24, NULL, 0, MINOR, {[0 ... 199] = nothing}};
const void *GetPjrtApi(void) { BEHAVIOUR; return &api; }
"""
_NO_PLUGIN = "int answer(void) { return 42; }"
_FIT_MINOR = 112

_DEVICE = """
from xlamini.runtime.devices import hardware
hardware._CHECKS[{name!r}] = lambda: None
"""

_VERSIONS = """
def cudnn_get_version():
    raise RuntimeError("cuDNN not found.")
cudnn_build_version = lambda: 91200
cuda_runtime_build_version = cuda_runtime_get_version = lambda: 13000
cublas_build_version = cublas_get_version = lambda: 130000
cufft_build_version = cufft_get_version = lambda: 12000
cusparse_build_version = cusparse_get_version = lambda: 12602
"""


def plugin(path: Path, behaviour: str = "", minor: int = _FIT_MINOR) -> Path:
    """A plugin of PJRT that does `behaviour` when it is loaded, and nothing afterwards."""
    return _compiled(path, _SOURCE, f"-DBEHAVIOUR={behaviour}", f"-DMINOR={minor}")


def no_plugin(path: Path) -> Path:
    """A library that is no plugin."""
    return _compiled(path, _NO_PLUGIN)


def plugin_that_needs(path: Path, library: str) -> Path:
    """A plugin that needs a library which is not there any more."""
    needed = _compiled(path.parent / f"lib{library}.so", _NO_PLUGIN)
    needs = ("-Wl,--no-as-needed", f"-L{path.parent}", f"-l{library}")
    made = _compiled(path, _SOURCE, "-DBEHAVIOUR=", "-DMINOR=1", *needs)
    needed.unlink()
    return made


def _compiled(path: Path, source: str, *options: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [str(COMPILER), "-shared", "-fPIC", "-x", "c", "-", "-o", str(path), *options]
    subprocess.run(command, input=source, text=True, check=True)
    return path


def damaged(path: Path) -> Path:
    """A file that only looks like a library."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("no library\n")
    return path


def entry_point(folder: Path, name: str, module: str) -> None:
    """A package that announces a plugin."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text(f"[console_scripts]\nx = y:z\n\n[jax_plugins]\n{name} = {module}\n")


def package(folder: Path, name: str, version: str) -> None:
    """A package that is installed, in some version."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def with_device(folder: Path, name: str) -> None:
    """In processes that have the folder on their path, nothing speaks against a platform's device."""
    (folder / "sitecustomize.py").write_text(_DEVICE.format(name=name))


def without_cudnn(folder: Path) -> None:
    """A wheel of CUDA's kernels that does not find cuDNN."""
    (folder / "jax_cuda13_plugin").mkdir()
    (folder / "jax_cuda13_plugin/__init__.py").touch()
    (folder / "jax_cuda13_plugin/_versions.py").write_text(_VERSIONS)
