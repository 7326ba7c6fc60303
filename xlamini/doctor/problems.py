"""Problems of an installation, each with one fix."""
from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from xlamini.core.flags import environment_variables
from xlamini.doctor.facts import version
from xlamini.doctor.outcome import TrialOutcome
from xlamini.runtime.devices import hardware, nvidia
from xlamini.runtime.devices.clients import is_known
from xlamini.runtime.devices.plugins import Plugin, how_to_install


class Problem(NamedTuple):
    """A problem: its platform, a description and a fix."""

    platform: str
    text: str
    fix: str


class KnownMessage(NamedTuple):
    """A common error message of plugins: its pattern, an explanation and a fix."""

    pattern: str
    text: str
    fix: str


_MISSING_DEVICE = {
    "cuda": "run on a machine with an NVIDIA GPU; in a container, start it with --gpus all",
    "tpu": "run on a TPU machine; xlamini.target compiles for TPUs that are not there",
    "rocm": "run on a machine with an AMD GPU; in a container, pass it /dev/kfd and /dev/dri",
}
_DRIVER = "install NVIDIA's driver; in a container, start it with --gpus all"
_MESSAGES = (
    KnownMessage(r"no such file", "{error}", "correct the path, or unset the variable that names it"),
    KnownMessage(
        r"older than the minimum|Mismatched PJRT|API version",
        "the plugin and jaxlib do not fit: {error}",
        "{upgrade}",
    ),
    KnownMessage(r"GetPjrtApi not found", "{error}", "name the library of a PJRT plugin; this one is something else"),
    KnownMessage(
        r"cannot open shared object file",
        "a library that the plugin needs is missing: {error}",
        "install the missing library, or add its folder to LD_LIBRARY_PATH",
    ),
    KnownMessage(
        r"file too short|invalid ELF",
        "the plugin's file is damaged: {error}",
        "{reinstall}",
    ),
    KnownMessage(
        r"RESOURCE_EXHAUSTED|[Oo]ut of memory",
        "the device has too little free memory: {error}",
        "end the other programs on the device, or set XLAMINI_PREALLOCATE=false",
    ),
    KnownMessage(
        r"already in use|lockfile",
        "another process has the TPU: {error}",
        "end that process; a TPU serves one",
    ),
)


def of_process(plugins: Sequence[Plugin], outcomes: Mapping[str, TrialOutcome | None]) -> Iterator[Problem]:
    """Problems of the process, independent of a platform."""
    for text in environment_variables.ignored:
        yield Problem("", text, "correct the variable, or unset it")
    yield from _duplicates(plugins)


def _duplicates(plugins: Sequence[Plugin]) -> Iterator[Problem]:
    """Problems of platforms with several plugins, of which only the first is used."""
    by_name: dict[str, list[Plugin]] = defaultdict(list)
    for plugin in plugins:
        by_name[plugin.name].append(plugin)
    for name, (used, *others) in by_name.items():
        for other in others:
            yield Problem(name, f"two plugins: {used.source} is used, {other.source} is not", _removal(other))


def _removal(plugin: Plugin) -> str:
    kind, _, package = plugin.source.partition(" ")
    return f"pip uninstall {package}" if kind == "wheel" else f"uninstall what brings {plugin.library}"


def of_platform(
    name: str, outcome: TrialOutcome | None, plugins: Sequence[Plugin], asked: bool
) -> Iterator[Problem]:
    """Problems of one platform: the first cause of failure, and version mismatches."""
    works = outcome is not None and outcome.works
    if not works and (asked or hardware.missing(name) is None):
        yield _cause(name, outcome, any(p.name == name for p in plugins))
    if name == "cuda" and (works or asked):
        yield from _kernels()


def _cause(name: str, outcome: TrialOutcome | None, has_plugin: bool) -> Problem:
    absent = hardware.missing(name)
    if outcome is None and not is_known(name):
        return Problem(name, "there is no such platform", "ask for cpu, gpu, tpu or the name of a plugin")
    if absent is not None:
        return Problem(name, absent, _DRIVER if "driver" in absent else _MISSING_DEVICE[name])
    if not has_plugin and name != "cpu":
        return Problem(name, "its plugin is not installed", how_to_install(name).removeprefix("run: "))
    return _of_trial(name, outcome or TrialOutcome(name))


def _of_trial(name: str, outcome: TrialOutcome) -> Problem:
    """The problem that explains a failed trial."""
    for look in (_hang, _death, _libraries, _message):
        found = look(outcome)
        if found is not None:
            return Problem(name, *found)
    return Problem(name, f"one operation gave a wrong number after step {outcome.last_step!r}", _reinstall(name))


Finding = tuple[str, str] | None


def _hang(outcome: TrialOutcome) -> Finding:
    if not outcome.hangs:
        return None
    text = f"it did not answer within {outcome.timeout:g} s, after step {outcome.last_step!r}"
    return text, f"end other programs that hold the device, or leave it out: {_without(outcome.platform)}"


def _death(outcome: TrialOutcome) -> Finding:
    if outcome.killed_by is None and (outcome.error is not None or "run" in outcome.steps):
        return None
    last = next((line.strip() for line in reversed(outcome.errors.splitlines()) if line.strip()), "")
    how = f"was ended by {outcome.killed_by}" if outcome.killed_by else f"ended with code {outcome.code}"
    text = f"its process {how} after step {outcome.last_step!r}{f': {last[:160]}' if last else ''}"
    return text, f"{_reinstall(outcome.platform)}, or leave it out: {_without(outcome.platform)}"


def _libraries(outcome: TrialOutcome) -> Finding:
    found = outcome.steps.get("libraries", {}).get("found", [])
    lacking = [f"{name} ({has or 'missing'}, needs {needs})" for name, has, needs, fits in found if not fits]
    if not lacking:
        return None
    return f"libraries of CUDA do not fit: {', '.join(lacking)}", nvidia.fix().removeprefix("run: ")


def _message(outcome: TrialOutcome) -> Finding:
    error = outcome.error
    if error is None:
        return None
    short = error.partition("failed to initialize: ")[2] or error
    short = short.partition("; for what to do run:")[0]
    for known in _MESSAGES:
        if re.search(known.pattern, short):
            name = outcome.platform
            return known.text.format(error=short), known.fix.format(upgrade=_upgrade(name), reinstall=_reinstall(name))
    return f"after step {outcome.last_step!r}: {short}", _reinstall(outcome.platform)


def _kernels() -> Iterator[Problem]:
    """Version mismatches of the wheel with cuSOLVER's and other kernels, which must be of jaxlib's release."""
    here = version("jaxlib")
    for number in (13, 12):
        package = f"jax-cuda{number}-plugin"
        found, wanted = version(package), version(f"jax-cuda{number}-pjrt") is not None
        if found != here and (found or wanted):
            lacks = f"{package} {found} does not fit jaxlib {here}" if found else f"{package} is not installed"
            yield Problem("cuda", f"{lacks}: no solvers on the GPU", f'pip install "{package}[with-cuda]=={here}"')


def _packages(name: str) -> str | None:
    """The packages of a platform as pip arguments; None for an unlisted platform."""
    number = 12 if version("jax-cuda12-pjrt") else 13
    cuda = f'"jax-cuda{number}-plugin[with-cuda]" jax-cuda{number}-pjrt'
    return {"cpu": "xlamini jaxlib", "tpu": "libtpu", "cuda": cuda, "rocm": "jax-rocm7-plugin jax-rocm7-pjrt"}.get(name)


def _upgrade(name: str) -> str:
    packages = _packages(name)
    if packages is None:
        return f"pip install --upgrade jaxlib, and the package that brings {name}, of one release"
    return f"install the plugin and jaxlib of one release: pip install --upgrade jaxlib {packages}"


def _reinstall(name: str) -> str:
    packages = _packages(name)
    if packages is None:
        return f"reinstall the package that brings {name}"
    return f"pip install --upgrade --force-reinstall {packages}"


def _without(name: str) -> str:
    return "XLAMINI_PLATFORMS=cpu" if name != "cpu" else "another platform"
