"""One recording of the profiler as an object: started, stopped, read, and written to a folder."""
from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from xlamini.core import hooks
from xlamini.runtime.execution.program_limit import crowd
from xlamini.runtime.files.file_format import replace_file
from xlamini.runtime.profiler import perfetto
from xlamini.runtime.profiler.recording import ProfileData, ProfileOptions, recorder
from xlamini.runtime.versions import export_to_xprof

if TYPE_CHECKING:
    from xlamini.inspection.timing.causes.findings import TimeFindings
    from xlamini.inspection.timing.report import TimeReport
    from xlamini.inspection.timing.skew import Skew
    from xlamini.inspection.timing.table import TimeTable


class ProfileSession:
    """A recording of the host and the devices, for a `with` block or between `start()` and `stop()`.

    What was recorded is then `profile_data`, and is written to `log_dir` if one is given. The other arguments are those
    of `start_trace`. One session can run at a time: RuntimeError for a second one.

    >>> with ProfileSession() as session:
    ...     _ = jnp.sin(1.0).block_until_ready()
    >>> session.is_running, session.profile_data.find_plane_with_name("/host:CPU").name
    (False, '/host:CPU')
    """

    gives_way = False
    """Whether it ends when another session begins, in place of an error there."""

    def __init__(
        self,
        log_dir: os.PathLike[str] | str | None = None,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        profiler_options: ProfileOptions | None = None,
    ):
        if profiler_options is not None and not isinstance(profiler_options, ProfileOptions):
            raise TypeError(
                f"start_trace: profiler_options must be xlamini.profiler.ProfileOptions(), got {profiler_options!r}"
            )
        self.log_dir: str | None = None if log_dir is None else os.fspath(log_dir)
        self._perfetto = create_perfetto_link, create_perfetto_trace
        self._options = profiler_options
        self._recorded: Any = None
        self._read: Any = None
        self.programs: list[Any] = []
        """The compiled programs that the process had meanwhile, kept for the names of their kernels."""

    @property
    def is_running(self) -> bool:
        """Whether it is recording now."""
        return recorder.owner is self

    @property
    def profile_data(self) -> ProfileData | None:
        """What was recorded; None before the end."""
        return None if self._recorded is None else ProfileData.from_serialized_xspace(self._recorded[1])

    def table(self, by: Literal["line", "kernel", "equation", "program", "device"] = "line") -> TimeTable:
        """Where the time of the kernels went, added up by line of the program, kernel, equation, program, or device.

        Kernels find their equations by the compiled programs that the process had meanwhile. A kernel that is fused
        from several lines counts for the line of its result, and an operation outside of a jitted function for no line,
        because all lines share its program. On the CPU some kernels run on threads that record nothing; what they take
        shows as time in which no kernel ran.

        Raises ValueError for another word, and RuntimeError before the end of the recording.

        >>> def step(x):
        ...     return jnp.sin(x) @ x
        >>> x = jnp.ones((64, 64))
        >>> with ProfileSession() as session:
        ...     _ = xlamini.jit(step)(x).block_until_ready()
        >>> [(row.name, row.calls) for row in session.table(by="program").rows]
        [('jit_step', 1)]
        """
        return self._report("table").table(by)

    def findings(self) -> TimeFindings:
        """What took time and can be avoided, the largest share first: each has a `share`, a `text` and a `line`.

        They are what kernels show: calls of Python, copies of arguments that are not donated, gathers of neighbours,
        float64 by accident, loops that keep too much for the gradient, transposed operands, a device that others wait
        for, work that each device repeats, or that one does alone, and time in which no program runs. A share is one of
        the time between the first kernel and the last; less than a twentieth is no finding. `python -m xlamini profile`
        finds what the host does too.

        Raises RuntimeError before the end of the recording.

        >>> push = xlamini.jit(lambda buffer, i: buffer.at[i].set(1.0))
        >>> buffer = push(jnp.zeros((512, 1024)), 0)
        >>> with ProfileSession() as session:
        ...     for i in range(20):
        ...         buffer = push(buffer, i)
        ...     _ = buffer.block_until_ready()
        >>> "donate it" in session.findings()[0].text
        True
        """
        return self._report("findings").findings()

    def skew(self) -> Skew:
        """Who waited for whom where devices meet, at collectives; RuntimeError before the end of the recording.

        `rows` has the collectives, `devices` how long each device waited, and let others wait, and `pairs` both of two.
        A device that is late at many is slower or has more to do. `str` is a text of it.

        >>> sharding = xlamini.NamedSharding(xlamini.make_mesh((8,), ("d",)), xlamini.P("d"))
        >>> x = xlamini.device_put(jnp.ones((8, 64)), sharding)
        >>> with ProfileSession() as session:
        ...     _ = xlamini.jit(lambda x: (x @ x.T).sum())(x).block_until_ready()
        >>> len(session.skew().devices)
        8
        """
        return self._report("skew").skew()

    def save(self, path: os.PathLike[str] | str) -> None:
        """Write a page that opens in any browser and needs no network, or its content as JSON.

        The page (`.html`) shows the time by line and kernel, a timeline, and a flame graph. It has the text around the
        lines that took time. A long recording is cut to some of its calls, and the page says to which. For a page the
        programs that took longest are compiled once more: the folder `step_files` beside `step.html` has what `inspect`
        says of each, with the times of the recording.

        Raises ValueError for an ending other than `.html` and `.json`, and RuntimeError before the end of the
        recording.

        >>> import json, os, tempfile
        >>> with ProfileSession() as session:
        ...     _ = xlamini.jit(lambda x: x @ x)(jnp.ones((64, 64))).block_until_ready()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     session.save(f"{folder}/step.json")
        ...     with open(f"{folder}/step.json") as file:
        ...         json.load(file)["programs"][0]["calls"]
        1
        """
        self._report("save").save(path)

    def _report(self, asked: str) -> TimeReport:
        """What was recorded, read once; RuntimeError, which names what was asked, before the end."""
        if self._recorded is None:
            raise RuntimeError(f"{asked}: the session has recorded nothing yet; ask after its end")
        if self._read is None:
            self._read = hooks.time_report(self._recorded[1], self.programs)
        return self._read

    def start(self) -> ProfileSession:
        """Begin to record."""
        recorder.start(self, self._options)
        crowd.kept = list(crowd.loaded)
        return self

    def stop(self) -> ProfileData | None:
        """End the recording, and return it; RuntimeError if it does not run."""
        self.finish()
        return self.profile_data

    def finish(self) -> None:
        """End the recording, and write it to the folder, if there is one."""
        self._recorded, self._read = recorder.stop(self), None
        self.programs, crowd.kept = crowd.kept or [], None
        if self.log_dir is not None:
            self.export_profile_data(self.log_dir, *self._perfetto)

    def export_profile_data(
        self,
        log_dir: os.PathLike[str] | str,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        session_id: str | None = None,
    ) -> None:
        """Write what was recorded to a folder; see `export_profile_data`."""
        export_profile_data(self, log_dir, create_perfetto_link, create_perfetto_trace, session_id)

    def write(self, folder: str) -> None:
        """Write the files; RuntimeError before the end."""
        if self._recorded is None:
            raise RuntimeError("export_profile_data: the session has recorded nothing yet; call its stop() first")
        session, recorded = self._recorded
        session.export(recorded, folder)

    def __enter__(self) -> ProfileSession:
        return self.start()

    def __exit__(self, *error: object) -> None:
        if self.is_running:
            self.finish()


def export_profile_data(
    profile_data: ProfileData | ProfileSession,
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    session_id: str | None = None,
) -> None:
    """Write a recording to a folder, in `plugins/profile/<session_id>`; a name of the time by default.

    TypeError for anything but a session and its data, RuntimeError for a session that has not ended, and
    NotImplementedError for data without their session, where jaxlib is older than 0.12.

    >>> import os, tempfile
    >>> with ProfileSession() as session:
    ...     _ = jnp.sin(1.0).block_until_ready()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_profile_data(session, folder, session_id="first")
    ...     os.listdir(f"{folder}/plugins/profile")
    ['first']
    """
    folder = os.fspath(log_dir)
    if isinstance(profile_data, ProfileSession):
        profile_data.write(folder)
    elif not isinstance(profile_data, ProfileData):
        raise TypeError(f"export_profile_data: give a ProfileSession or its profile_data, not {profile_data!r}")
    elif export_to_xprof is None:
        raise NotImplementedError("export_profile_data: this jaxlib writes sessions only; give the ProfileSession")
    else:
        export_to_xprof(profile_data, folder)
    _named(_newest(folder), session_id)
    if create_perfetto_link or create_perfetto_trace:
        file = _perfetto_file(folder)
        if create_perfetto_link:
            perfetto.show(file)


def _newest(folder: str) -> Path:
    return max(Path(folder, "plugins", "profile").iterdir(), key=lambda p: p.stat().st_mtime_ns)


def _named(written: Path, name: str | None) -> None:
    if name is not None:
        written.rename(written.with_name(name))


def _perfetto_file(folder: str) -> Path:
    """The newest trace, rewritten without the metadata that Perfetto does not read."""
    newest = _newest(folder)
    source = next(newest.glob("*.trace.json.gz"))
    with gzip.open(source, "rt", encoding="utf-8") as file:
        content = json.load(file)
    content.pop("metadata", None)
    target = newest / "perfetto_trace.json.gz"
    replace_file(str(target), gzip.compress(json.dumps(content).encode()))
    return target
