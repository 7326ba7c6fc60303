"""The calls of a trace and their parts: runs beside each other, in pools of threads, and the time without any."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from xlamini.inspection.timing.measure.calls import CALL, PooledRun, ProfiledCall, profiled_calls
from xlamini.inspection.timing.measure.shares import call_shares

PROGRAMS = {"jit_f(1)"}
S = 1e9
"""Events have nanoseconds."""


def run(kernel: str, start: float, end: float, goes_on: float = 0.0, noted: float = 0.0) -> PooledRun:
    last = max(end, goes_on)
    return PooledRun(kernel, "device 0", start * S, end * S, last * S, max(last, noted) * S)


def shares(end: float, *runs: PooledRun) -> tuple[dict[str, tuple[float, float]], float, float]:
    """The seconds of each kernel and those in a pool; the seconds between and around."""
    found = call_shares(ProfiledCall(0.0, end * S, sorted(runs, key=lambda r: r.start), 1))
    parts = {each.run.kernel: (round(each.seconds, 6), round(each.unseen, 6)) for each in found.runs}
    total = sum(each.seconds for each in found.runs) + found.between + found.around
    assert total == pytest.approx(found.seconds) == end
    return parts, round(found.between, 6), round(found.around, 6)


def test_runs_one_after_another() -> None:
    assert shares(10, run("a", 1, 3), run("b", 4, 8)) == ({"a": (2, 0), "b": (4, 0)}, 1, 3)


def test_a_moment_of_several_runs_counts_for_each_in_equal_parts() -> None:
    parts, between, around = shares(10, run("a", 0, 6), run("b", 2, 4), run("c", 2, 10))
    assert parts == {"a": (3.666667, 0), "b": (0.666667, 0), "c": (5.666667, 0)}
    assert (between, around) == (0, 0)


def test_a_run_goes_on_in_a_pool() -> None:
    assert shares(10, run("conv", 1, 2, goes_on=5), run("b", 5, 9)) == ({"conv": (4, 3), "b": (4, 0)}, 0, 2)


def test_what_is_not_seen_counts_for_the_last_run_whose_end_was_not_noted() -> None:
    conv, other = run("conv", 1, 2, goes_on=3, noted=7), run("other", 2, 3)
    parts, between, _ = shares(10, conv, other, run("b", 8, 9))
    assert parts == {"conv": (1 + 0.5 + 4, 4.5), "other": (0.5, 0), "b": (1, 0)}
    assert between == 1  # from the noted end to the next run


def test_a_call_without_runs() -> None:
    assert shares(3) == ({}, 0, 3)


def test_a_run_beyond_the_end_of_the_call_is_cut() -> None:
    assert shares(4, run("a", 1, 9)) == ({"a": (3, 0)}, 0, 1)


def event(name: str, start: float, end: float, **stats: Any) -> Any:
    return SimpleNamespace(name=name, start_ns=start * S, end_ns=end * S, stats=list(stats.items()))


def kernel(name: str, start: float, end: float, token: int, module: str = "jit_f") -> Any:
    about = {"hlo_module": module, "program_id": 1, "run_id": 1, "device_ordinal": 0}
    return event(name, start, end, hlo_op=name, _p=token, **about)


def recording(**lines: list[Any]) -> Any:
    made = [SimpleNamespace(name=name, events=events) for name, events in lines.items()]
    return SimpleNamespace(planes=[SimpleNamespace(name="/host:CPU", lines=made)])


def test_a_kernel_goes_on_to_the_next_one_of_the_thread_that_notes_its_end() -> None:
    data = recording(
        python=[event(CALL, 0, 10)],
        main=[kernel("conv", 1, 2, token=1)],
        pool=[event("ThreadpoolListener::StartRegion", 2, 2), kernel("tanh", 6, 8, token=2),
              event("end: tanh", 8, 8, _c=2), event("end: conv", 8.5, 8.5, _c=1)],
    )  # fmt: skip
    (call,) = profiled_calls(data, PROGRAMS, {"conv", "tanh"})
    assert call.runs == [run("conv", 1, 2, goes_on=6, noted=8.5), run("tanh", 6, 8)]
    assert call.threads == 2


def test_an_end_without_a_following_kernel_is_the_end() -> None:
    data = recording(
        python=[event(CALL, 0, 10)],
        main=[kernel("tanh", 0.5, 1, token=2), kernel("conv", 1, 2, token=1)],
        pool=[event("end: conv", 7, 7, _c=1)],
    )
    (call,) = profiled_calls(data, PROGRAMS, {"conv", "tanh"})
    assert call.runs == [run("tanh", 0.5, 1), run("conv", 1, 2, goes_on=7)]


def test_runs_of_other_programs_and_of_loops_themselves_are_left_out() -> None:
    data = recording(
        python=[event(CALL, 0, 5), event(CALL, 6, 9)],
        main=[kernel("while.1", 1, 4, 1), kernel("a", 1, 2, 2), kernel("b", 7, 8, 3), kernel("a", 3, 4, 4, "jit_copy")],
    )
    calls = profiled_calls(data, PROGRAMS, {"a", "b"})
    assert [[each.kernel for each in call.runs] for call in calls] == [["a"], ["b"]]


def test_a_trace_without_events() -> None:
    assert profiled_calls(recording(python=[]), PROGRAMS, {"a"}) == []
