"""Tests that run their assertions in a fresh Python."""
from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.support.paths import ROOT


def python(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `python arguments` in the root of the repository, with `path` in front of what it imports from."""
    places = [str(p) for p in (path, ROOT) if p is not None]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "JAX_PLATFORMS": "cpu"}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env, cwd=ROOT)


def passes(code: str, path: Path | None = None) -> str:
    """Run a program that must end well; what it writes to stderr."""
    ran = python("-c", textwrap.dedent(code), path=path)
    assert ran.returncode == 0, ran.stderr
    return ran.stderr


def fails(code: str, path: Path | None = None) -> str:
    """Run a program that must end in an error; the error's last line."""
    ran = python("-c", textwrap.dedent(code), path=path)
    assert ran.returncode != 0, ran.stdout
    return ran.stderr.strip().splitlines()[-1]
