"""Profiles: files that XProf and Perfetto read, names in them, memory profiles, the server."""
from __future__ import annotations

import gzip
import io
import json
import re
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp, profiler
from xlamini.runtime.profiler import perfetto
from xlamini.runtime.profiler.recording import recorder


@pytest.fixture(autouse=True)
def nothing_left_on() -> Iterator[None]:
    yield
    if recorder.session is not None:
        profiler.stop_trace()
    recorder.server = None


def work() -> Any:
    return xlamini.jit(lambda x: (x @ x).sum())(jnp.ones((50, 50))).block_until_ready()


def written(folder: Path, pattern: str) -> Path:
    """The one file of a trace with such a name."""
    (found,) = folder.glob(f"plugins/profile/*/{pattern}")
    return found


def events(file: Path) -> dict[str, dict[str, Any]]:
    """The events of a trace that Perfetto reads, by name."""
    content = json.loads(gzip.decompress(file.read_bytes()))
    return {event["name"]: event for event in content["traceEvents"] if "name" in event}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.full
def test_files_of_a_trace(tmp_path: Path) -> None:
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        with profiler.TraceAnnotation("outer", part=7):
            work()
        with profiler.StepTraceAnnotation("train", step_num=3):
            work()
    assert written(tmp_path, "*.xplane.pb").stat().st_size > 1000
    found = events(written(tmp_path, "perfetto_trace.json.gz"))
    assert found["outer"]["args"]["part"] == "7" and found["train"]["args"]["step_num"] == "3"
    assert found["outer"]["ph"] == "X" and found["outer"]["dur"] > 0
    assert found.keys() == events(written(tmp_path, "*.trace.json.gz")).keys()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:builtin type:DeprecationWarning")  # of jaxlib's class of statistics
def test_the_profile_can_be_read(tmp_path: Path) -> None:
    """XProf's file: the host's plane has what was annotated, and which step it was."""
    profiler.start_trace(str(tmp_path))
    with profiler.StepTraceAnnotation("train", step_num=3):
        profiler.annotate_function(work, name="one step")()
    profiler.stop_trace()
    data = profiler.ProfileData.from_file(str(written(tmp_path, "*.xplane.pb")))
    host = data.find_plane_with_name("/host:CPU")
    named = {event.name: dict(event.stats) for line in host.lines for event in line.events}
    assert "one step" in named and named["train"]["step_num"] == 3
    assert not list(tmp_path.glob("plugins/profile/*/perfetto_trace.json.gz"))


@pytest.mark.full
def test_the_program_is_in_the_trace(tmp_path: Path) -> None:
    def recognisable(x: Any) -> Any:
        return jnp.sin(x) @ x

    with profiler.trace(tmp_path):
        xlamini.jit(recognisable)(jnp.ones((64, 64))).block_until_ready()
    names = events(written(tmp_path, "*.trace.json.gz"))
    assert any("recognisable" in name for name in names)


@pytest.mark.full
def test_options(tmp_path: Path) -> None:
    options = profiler.ProfileOptions()
    options.host_tracer_level, options.python_tracer_level = 0, 0
    with profiler.trace(tmp_path, profiler_options=options), profiler.TraceAnnotation("unseen"):
        work()
    assert "unseen" not in events(written(tmp_path, "*.trace.json.gz"))


def test_a_trace_ends_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), profiler.trace(tmp_path):
        raise KeyError("mine")
    assert written(tmp_path, "*.xplane.pb").exists()
    profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match=r"a trace to .* is being recorded; call stop_trace"):
        profiler.start_trace(tmp_path)


def test_annotated_functions() -> None:
    @profiler.annotate_function
    def add(x: Any, y: int = 1) -> Any:
        """Adds."""
        return x + y

    assert add(2, y=3) == 5 and add.__name__ == "add" and add.__doc__ == "Adds."
    inside = xlamini.jit(xlamini.grad(profiler.annotate_function(lambda x: x * x)))
    np.testing.assert_allclose(np.asarray(inside(3.0)), 6.0)


def test_the_link_to_perfetto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page may fetch the file, once; then the server ends."""
    file = tmp_path / "perfetto_trace.json.gz"
    file.write_bytes(b"trace")
    port = free_port()
    stderr = io.StringIO()  # pytest's captures are no good here: one read while a thread writes may lose text
    monkeypatch.setattr("sys.stderr", stderr)
    server = threading.Thread(target=perfetto.show, args=(file, port))
    server.start()
    while "url=" not in (shown := stderr.getvalue()):
        time.sleep(0.01)
    address = re.search(r"url=(\S+)", shown)
    assert address is not None and shown.startswith("Open the trace: https://ui.perfetto.dev/#!/?url=")
    with urllib.request.urlopen(address[1]) as answer:
        assert answer.read() == b"trace"
        assert answer.headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
    server.join(timeout=10)
    assert not server.is_alive()


def test_memory_profile(tmp_path: Path) -> None:
    """A compressed message of pprof's format, which begins with the types of its numbers."""
    kept = jnp.ones(1000)
    profile = profiler.device_memory_profile()
    assert len(gzip.decompress(profile)) > 100 and kept is not None
    profiler.save_device_memory_profile(tmp_path / "memory.prof", backend="cpu")
    assert b"buffer" in gzip.decompress((tmp_path / "memory.prof").read_bytes())


def test_server() -> None:
    port = free_port()
    profiler.start_server(port)
    with pytest.raises(ValueError, match="from 1 to 65535, got -1"):
        profiler.start_server(-1)
    with pytest.raises(ValueError, match="a profiler server runs already"):
        profiler.start_server(port + 1)
    with socket.create_connection(("127.0.0.1", port), timeout=10):
        pass
    profiler.stop_server()
    profiler.start_server(free_port(), requires_backend=False)
    profiler.stop_server()


def test_names_are_jax_s() -> None:
    """Every public name of jax.profiler in JAX 0.12.0.1, and what reads the files of a trace."""
    names = (
        "ProfileData ProfileEvent ProfileLine ProfileOptions ProfilePlane ProfileSession StepTraceAnnotation "
        "TraceAnnotation annotate_function device_memory_profile export_profile_data register_subprocess "
        "save_device_memory_profile start_server start_trace stop_server stop_trace trace"
    )
    assert sorted(profiler.__all__) == sorted([*names.split(), "read_trace"])


def test_a_session_is_read_and_written(tmp_path: Path) -> None:
    with profiler.trace() as session:
        assert session.is_running
        with profiler.TraceAnnotation("the work"):
            work()
    data = session.profile_data
    assert data is not None and not session.is_running
    assert any(event.name == "the work" for plane in data.planes for line in plane.lines for event in line.events)
    session.export_profile_data(tmp_path, create_perfetto_trace=True, session_id="mine")
    files = {path.name for path in (tmp_path / "plugins" / "profile" / "mine").iterdir()}
    assert "perfetto_trace.json.gz" in files and any(name.endswith(".xplane.pb") for name in files)


def test_what_a_session_refuses(tmp_path: Path) -> None:
    session = profiler.ProfileSession()
    assert session.profile_data is None
    with pytest.raises(RuntimeError, match="has recorded nothing yet"):
        session.export_profile_data(tmp_path)
    with session, pytest.raises(RuntimeError, match="a trace is being recorded"):
        profiler.ProfileSession().start()
    with pytest.raises(RuntimeError, match="no trace is being recorded"):
        session.stop()
    with pytest.raises(TypeError, match="give a ProfileSession or its profile_data"):
        profiler.export_profile_data(3, tmp_path)  # type: ignore[arg-type]
