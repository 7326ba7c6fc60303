"""`python -m xlamini inspect train.py:step --arg 'f32[128,784]' -o step.html`: `xlamini.inspect` from a shell.

The exit code is 0; 1 if a check fails or the program does not compile; 2 if the command line is wrong, or the function
cannot be traced.
"""
from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import xlamini
from xlamini.commands.argument_text import filled, parse_argument
from xlamini.core.console import printable
from xlamini.core.flags.environment_variables import near
from xlamini.inspection.limits import parse_limit
from xlamini.inspection.schema import read_report
from xlamini.inspection.text import LEAST_WIDTH, SCREENS
from xlamini.inspection.timing.measure.function import RUNS

ABOUT = "Show how a function becomes kernels, from your lines through each rewrite to the compiled program."


class UsageError(Exception):
    """What is wrong with the command line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Inspect a function, write and print what was asked for; the exit code."""
    options = _parser().parse_args(argv)
    try:
        return _run(options)
    except UsageError as error:
        print(f"inspect: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    against = None if options.diff is None else _usage(read_report, options.diff)
    limits = _limits(options.check, against)
    if "time" in limits and not options.measure:
        raise UsageError("--check 'time…' is about the measured time; give --measure, which runs it")
    _check_outputs(options)
    function = _function(options.function)
    arguments = _arguments(options)
    report = _report(function, arguments, options)
    _write(report, against, options)
    _print(report, against, options)
    failed = _is_broken(report, against, limits)
    return 1 if failed or report.json()["failure"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m xlamini inspect", description=ABOUT)
    add = parser.add_argument
    add("function", metavar="FILE:FUNCTION", help="a file and a function in it, such as train.py:step")
    add("--arg", action="append", default=[], metavar="TYPE",
        help="an argument by its type, such as 'f32[8,4]', '{\"w\": f32[4]}', key, 3 or true; once for each argument")
    add("--args-from", metavar="FILE:FUNCTION", help="a function without arguments that returns them, in a tuple")
    add("--targets", default="here", metavar="NAMES", help="what to compile for: here,tpu:v5e:2x2,gpu:h200")
    add("-o", dest="page", metavar="PAGE.html", help="write the page")
    add("--json", metavar="FILE.json", help="write the report as JSON, for --diff, checks and tools of yours")
    add("--text", action="append", default=[], metavar="SCREEN", help=f"print a screen: {', '.join(SCREENS)}")
    add("--diff", metavar="OLD.json",
        help="print what has changed from an earlier report; the page shows it too, and checks may refer to it")
    add("--check", action="append", default=[], metavar="LIMIT",
        help="exit with 1 if a limit is broken: 'peak<14GiB', with --measure 'time<300ms', with --diff 'flops+5%%'")
    add("--no-source", action="store_true", help="leave the text of source files out of the report")
    add("--values", action="store_true",
        help="run the program; an argument that is a type gets random floats, or zeros if its dtype is an integer")
    add("--measure", action="store_true",
        help=f"run the compiled program here {RUNS}, its effects too, and give the times that the profiler saw beside "
        "the predicted ones; types become arrays as above")
    return parser  # fmt: skip


def _usage(call: Callable[..., Any], *args: Any) -> Any:
    """The result of a call whose ValueError or OSError is about the command line."""
    try:
        return call(*args)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None


def _limits(texts: Sequence[str], against: object) -> dict[str, str]:
    """The limits on each quantity, with commas between."""
    found: dict[str, list[str]] = {}
    for quantity, limit in (_limit(text, against) for text in texts):
        found.setdefault(quantity, []).append(limit)
    return {quantity: ",".join(limits) for quantity, limits in found.items()}


def _limit(text: str, against: object) -> tuple[str, str]:
    """The quantity and the limit in a text such as `peak<14GiB`."""
    match = re.fullmatch(r"\s*(\w+?)\s*([^\w\s].*)", text)
    if match is None:
        raise UsageError(f"--check {text!r} is no limit; write a quantity and a limit, such as 'peak<14GiB'")
    if _usage(parse_limit, match[1], match[2]).relative and against is None:
        raise UsageError(f"--check {text!r} compares with an earlier report; give --diff OLD.json")
    return match[1], match[2]


def _check_outputs(options: argparse.Namespace) -> None:
    """Find slips before minutes are spent on compilation."""
    for screen in options.text:
        if screen not in SCREENS:
            raise UsageError(f"--text: no screen {screen!r} (known: {', '.join(SCREENS)}){near(screen, SCREENS)}")
    for name, path, ending in (("-o", options.page, ".html"), ("--json", options.json, ".json")):
        if path is None:
            continue
        if not path.endswith(ending):
            raise UsageError(f"{name} {path}: the file's name must end in {ending}")
        if not Path(path).resolve().parent.is_dir():
            raise UsageError(f"{name} {path}: there is no folder {Path(path).parent}; make it first")


def _function(spec: str) -> Callable[..., Any]:
    """The function that a text such as `train.py:step` or `train.py:Model.step` names."""
    file, _, name = spec.rpartition(":")
    if not file or not name:
        raise UsageError(f"{spec!r} names no function; write FILE:FUNCTION, such as train.py:step")
    if not Path(file).is_file():
        raise UsageError(f"there is no file {file!r}")
    found: Any = _module(Path(file).resolve())
    for part in name.split("."):
        names = [n for n, value in vars(found).items() if callable(value) and not n.startswith("_")]
        if not hasattr(found, part):
            raise UsageError(f"{file} has no {part!r}{near(part, names)}")
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(f"{spec} is no function but a {type(found).__name__}")
    return found


def _module(file: Path) -> Any:
    """The module of a file, run once, with its folder on the path, as `python FILE` has it."""
    loaded = sys.modules.get(file.stem)
    if getattr(loaded, "__file__", None) == str(file):
        return loaded
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file.name} is no file of Python; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    if loaded is None:
        sys.modules[file.stem] = module
    _guarded(f"{file.name} failed", spec.loader.exec_module, module)
    return module


def _guarded(what: str, call: Callable[..., Any], *args: Any) -> Any:
    """The result of the user's code; an error of it in two lines: where, and what."""
    try:
        return call(*args)
    except Exception as error:
        raise UsageError(f"{what}{_where(error)}\n{type(error).__name__}: {error}") from error


def _where(error: Exception) -> str:
    """The user's line at which an error was raised."""
    own = str(Path(xlamini.__file__).parent)
    at, step = "", error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not file.startswith((own, "<frozen")):
            at = f" at {file}:{step.tb_lineno}"
        step = step.tb_next
    return at


def _arguments(options: argparse.Namespace) -> tuple[Any, ...]:
    if options.args_from is None:
        found = tuple(_usage(parse_argument, text) for text in options.arg)
        return filled(found) if options.values or options.measure else found
    if options.arg:
        raise UsageError("--arg and --args-from both give the arguments; leave one out")
    made = _guarded(f"{options.args_from} failed", _function(options.args_from))
    return tuple(made) if isinstance(made, list | tuple) else (made,)


def _report(function: Callable[..., Any], arguments: tuple[Any, ...], options: argparse.Namespace) -> Any:
    targets = [name.strip() for name in options.targets.split(",") if name.strip()]
    name = options.function.rpartition(":")[2]
    _say(f"tracing and compiling {name} for {', '.join(targets)}")
    if options.measure:
        _say(f"then it runs {RUNS}, its effects too")
    runs = {"values": options.values, "measure": options.measure}
    settings = {"targets": targets, "source": not options.no_source, **runs}
    return _guarded(f"{name} cannot be inspected", lambda: xlamini.inspect(function, **settings)(*arguments))


def _write(report: Any, against: Any, options: argparse.Namespace) -> None:
    for path in (options.page, options.json):
        if path is not None:
            _usage(lambda file=path: report.save(file, against=against))
            _say(f"wrote {path}, {Path(path).stat().st_size / 1e6:.3g} MB")


def _print(report: Any, against: Any, options: argparse.Namespace) -> None:
    """The screens that were asked for; the summary where nothing else was."""
    silent = options.page or options.json or options.check or options.diff
    screens = options.text or ([] if silent else ["summary"])
    if options.diff is not None and "diff" not in screens:
        screens = [*screens, "diff"]
    width = max(shutil.get_terminal_size((100, 24)).columns, LEAST_WIDTH) if sys.stdout.isatty() else 100
    for screen in screens:
        print(report.text(screen, width=width, **({"against": against} if screen == "diff" else {})), end="\n\n")


def _is_broken(report: Any, against: Any, limits: dict[str, str]) -> bool:
    if not limits:
        return False
    found = report.check(against=against, **limits)
    print(printable(str(found)))
    return not found


def _say(text: str) -> None:
    print(f"inspect: {text}", file=sys.stderr, flush=True)
