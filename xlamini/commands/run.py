"""`python -m xlamini run script.py args...`: run a program written for JAX; with `-m module`, a module."""
from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from xlamini.core.real_jax import CHILDREN

ABOUT = "Run a program that imports jax, with xlamini in jax's place."


def main(argv: Sequence[str] | None = None) -> None:
    """Run a script or a module as Python would, with `import jax` answered by xlamini."""
    options = parser("run", ABOUT).parse_args(argv)
    answer_jax()
    run_program(options)


def parser(command: str, about: str, instead: str = "") -> argparse.ArgumentParser:
    """The parser of a command that runs a program: `-m`, the program, and the program's own arguments.

    With the option that is called `instead` there needs to be no program.
    """
    found = ProgramParser(f"python -m xlamini {command}", description=about)
    found.instead = instead
    found.add_argument("-m", action="store_true", dest="module", help="run a module, as python -m does")
    found.add_argument("script", help="the program, in Python", nargs="?" if instead else None)
    found.add_argument("args", nargs=argparse.REMAINDER, help="the program's arguments (sys.argv)")
    return found


class ProgramParser(argparse.ArgumentParser):
    """A parser that refuses a script which is not there."""

    instead = ""

    def parse_args(self, *args: Any, **kwargs: Any) -> Any:
        options = super().parse_args(*args, **kwargs)
        if self.instead and (options.script is None) == (getattr(options, self.instead) is None):
            self.error(f"give a program, or --{self.instead}, one of both")
        if options.script is None:
            return options
        if not options.module and not Path(options.script).exists():
            self.error(f"there is no file {options.script!r}; a module is run by -m")
        return options


def answer_jax() -> None:
    """Answer `import jax` here, and in processes that the program starts by any way of starting."""
    import xlamini.as_jax  # noqa: F401 turns it on

    os.environ["PYTHONPATH"] = os.pathsep.join([str(CHILDREN), *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.path.insert(1, str(CHILDREN))  # multiprocessing hands the path on; the first place is the script's


def run_program(options: argparse.Namespace) -> dict[str, Any]:
    """Run what a command line names, as Python would, and return its global names.

    The traceback of an error that ends it begins at the program's own first frame. A module that is not there has none.
    """
    sys.argv[:] = [options.script, *options.args]
    try:
        if options.module:
            return runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        sys.path[0] = str(Path(options.script).resolve().parent)
        return runpy.run_path(options.script, run_name="__main__")
    except BaseException as error:
        if isinstance(error, ImportError) and _frames_of_program(error.__traceback__) is None:
            raise SystemExit(f"{sys.executable}: {error}") from None
        sys.excepthook = _from_program(sys.excepthook)
        raise


def _from_program(show: Callable[..., Any]) -> Callable[..., Any]:
    """A `sys.excepthook` that shows an error by another one, perhaps the program's, without the frames of this file."""

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        own = _frames_of_program(traceback)
        show(kind, error.with_traceback(own), own)

    return hook


def _frames_of_program(traceback: TracebackType | None) -> TracebackType | None:
    """The part of a traceback below `run_program` and runpy; all of it where the program was not running."""
    above = traceback
    while above is not None and above.tb_frame.f_code is not run_program.__code__:
        above = above.tb_next
    if above is None:
        return traceback
    while (own := above.tb_next) is not None and own.tb_frame.f_globals is vars(runpy):
        above = own
    return own
