"""A plugin that measures the CPU time of each test: a test over `LIMIT` must have the mark `slow`.

CPU time includes XLA's compiler threads and child processes that have ended. Unlike wall time, it hardly depends on the
load of the machine. Every test over the limit without the mark is listed. With the environment variable CI, one that
takes `SLACK` times the limit fails the run: no sound test should fail because a machine is slow, or because others
share its cores.
"""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

LIMIT = 5.0
"""Seconds of CPU time with an empty compile cache, fixtures included."""
SLACK = 5.0
_SHOWN = 10

_start: pytest.StashKey[float] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-seconds", metavar="FILE", help="write the CPU seconds of each test to a file")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"slow: takes over {LIMIT:g} s of CPU when cold; only with --full")
    config.pluginmanager.register(_Reports(config), "reports of CPU seconds")


def _spent() -> float:
    """The CPU time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Any:
    item.stash[_start] = _spent()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    if call.when == "call":
        item.user_properties.append(("CPU seconds", _spent() - item.stash[_start]))
    return (yield)


class _Reports:
    """Collects the measurements of all workers and prints a summary."""

    def __init__(self, config: pytest.Config):
        self.config = config
        self.measured: dict[str, tuple[float, bool]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            seconds = dict(report.user_properties).get("CPU seconds", 0.0)
            self.measured[report.nodeid] = seconds, "slow" in report.keywords

    def _too_long(self, limit: float = LIMIT) -> list[str]:
        if self.config.getoption("--all-rows"):
            return []
        return [test for test, (seconds, marked) in self.measured.items() if seconds > limit and not marked]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if os.environ.get("CI") and not hasattr(self.config, "workerinput") and self._too_long(SLACK * LIMIT):
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        ranked = sorted(self.measured.items(), key=lambda entry: -entry[1][0])
        path = self.config.getoption("--cpu-seconds")
        if path:
            Path(path).write_text("".join(f"{seconds:.2f}\t{test}\n" for test, (seconds, _) in ranked))
        if not ranked:
            return
        total = sum(seconds for seconds, _ in self.measured.values())
        terminalreporter.write_line(f"{total:.0f} seconds of CPU in tests; the most in:")
        for test, (seconds, marked) in ranked[:_SHOWN]:
            terminalreporter.write_line(f"{seconds:7.1f} {test}{' (slow)' if marked else ''}")
        for test in self._too_long():
            terminalreporter.write_line(f"over {LIMIT:g} s of CPU without the mark slow: {test}", red=True)
        for test in self._too_long(SLACK * LIMIT):
            terminalreporter.write_line(f"ERROR {test} needs the mark slow: it took over {SLACK * LIMIT:g} s of CPU")
