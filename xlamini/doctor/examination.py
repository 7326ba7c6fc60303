"""The examination: the available and requested platforms, the outcomes of their trials, and the problems."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from xlamini.core import PlatformError
from xlamini.core.flags import device_flags
from xlamini.doctor.outcome import TrialOutcome, try_platform
from xlamini.doctor.problems import Problem, of_platform, of_process
from xlamini.runtime.devices import hardware
from xlamini.runtime.devices.clients import is_known, preferred_platforms
from xlamini.runtime.devices.platforms import names_in, resolve_platform
from xlamini.runtime.devices.plugins import Plugin, installed


@dataclass
class Examination:
    """The results; an outcome is None for a platform that was not try_platform, because the machine has no such device.

    `misspelt` lists problems with flags that prevent every program from running.
    """

    asked: list[str]
    plugins: list[Plugin]
    outcomes: dict[str, TrialOutcome | None]
    misspelt: list[Problem]
    problems: list[Problem] = field(default_factory=list)

    @property
    def default(self) -> str:
        """The platform that programs run on by default."""
        return next((name for name in self.asked or self._order() if self.works(name)), "none")

    @property
    def healthy(self) -> bool:
        """Whether all requested platforms work; if none was requested, whether any platform works."""
        works = all(map(self.works, self.asked)) if self.asked else self.default != "none"
        return works and not self.misspelt

    def works(self, name: str) -> bool:
        """Whether a platform's trial succeeded."""
        outcome = self.outcomes.get(name)
        return outcome is not None and outcome.works

    def _order(self) -> list[str]:
        return [name for name in preferred_platforms() if name in self.outcomes]


def examine(asked: str | None, timeout: float) -> Examination:
    """Examine the machine, and try each platform that was requested or may work."""
    misspelt = [*_without_bad_paths(), *_bad_names()]
    names = [resolve_platform(n.strip()) for n in (asked or device_flags.platforms.value or "").split(",") if n.strip()]
    plugins = installed()
    known = dict.fromkeys([*names, *(p.name for p in plugins), "cpu"])
    outcomes = dict.fromkeys(known) | _try_all([n for n in known if _worth_trying(n, names)], timeout)
    found = Examination(names, plugins, outcomes, misspelt, [*misspelt, *of_process(plugins, outcomes)])
    for name, outcome in outcomes.items():
        found.problems += of_platform(name, outcome, plugins, name in names)
    return found


def _try_all(names: list[str], timeout: float) -> dict[str, TrialOutcome | None]:
    """The trials, run concurrently: most of their time is start-up."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        return dict(zip(names, pool.map(lambda name: try_platform(name, timeout), names), strict=True))


def _worth_trying(name: str, asked: list[str]) -> bool:
    return is_known(name) and (name in asked or hardware.missing(name) is None)


def _without_bad_paths() -> list[Problem]:
    """The problem with the flag `pjrt_plugins`, if any; the flag is then reset, so that the examination can go on."""
    try:
        installed()
    except PlatformError as error:
        device_flags.pjrt_plugins.set_global(None)
        return [Problem("", str(error), "write it as the message says, or unset XLAMINI_PJRT_PLUGINS")]
    return []


def _bad_names() -> list[Problem]:
    """The problem with the flag `platforms`, if any."""
    try:
        names_in(device_flags.platforms.value or "cpu")
    except PlatformError as error:
        return [Problem("", str(error), "write it as the message says, or unset XLAMINI_PLATFORMS")]
    return []
