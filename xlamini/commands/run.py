"""`python -m xlamini run script.py args...`: run a program written for JAX; with `-m module`, a module."""
from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> None:
    """Run a script or a module as Python would, with `import jax` answered by xlamini."""
    parser = _parser()
    options = parser.parse_args(argv)
    if not options.module and not Path(options.script).exists():
        parser.error(f"there is no file {options.script!r}; a module is run by -m")
    import xlamini.as_jax  # noqa: F401 turns it on

    sys.argv[:] = [options.script, *options.args]
    if options.module:
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(options.script).resolve().parent)
        runpy.run_path(options.script, run_name="__main__")


def _parser() -> argparse.ArgumentParser:
    about = "Run a program that imports jax, with xlamini in jax's place."
    parser = argparse.ArgumentParser("python -m xlamini run", description=about)
    parser.add_argument("-m", action="store_true", dest="module", help="run a module, as python -m does")
    parser.add_argument("script", help="the program, in Python")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the program's arguments (sys.argv)")
    return parser
