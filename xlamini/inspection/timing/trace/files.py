"""Recordings in files, also those of JAX, which has the same format: where a folder has them, and what is in one."""
from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from xlamini.core import LoadError
from xlamini.inspection.timing.trace.metadata import RecordedProgram, recorded_programs
from xlamini.runtime.files.file_format import read_file
from xlamini.runtime.profiler.recording import ProfileData

_SUFFIX = ".xplane.pb"
_RUNS = Path("plugins", "profile")
_GIVE = f"give the folder that profiler.trace wrote to, one of the runs in its {_RUNS}, or a file *{_SUFFIX}"


class Recording(NamedTuple):
    """What one process recorded, and the programs that ran meanwhile. `process` is the name of its file, a host's."""

    process: str
    data: ProfileData
    programs: Sequence[RecordedProgram] = ()


def recording(content: bytes, process: str = "") -> Recording:
    """A recording from its bytes; RuntimeError or ValueError for those of something else."""
    return Recording(process, ProfileData.from_serialized_xspace(content), recorded_programs(content))


def read_recordings(where: str | os.PathLike[str]) -> list[Recording]:
    """The recordings of the newest run in a folder, one of each process, or that in a file.

    FileNotFoundError if there are none, LoadError for a file that is damaged or none of the profiler's.
    """
    return [_recording(file) for file in _files(Path(where))]


def _files(where: Path) -> list[Path]:
    if not where.exists():
        raise FileNotFoundError(f"read_trace: there is no file or folder {str(where)!r}; {_GIVE}")
    if not where.is_dir():
        return [where]
    folders = [where, *where.glob("*/"), *where.joinpath(_RUNS).glob("*/")]
    runs = [found for folder in folders if (found := sorted(folder.glob(f"*{_SUFFIX}")))]
    if not runs:
        raise FileNotFoundError(f"read_trace: {str(where)!r} has no trace, which is a file *{_SUFFIX}; {_GIVE}")
    return max(runs, key=lambda files: max((file.stat().st_mtime_ns, file.parent.name) for file in files))


def _recording(file: Path) -> Recording:
    content = read_file(file)
    if not content:
        raise LoadError(f"read_trace: {_refused(file)} (it is empty)")
    try:
        return recording(content, file.name.removesuffix(_SUFFIX))
    except (RuntimeError, ValueError) as error:
        raise LoadError(f"read_trace: {_refused(file)} ({error})") from None


def _refused(file: Path) -> str:
    return f"{str(file)!r} was cut off, or is no trace of XLA's profiler; copy or record it again"
