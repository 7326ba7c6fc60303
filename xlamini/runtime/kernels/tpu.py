"""What libtpu makes of kernels, read from the dumps of a child process that compiles them."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from xlamini.core.errors import PlatformError
from xlamini.core.flags import device_flags
from xlamini.runtime.devices.plugins import plugin
from xlamini.runtime.kernels.bundles import TpuCode, tpu_code

_CHILD = "xlamini.runtime.kernels.tpu_dump"
_START, _EACH = 60, 60
"""Seconds that the child may take for its start, and for each kernel."""
_OF_OTHERS = "<late-", "TLP", "copy"
"""How the names begin of what libtpu adds to a kernel that is alone: copies of arrays to other layouts among them."""
_BUNDLES, _UNITS, _BUFFERS = (
    "-final_bundles.txt", "-final_hlo-static-per-bundle-utilization.txt", "-post-delay-converter.txt"
)  # fmt: skip


def tpu_codes(kernels: Sequence[bytes], target: str, options: Mapping[str, Any]) -> list[TpuCode | None]:
    """What libtpu makes of each kernel, a StableHLO module; None where it wrote no dump of it.

    PlatformError without libtpu, and if the child process fails or takes too long.
    """
    plugin("tpu")  # for its error, which says what to install
    with tempfile.TemporaryDirectory(prefix="xlamini-kernels-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for i, each in enumerate(kernels):
            (folder / f"{i}.mlirbc").write_bytes(each)
        _compile(folder, len(kernels), target, options)
        return [_code(folder, i) for i in range(len(kernels))]


def _compile(folder: Path, count: int, target: str, options: Mapping[str, Any]) -> None:
    command = [sys.executable, "-m", _CHILD, str(folder), target, json.dumps(dict(options))]
    limit = _START + _EACH * count
    try:
        done = _run(command, _environment(folder), limit)
    except subprocess.TimeoutExpired:
        raise PlatformError(f"kernels: libtpu did not compile them in {limit} s; look at fewer at once") from None
    if done.returncode:
        last = next(filter(None, reversed(done.stderr.splitlines())), f"it ended with {done.returncode}")
        raise PlatformError(f"kernels: the process that compiles for {target} failed: {last}; run xlamini.doctor")


def _run(command: Sequence[str], environment: Mapping[str, str], limit: float) -> subprocess.CompletedProcess[str]:
    how = {"capture_output": True, "encoding": "utf-8", "errors": "replace", "check": False}
    return subprocess.run(command, env=environment, timeout=limit, **how)


def _environment(folder: Path) -> dict[str, str]:
    """This process's environment, with the options of the dumps."""
    dumps = f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"
    here = {**os.environ, "LIBTPU_INIT_ARGS": f"{os.environ.get('LIBTPU_INIT_ARGS', '')} {dumps}".strip()}
    here["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    if device_flags.pjrt_plugins.value:
        here["XLAMINI_PJRT_PLUGINS"] = device_flags.pjrt_plugins.value
    return here


def _code(folder: Path, i: int) -> TpuCode | None:
    names = json.loads((folder / f"{i}.json").read_text())
    own = [name for name in names if not name.partition("-")[2].startswith(_OF_OTHERS)]
    bundles, units, buffers = (_text(folder, own, ending) for ending in (_BUNDLES, _UNITS, _BUFFERS))
    return tpu_code(bundles, units, buffers) if bundles else None


def _text(folder: Path, names: Sequence[str], ending: str) -> str:
    found = [name for name in names if name.endswith(ending) and "schedule-analysis" not in name]
    return (folder / found[-1]).read_text(errors="replace") if found else ""
