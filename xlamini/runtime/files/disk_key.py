"""The cache key of a compiled program: each part is a short text, so that two keys can be compared by eye.

A file is named by all parts but the library's source, whose digest takes longer than all the rest: so a program that is
not there is looked up without it, and one that is there must have been made by the same source. The name begins with
the sketch of the program, so that where no name does, the other parts need not be known.
"""
from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jaxlib.version

from xlamini.core.version import __version__
from xlamini.runtime.devices import nvidia
from xlamini.runtime.devices.clients import emptied_at_exit
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.devices.processor import cpu

_DEFINITION = r'^ *(?:module|func\.func(?: public| private)?) (@(?:[\w.$-]+|"[^"\n]*"))'
_SYMBOL = r'@(?:[\w.$-]+|"[^"\n]*")'
_SOURCE, SKETCH = "source", "sketch"


class Key(NamedTuple):
    """A cache key: the program's name, for messages, the parts that name its file, and whether its source counts."""

    name: str
    naming: dict[str, str]
    of_source: bool = False

    @property
    def parts(self) -> dict[str, str]:
        """All parts by name."""
        return {**self.naming, _SOURCE: source()} if self.of_source else self.naming

    @property
    def file_name(self) -> str:
        """The sketch, and SHA-256 of the parts that name the file."""
        hashed = hashlib.sha256(json.dumps(self.naming, sort_keys=True).encode()).hexdigest()
        return f"{self.naming.get(SKETCH, '')}{hashed}"

    def is_outdated(self, parts: Mapping[str, str]) -> bool:
        """Whether a file of this name, with other parts, was made by another source of the library."""
        return self.of_source and {**parts, _SOURCE: source()} == self.parts


def key(
    name: str,
    sketch: str,
    program: str,
    donated: str,
    flags: Mapping[str, Any],
    device: Device,
    compiler_options: Mapping[str, Any] | None,
) -> Key:
    """The key of a program.

    Args:
      name: the program's name, for messages.
      sketch: a short text that equal programs share.
      program: a digest of its equations.
      donated: the aliasing of donated inputs to outputs.
      flags: the options that change a program's meaning or its lowering, by name.
      device: the device it runs on.
      compiler_options: XLA's options by name.
    """
    own = {
        SKETCH: sketch,
        "program": program,
        "donated arguments": donated,
        "compiler options": _shown(compiler_options or {}),
        "flags": _shown(flags),
        "XLA_FLAGS": xla_flags(),
    }
    return Key(name, {**own, **_surroundings(device)}, of_source=True)


def module_key(
    name: str, sketch: str, module: str, devices: tuple[Device, ...], compiler_options: Mapping[str, Any] | None
) -> Key:
    """The cache key of a program from the compiler's input alone, without xlamini's own source.

    Args:
      name: the program's name.
      sketch: a short text that equal programs share.
      module: the text of its StableHLO module.
      devices: its devices in the order of the partitions.
      compiler_options: XLA's options by name.
    """
    own = {
        SKETCH: sketch,
        "program": f"module {hashlib.sha256(without_names(module).encode()).hexdigest()}",
        "compiler options": _shown(compiler_options or {}),
        "XLA_FLAGS": xla_flags(),
    }
    return Key(name, {**own, **_machine(*devices)})


def without_names(module: str) -> str:
    """Normalize a module's text: numbers replace its name and the names of its functions."""
    found = re.findall(_DEFINITION, module, re.MULTILINE)
    numbers = {name: f"@{i}" for i, name in enumerate(dict.fromkeys(found))}
    return re.sub(_SYMBOL, lambda symbol: numbers.get(symbol[0], symbol[0]), module)


def _shown(values: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value!r}" for name, value in sorted(values.items()))


def xla_flags() -> str:
    """XLA's flags from the environment variable XLA_FLAGS, which holds the flags or the path of a file of them."""
    text = os.environ.get("XLA_FLAGS", "")
    if text and not text.lstrip().startswith("-"):
        with contextlib.suppress(OSError):
            text = Path(text).read_text(encoding='utf-8')
    return " ".join(sorted(text.split()))


@emptied_at_exit
@functools.cache
def _surroundings(device: Device) -> dict[str, str]:
    return {**_machine(device), "xlamini": __version__}


@emptied_at_exit
@functools.cache
def _machine(*devices: Device) -> dict[str, str]:
    device, numbers = devices[0], " ".join(str(d.id) for d in devices)
    found = {
        "platform": " ".join(f"{device.client.platform} {device.client.platform_version}".split()),
        "device": f"{device.device_kind} {getattr(device, 'compute_capability', '')} number {numbers}",
        "cpu": cpu(),
        "threads": f"{os.environ.get('NPROC', '')} {_threads()}".strip(),
        "jaxlib": jaxlib.version.__version__,
    }
    return found | _beside_jaxlib(device)


def _beside_jaxlib(device: Device) -> dict[str, str]:
    """What else a program depends on: algorithms of NVIDIA's libraries, which XLA chooses; the flags of TPUs."""
    if device.platform in ("gpu", "cuda"):
        return {"libraries": " ".join(f"{found.library.name} {found.version}" for found in nvidia.versions())}
    return {"LIBTPU_INIT_ARGS": os.environ.get("LIBTPU_INIT_ARGS", "")} if device.platform == "tpu" else {}


def _threads() -> int:
    # XLA's CPU compiler partitions work by the number of threads.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_FLOORS = ("core", "runtime", "lowering", "primitives", "interpreters", "staging", "transforms")
"""The packages that determine what an equation is lowered to; the public faces above only make equations."""


@functools.cache
def source() -> str:
    """A digest of the library's source, because any line of it may change what a program is lowered to."""
    package = sys.modules["xlamini"].__path__[0]
    digest = hashlib.sha256()
    for path in _sources(package):
        with open(path, "rb") as file:
            digest.update(path[len(package) :].encode() + b"\n" + file.read())
    return digest.hexdigest()[:16]


def _sources(package: str) -> Iterator[str]:
    for floor in _FLOORS:
        for folder, inner, files in os.walk(os.path.join(package, floor)):
            inner.sort()
            yield from (os.path.join(folder, name) for name in sorted(files) if name.endswith(".py"))
