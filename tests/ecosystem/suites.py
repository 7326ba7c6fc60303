"""Run a library's own tests, from its source distribution: `python -m tests.ecosystem.suites NAME`.

With `--jax` they run over JAX, in the environment of `python -m tests.ecosystem.environment --jax`. The last line has
the counts; `--report FILE` keeps pytest's whole output, which names the failures.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.ecosystem import environment

SUITES = ("chex", "distrax", "dm-haiku", "einops", "optax", "rlax")
"""The libraries that ship tests which need neither TensorFlow nor a network."""
VARIABLES = {
    "einops": {"EINOPS_TEST_BACKENDS": "numpy,jax"},
    "rlax": {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
}
"""What the suites ask of their environment."""


def version_of(library: str) -> str:
    """The requirement of the library, with its version."""
    lines = environment.REQUIREMENTS.read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{library}=="))


def unpacked(library: str, folder: Path) -> Path:
    """The library's source distribution, downloaded and unpacked."""
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*download, "--dest", folder, version_of(library)], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as contents:
        contents.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


def tests_in(source: Path) -> list[Path]:
    """The files of tests, under both names that libraries use."""
    return sorted({*source.rglob("*_test.py"), *source.rglob("test_*.py")})


def run(library: str, with_jax: bool, files: list[str]) -> str:
    """Pytest's output for the library's tests, or for those of them whose path has one of the texts `files`."""
    with tempfile.TemporaryDirectory() as folder:
        source = unpacked(library, Path(folder))
        chosen = [path for path in tests_in(source) if not files or any(text in str(path) for text in files)]
        python = environment.python(environment.FOLDERS[with_jax])
        options = ["-q", "--tb=line", "-W", "ignore", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
        command = [python, "-m", "pytest", *options, *([] if with_jax else ["-p", "xlamini.as_jax"]), *chosen]
        variables = {**environment.variables(), **VARIABLES.get(library, {})}
        ran = subprocess.run(command, cwd=source, env=variables, capture_output=True, text=True, check=False)
        return ran.stdout + ran.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=SUITES)
    parser.add_argument("files", nargs="*", help="parts of the paths of files; all files if there are none")
    parser.add_argument("--jax", action="store_true", help="over JAX, to compare the counts")
    parser.add_argument("--report", type=Path, help="a file for the whole output")
    arguments = parser.parse_args()
    output = run(arguments.library, arguments.jax, arguments.files)
    if arguments.report:
        arguments.report.write_text(output)
    print(output.strip().splitlines()[-1])


if __name__ == "__main__":
    main()
