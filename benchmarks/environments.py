"""Locates or creates the environment with JAX; xlamini uses the interpreter that runs this."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import venv
from pathlib import Path

JAX_REQUIREMENT = "jax==0.10.2"
JAX_PYTHON_VARIABLE = "XLAMINI_BENCH_JAX_PYTHON"
ECOSYSTEM_FOLDERS = {".venv-ecosystem": "", ".venv-ecosystem-jax": " --jax"}
"""The environments with the libraries, without JAX and with it, and what is asked of the command that makes them."""


def find_jax_python(given: str | None, root: Path) -> str:
    """Return `given`, or the value of the environment variable, or the interpreter in .venv-jax.

    Creates .venv-jax in `root` when needed. Raises RuntimeError if the interpreter has no JAX.
    """
    python = given or os.environ.get(JAX_PYTHON_VARIABLE) or _make_environment(root / ".venv-jax")
    if not _can_import_jax(python):
        raise RuntimeError(
            f"{python} cannot import jax; give another interpreter with --jax-python, or run "
            f"{python} -m pip install {JAX_REQUIREMENT}"
        )
    return python


def find_ecosystem(root: Path) -> tuple[str, str]:
    """Return the interpreters of the ecosystem's environments in `root`, without JAX and with it.

    Raises RuntimeError if one is missing: it installs eighty packages, which a benchmark should not do by itself.
    """
    without, with_jax = (_ecosystem_python(root / name, option) for name, option in ECOSYSTEM_FOLDERS.items())
    return without, with_jax


def _ecosystem_python(folder: Path, option: str) -> str:
    python = folder / "bin/python"
    if not python.exists():
        raise RuntimeError(f"there is no {folder.name}; make it with python -m tests.ecosystem.environment{option}")
    return str(python)


def compile_bytecode(root: Path) -> None:
    """Compile xlamini's bytecode, as an installation does; JAX's is already in its environment."""
    compileall.compile_dir(root / "xlamini", quiet=1)


def _can_import_jax(python: str) -> bool:
    try:
        done = subprocess.run([python, "-c", "import jax"], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def _make_environment(folder: Path) -> str:
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        print(f"making {folder.name} with {JAX_REQUIREMENT} (once)", file=sys.stderr)
        venv.create(folder, with_pip=True)
        (folder / ".gitignore").write_text("*\n")
        install = [str(python), "-m", "pip", "install", "--quiet", JAX_REQUIREMENT]
        subprocess.run(install, check=True)
    return str(python)
