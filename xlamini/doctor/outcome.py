"""The outcome of a platform's trial, parsed from the output of its subprocess."""
from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from xlamini.core.flags import device_flags
from xlamini.doctor.trial import MARK

_GRACE = 5.0
_FRAMEWORK = re.compile(r"framework PJRT API version is (\d+\.\d+)")


@dataclass
class TrialOutcome:
    """The outcome of a trial: the completed steps, the exit code and the error output."""

    platform: str
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    code: int | None = 0
    errors: str = ""
    timeout: float = 0.0

    @property
    def works(self) -> bool:
        """Whether the operation ran and its result was right."""
        return bool(self.steps.get("run", {}).get("right"))

    @property
    def error(self) -> str | None:
        """The text of the exception that ended the trial."""
        return self.steps.get("error", {}).get("text")

    @property
    def hangs(self) -> bool:
        """Whether the trial timed out."""
        return self.code is None

    @property
    def killed_by(self) -> str | None:
        """The name of the signal that killed the process, if any."""
        return signal.Signals(-self.code).name if self.code is not None and self.code < 0 else None

    @property
    def last_step(self) -> str:
        """The last completed step."""
        return next((s for s in reversed(self.steps) if s != "error"), "nothing")

    @property
    def framework_version(self) -> str | None:
        """The version of jaxlib's PJRT C API, from its log."""
        found = _FRAMEWORK.search(self.errors)
        return found.group(1) if found else None


def try_platform(platform: str, timeout: float) -> TrialOutcome:
    """Run a platform's trial in a subprocess, for at most `timeout` seconds."""
    command = [sys.executable, "-c", f"from xlamini.doctor import trial; trial.main({platform!r})"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
        env=_environment(platform),
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = _rest(process)
            code = None
    return TrialOutcome(platform, _steps(output), code, errors, timeout)


def _rest(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What a killed process has written; nothing if a child of its own holds the pipes open."""
    try:
        return process.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        return "", ""


def _environment(platform: str) -> dict[str, str]:
    """The environment of a trial: this process's, with the platform, its flags, and PJRT's versions logged.

    The trial compiles: a program from disk would say nothing about the compiler.
    """
    here = {**os.environ, "XLAMINI_PLATFORMS": platform, "TF_CPP_MIN_LOG_LEVEL": "0", "PYTHONWARNINGS": "ignore"}
    here["XLAMINI_ENABLE_COMPILATION_CACHE"] = "0"
    here.pop("XLAMINI_DEFAULT_DEVICE", None)
    here["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    if device_flags.pjrt_plugins.value:
        return {**here, "XLAMINI_PJRT_PLUGINS": device_flags.pjrt_plugins.value}
    here.pop("XLAMINI_PJRT_PLUGINS", None)
    return here


def _steps(output: str) -> dict[str, dict[str, Any]]:
    lines = [json.loads(line[len(MARK) :]) for line in output.splitlines() if line.startswith(MARK)]
    return {line.pop("step"): line for line in lines}
