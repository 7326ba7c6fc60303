"""Target descriptions of NVIDIA GPUs for XLA's compiler: one text file each, written from public data.

A file is XLA's `GpuTargetConfigProto` as text. Its numbers are those of NVIDIA's data sheets and of the CUDA
programming guide's table of compute capabilities; `device_memory_size` is about what programs can use. XLA ignores
comments; two of them hold data of xlamini's own:

    # GPU: the product whose numbers these are
    # peak: bfloat16 989.4 float32 494.7        dense, in 10^12 operations a second; float32 is TF32 where there is that
"""
from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent


class GpuTarget(NamedTuple):
    """One GPU: its name in specs, the text for XLA, and the figures read from that text."""

    name: str
    config: str
    kind: str
    memory: int
    bandwidth: float
    peaks: dict[str, float]
    capability: str


def names() -> list[str]:
    """The names of the GPUs that have a description."""
    return sorted(file.stem for file in _FOLDER.glob("*.txtpb"))


def read(name: str) -> GpuTarget:
    """The description of a GPU that `names` lists."""
    text = (_FOLDER / f"{name}.txtpb").read_text()
    kind, memory, bandwidth = (_field(field, text) for field in _FIELDS)
    capability = _field(r"^ *cuda_compute_capability \{ (.*) \}", text).split()[1::2]
    return GpuTarget(name, text, kind, int(memory), float(bandwidth), _peaks(text), ".".join(capability))


_FIELDS = (r'^device_description_str: "(.*)"', r"^ *device_memory_size: (\d+)", r"^ *memory_bandwidth: (\d+)")


def _field(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    assert match is not None, f"no line like {pattern} in a description of a GPU"
    return match.group(1)


def _peaks(text: str) -> dict[str, float]:
    words = _field(r"^# peak: (.*)", text).split()
    return {dtype: float(number) * 1e12 for dtype, number in zip(words[::2], words[1::2], strict=True)}
