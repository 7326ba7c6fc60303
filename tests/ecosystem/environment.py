"""Make the environment of the ecosystem's tests: `python -m tests.ecosystem.environment`.

It has the libraries, what they need, and jaxlib, but no JAX: whatever imports `jax` in it gets xlamini or fails. With
`--jax`, the environment that records values.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.paths import ROOT

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
JAX = ["jax==0.10.2"]
FOLDERS = {False: ROOT / ".venv-ecosystem", True: ROOT / ".venv-ecosystem-jax"}
"""Where the environments are, by whether they have JAX."""


def python(folder: Path = FOLDERS[False]) -> Path:
    return folder / "bin" / "python"


def variables() -> dict[str, str]:
    """The environment variables of a run: the CPU, and the working tree in place of an installed xlamini."""
    return {**os.environ, "JAX_PLATFORMS": "cpu", "XLAMINI_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}


def pinned(with_jax: bool) -> list[str]:
    """The requirements of an environment, in the versions that the tests were run with."""
    lines = REQUIREMENTS.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")] + (JAX if with_jax else [])


def make(folder: Path, requirements: Sequence[str]) -> None:
    """Make `folder` an environment that has exactly the packages given, and nothing else that those ask for."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    install(folder, requirements)


def install(folder: Path, requirements: Sequence[str]) -> None:
    """Install the packages given, and nothing else that those ask for."""
    pip = [python(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, *requirements], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help=f"{FOLDERS[False].name} of the repository if not given")
    parser.add_argument("--jax", action="store_true", help=f"with JAX, which records values; {FOLDERS[True].name}")
    arguments = parser.parse_args()
    make(arguments.folder or FOLDERS[arguments.jax], pinned(arguments.jax))


if __name__ == "__main__":
    main()
