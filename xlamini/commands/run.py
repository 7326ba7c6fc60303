"""`python -m xlamini run script.py args...`: run a program written for JAX; with `-m module`, a module."""
from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from xlamini.core.real_jax import CHILDREN


def main(argv: Sequence[str] | None = None) -> None:
    """Run a script or a module as Python would, with `import jax` answered by xlamini."""
    parser = _parser()
    options = parser.parse_args(argv)
    if not options.module and not Path(options.script).exists():
        parser.error(f"there is no file {options.script!r}; a module is run by -m")
    import xlamini.as_jax  # noqa: F401 turns it on

    _answer_in_children()
    sys.argv[:] = [options.script, *options.args]
    if options.module:
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(options.script).resolve().parent)
        runpy.run_path(options.script, run_name="__main__")


def _answer_in_children() -> None:
    """Let processes that the program starts find a package `jax` that turns the answer on, by any way of starting."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(CHILDREN), *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.path.insert(1, str(CHILDREN))  # multiprocessing hands the path on; the first place is the script's


def _parser() -> argparse.ArgumentParser:
    about = "Run a program that imports jax, with xlamini in jax's place."
    parser = argparse.ArgumentParser("python -m xlamini run", description=about)
    parser.add_argument("-m", action="store_true", dest="module", help="run a module, as python -m does")
    parser.add_argument("script", help="the program, in Python")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the program's arguments (sys.argv)")
    return parser
