"""Run a library's own tests, from its source distribution: `python -m tests.ecosystem.suites NAME`.

With `--jax` they run over JAX, in the environment of `python -m tests.ecosystem.environment --jax`. The last line has
the counts; `--report FILE` keeps pytest's whole output, which names the failures. Each file of tests is a process of
its own, because some set the number of devices, and ends after `--limit` seconds. `--share 25` runs a quarter, with
`--share-from 25` the next one.
"""
from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from tests.ecosystem import environment, share

PLUGIN = "ecosystem_share"
"""What the plugin is called in a run: `tests` may be a package of the library's."""
SUITES = ("blackjax", "chex", "distrax", "dm-haiku", "einops", "flax", "jraph", "numpyro", "optax", "rlax")
"""The libraries that ship tests which need neither TensorFlow nor a network."""
VARIABLES = {
    "einops": {"EINOPS_TEST_BACKENDS": "numpy,jax"},
    "rlax": {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
}
"""What the suites ask of their environment."""
WARNINGS = {"numpyro": ()}
"""Pytest's options about warnings, for suites with tests that want some. Those of the others are silenced."""
FOLDERS = {"flax": "tests"}
"""Where the tests are of a library whose examples have tests too, which need TensorFlow."""
REQUIREMENTS = {
    "distrax": ("mock==5.2.0",),
    "dm-haiku": ("dill==0.4.1",),
    "numpyro": ("funsor==0.4.8", "makefun==1.16.0"),
    "optax": ("joblib==1.6.0", "narwhals==2.29.0", "scikit-learn==1.9.1", "threadpoolctl==3.8.0"),
}
"""What suites need beside their library, installed for the run only."""


@dataclass(frozen=True)
class Choice:
    """Which tests are run, over what, and for how long."""

    library: str
    with_jax: bool
    share: int
    limit: float
    start: int = 0


def version_of(library: str) -> str:
    """The requirement of the library, with its version."""
    lines = environment.REQUIREMENTS.read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{library}=="))


def unpacked(library: str, folder: Path) -> Path:
    """The library's source distribution, downloaded and unpacked."""
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", library]
    subprocess.run([*download, "--dest", folder, version_of(library)], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as contents:
        contents.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


def install(choice: Choice, folder: Path) -> None:
    """The plugin, and what the suite needs and the environment does not have, in a folder of their own."""
    folder.mkdir(exist_ok=True)
    shutil.copy(share.__file__, folder / f"{PLUGIN}.py")
    needed = REQUIREMENTS.get(choice.library, ())
    pip = [environment.python(environment.FOLDERS[choice.with_jax]), "-m", "pip", "install", "--quiet", "--no-deps"]
    if needed:
        subprocess.run([*pip, "--target", folder, *needed], check=True)


def tests_in(source: Path) -> list[Path]:
    """The files of tests, under both names that libraries use."""
    return sorted({*source.rglob("*_test.py"), *source.rglob("test_*.py")} - set(source.rglob("test_util*.py")))


def variables(choice: Choice, packages: Path) -> dict[str, str]:
    """The environment variables of a run, in which `packages` can be imported too."""
    common = environment.variables()
    path = os.pathsep.join([common["PYTHONPATH"], str(packages)])
    return {**common, "PYTHONPATH": path, **VARIABLES.get(choice.library, {})}


def command(choice: Choice, path: Path) -> list[str | Path]:
    """Pytest for one file of tests."""
    chosen = [f"--share={choice.share}", f"--share-from={choice.start}"]
    options = ["-q", "--tb=short", *WARNINGS.get(choice.library, ("-W", "ignore")), "-p", "no:cacheprovider"]
    drop_in = [] if choice.with_jax else ["-p", "xlamini.as_jax"]
    python = environment.python(environment.FOLDERS[choice.with_jax])
    return [python, "-m", "pytest", *options, "-p", PLUGIN, *chosen, *drop_in, path]


def output_of(choice: Choice, path: Path, source: Path, packages: Path) -> str:
    """Pytest's output for one file, or one line that counts the file if it takes too long."""
    try:
        ran = subprocess.run(command(choice, path), cwd=source, env=variables(choice, packages), capture_output=True,
                             text=True, check=False, timeout=choice.limit)
    except subprocess.TimeoutExpired:
        return f"1 timeout: {path.relative_to(source)} took more than {choice.limit:g} s\n"
    return ran.stdout + ran.stderr


def outputs(choice: Choice, parts: Sequence[str]) -> Iterator[str]:
    """Pytest's output for each file, or for those whose path has one of the texts `parts`, as the files end."""
    with tempfile.TemporaryDirectory() as folder:
        packages = Path(folder) / "packages"
        source = unpacked(choice.library, Path(folder))
        install(choice, packages)
        paths = tests_in(source / FOLDERS.get(choice.library, ""))
        for path in [path for path in paths if not parts or any(text in str(path) for text in parts)]:
            yield output_of(choice, path, source, packages)


def counts_of(output: str) -> Counter[str]:
    """The counts in the last line that has some: `2 failed, 7 passed in 1.31s`."""
    found = [re.findall(r"(\d+) (passed|failed|skipped|deselected|errors?|timeout)\b", line)
             for line in output.splitlines()]
    last = next((pairs for pairs in reversed(found) if pairs), [("1", "crashed")])
    return Counter({what.removesuffix("s"): int(count) for count, what in last})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=SUITES)
    parser.add_argument("files", nargs="*", help="parts of the paths of files; all files if there are none")
    parser.add_argument("--jax", action="store_true", help="over JAX, to compare the counts")
    parser.add_argument("--share", type=int, default=100, help="how many tests of a hundred are run")
    parser.add_argument("--share-from", type=int, default=0, help="how many of a hundred are passed over before those")
    parser.add_argument("--limit", type=float, default=600, help="the seconds that one file may take")
    parser.add_argument("--report", type=Path, help="a file for the whole output")
    arguments = parser.parse_args()
    choice = Choice(arguments.library, arguments.jax, arguments.share, arguments.limit, arguments.share_from)
    counts = Counter[str]()
    with arguments.report.open("w") if arguments.report else nullcontext() as report:
        for output in outputs(choice, arguments.files):
            counts += counts_of(output)
            if report:
                print(output, file=report, flush=True)
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
