"""Run the programs with the newest versions of all packages: `python -m tests.ecosystem.newest`.

It makes `.venv-ecosystem-newest` anew, compares every program with the values that were recorded, and prints a table.
Two packages keep their versions, and a package that another one bounds is as new as the other allows.
The exit status is 1 if a program's values differ.
"""
from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.ecosystem import environment
from tests.ecosystem.outcomes import LIBRARIES
from tests.support.paths import ROOT

FOLDER = ROOT / ".venv-ecosystem-newest"
PINNED = ("jaxlib", "fastprogress")
"""jaxlib has the version of xlamini; a newer fastprogress asks for a web framework."""
PACKAGES = {
    "flax_linen": "flax", "flax_nnx": "flax", "haiku": "dm-haiku", "orbax_checkpoint": "orbax-checkpoint",
    "e3nn": "e3nn-jax", "tfp": "tfp-nightly", "jax_md": "jax-md",
}  # fmt: skip
"""The packages whose names are not those of their files of programs."""


def requirements(text: str) -> list[str]:
    """The requirements in `text` without their versions, but for those of PINNED."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [line if line.partition("==")[0] in PINNED else line.partition("==")[0] for line in lines]


def make() -> None:
    """Make the environment with the newest packages that agree with one another."""
    environment.make(FOLDER, requirements(environment.REQUIREMENTS.read_text()))
    check = [environment.python(FOLDER), "-m", "pip", "check", "--disable-pip-version-check"]
    for requirement in unmet(subprocess.run(check, capture_output=True, text=True, check=False).stdout):
        environment.install(FOLDER, [requirement])


def unmet(report: str) -> list[str]:
    """What installed packages ask of others in another version, in pip's report, but for those of PINNED."""
    asked = re.findall(r" has requirement (([\w.-]+)\S*), but you have", report)
    return sorted({requirement for requirement, package in asked if package not in PINNED})


def versions(folder: Path) -> dict[str, str]:
    """The version of every installed package."""
    command = [environment.python(folder), "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(line.split("==") for line in listed.split())


def result(folder: Path, library: str) -> str:
    """`equal`, or one line of what differs."""
    command = [environment.python(folder), "-m", "tests.ecosystem.compare", library]
    ran = subprocess.run(command, cwd=ROOT, env=environment.variables(), capture_output=True, text=True, check=False)
    return "equal" if ran.returncode == 0 else summary(ran.stderr)


def summary(report: str) -> str:
    """The last value that differs, or error of a program that failed, without further lines of its message."""
    lines = [line for line in report.splitlines() if line.strip() and not line[0].isspace()]
    return (lines or ["it ended without a word"])[-1]


def rows(folder: Path, libraries: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The programs' name, the package's version, and the result."""
    installed = versions(folder)
    for library in libraries:
        yield library, installed.get(PACKAGES.get(library, library), "not installed"), result(folder, library)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", metavar="NAME", help="a file of programs/; all if none is given")
    parser.add_argument("--keep", action="store_true", help="use the environment that an earlier run made")
    arguments = parser.parse_args()
    if not arguments.keep:
        make()
    print("| programs | version | result |\n|---|---|---|")
    found = []
    for row in rows(FOLDER, arguments.libraries or LIBRARIES):
        print(f"| {' | '.join(row)} |", flush=True)
        found.append(row[2])
    sys.exit(any(outcome != "equal" for outcome in found))


if __name__ == "__main__":
    main()
