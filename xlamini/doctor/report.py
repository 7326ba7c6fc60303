"""The doctor's report, as text in columns."""
from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from xlamini.core import PlatformError
from xlamini.doctor import facts
from xlamini.doctor.examination import Examination
from xlamini.doctor.outcome import TrialOutcome
from xlamini.runtime.devices import client_options, hardware
from xlamini.runtime.devices.plugins import Plugin

WIDTH = 110


def report(found: Examination) -> str:
    """The report: versions, environment, platforms, programs on disk, problems with fixes, and the default platform."""
    parts = [
        _section("versions", _columns(facts.versions())),
        [f"  {facts.machine()}"],
        _section("environment", _columns(facts.environment()) or ["  nothing that matters is set"]),
        _section("platforms", [line for name in found.outcomes for line in _platform(found, name)]),
        _section("programs kept on disk (docs/cache.md)", _columns(facts.programs_on_disk())),
        _section("problems", list(_problems(found)) or ["  none"]),
        ["", _verdict(found)],
    ]
    return "\n".join(line for part in parts for line in part).strip()


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", title, *lines]


def _columns(pairs: Mapping[str, str], indent: str = "  ") -> list[str]:
    width = max(map(len, pairs), default=0)
    return [f"{indent}{name:<{width}}  {value}" for name, value in pairs.items()]


def _platform(found: Examination, name: str) -> Iterator[str]:
    outcome = found.outcomes[name]
    plugin = next((p for p in found.plugins if p.name == name), None)
    yield f"  {name:<5} {_state(name, outcome)}"
    yield from _columns(dict(_details(name, outcome, plugin)), indent=" " * 8)


def _state(name: str, outcome: TrialOutcome | None) -> str:
    if outcome is None:
        return f"not tried: {hardware.missing(name) or 'there is no such platform'}"
    if not outcome.works:
        return "fails"
    client, run = outcome.steps["client"], outcome.steps["run"]
    devices = f"{client['devices']} device{'s' * (client['devices'] > 1)} ({client['kind']})"
    return f"works: {devices}; compiled and ran one operation in {1e3 * run['seconds']:.0f} ms"


def _details(name: str, outcome: TrialOutcome | None, plugin: Plugin | None) -> Iterator[tuple[str, str]]:
    if plugin is not None:
        yield "plugin", facts.package_of(plugin) or plugin.source
        yield "library", str(plugin.library)
    if name == "cuda":
        yield "driver", facts.nvidia_driver() or "none"
    if outcome is not None:
        yield from _trial_facts(outcome)
    yield from _memory(name, outcome)


def _trial_facts(outcome: TrialOutcome) -> Iterator[tuple[str, str]]:
    """The facts that a trial's steps reported."""
    if "load" in outcome.steps:
        own = ".".join(map(str, outcome.steps["load"]["api"]))
        yield "PJRT API", f"plugin {own}, jaxlib {outcome.framework_version or 'unknown'}"
    found = outcome.steps.get("libraries", {}).get("found")
    if found:
        yield "CUDA", ", ".join(f"{name} {'missing' if has is None else has}" for name, has, _, _ in found)
    if "client" in outcome.steps and outcome.platform != "cpu":
        yield "runtime", " ".join(outcome.steps["client"]["version"].split())


def _memory(name: str, outcome: TrialOutcome | None) -> Iterator[tuple[str, str]]:
    stats = (outcome.steps.get("run", {}).get("memory") if outcome else None) or {}
    limit = f", {stats['bytes_limit'] / 2**30:.1f} GiB at most" if "bytes_limit" in stats else ""
    if name in ("cuda", "rocm"):
        yield "memory", _gpu_policy() + limit
    elif limit:
        yield "memory", f"taken as needed{limit}"
    if outcome is not None and "client" in outcome.steps:
        yield "kinds", ", ".join(outcome.steps["client"]["kinds"])


def _gpu_policy() -> str:
    try:
        share, takes = client_options.memory_fraction() or 0.75, client_options.preallocate()
        when = "as needed" if takes is False else "at the start"
        return f"up to {share:.0%} of the device, taken {when}, allocator {client_options.allocator()}"
    except PlatformError as error:
        return str(error)


def _problems(found: Examination) -> Iterator[str]:
    for number, problem in enumerate(found.problems, 1):
        head = f"{problem.platform}: " if problem.platform else ""
        yield from textwrap.wrap(
            f"{number}. {head}{problem.text}", WIDTH, initial_indent="  ", subsequent_indent="     ",
            break_long_words=False, break_on_hyphens=False,
        )
        yield f"     fix: {problem.fix}"


def _verdict(found: Examination) -> str:
    if found.misspelt:
        return "no program runs before the first problem is mended"
    broken = [name for name in found.asked if not found.works(name)]
    if broken:
        return f"asked for and not working: {', '.join(broken)}"
    return f"programs run on: {found.default}"
