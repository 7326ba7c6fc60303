"""debug.breakpoint: a prompt where a program has computed the values that a traced function had at a line.

When the function is traced, the frames of the user's functions are recorded. The arrays among their variables are
arguments of a callback, which puts the computed ones in their places and then reads commands.
"""
from __future__ import annotations

import bdb
import cmd
import linecache
import pprint
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any, NamedTuple, TextIO

from xlamini.core import Tracer, flatten, unflatten
from xlamini.core.frames import is_of_library
from xlamini.transforms.callbacks.debug import callback


class _Recorded(NamedTuple):
    """A frame of the traced function's stack: its place and its variables."""

    file: str
    line: int
    name: str
    globals: dict[str, Any]
    locals: dict[str, Any]

    def place(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        return f"{self.file}({self.line}){self.name}()" + (f"\n-> {source}" if source else "")


def debug_breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
) -> None:
    """Stop a running program and read commands, which look at the values of the variables around the call.

    Commands: `p` and `pp` print an expression, `u` and `d` go up and down the stack, `w` prints the stack, `l` the
    lines around, `c` continues the program, `q` ends it. Under vmap it stops for each example, under grad in the
    forward pass. All arrays among the variables of the stack are computed for it.

    Args:
      backend: None, or "cli".
      filter_frames: leave out the frames of this library.
      num_frames: the number of frames that are recorded, from the innermost; by default all.
      ordered: whether it runs after all earlier ordered effects; see io_callback.
      token: None; it is accepted as JAX's function has it.
      stdin: a file to read from, in place of the terminal; `stdout` is written to likewise.

    Raises ValueError for another backend.

    >>> import io
    >>> def f(x):
    ...     y = 2 * x
    ...     debug_breakpoint(stdin=io.StringIO("p y"))
    ...     return y
    >>> xlamini.jit(f)(3.0)  # doctest: +ELLIPSIS
    > ...
    (debug) 6.0
    (debug)
    Array(6., dtype=float32, weak_type=True)
    """
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint: backend must be None or 'cli', got {backend!r}; there is one prompt")
    frames = _frames(sys._getframe(1), filter_frames)[:num_frames]
    trees = [_flat(frame.locals) for frame in frames]
    places = [(i, j) for i, (leaves, _) in enumerate(trees) for j, x in enumerate(leaves) if _is_live(x)]

    def stop(*values: Any) -> None:
        filled = [list(leaves) for leaves, _ in trees]
        for (i, j), value in zip(places, values, strict=True):
            filled[i][j] = value
        every = zip(frames, filled, trees, strict=True)
        _Prompt([f._replace(locals=unflatten(tree, new)) for f, new, (_, tree) in every], stdin, stdout).cmdloop()

    callback(None, ordered=ordered)(stop, *(trees[i][0][j] for i, j in places))


def _frames(innermost: FrameType | None, filtered: bool) -> list[_Recorded]:
    found = []
    frame = innermost
    while frame is not None:
        if not (filtered and is_of_library(frame)):
            code, in_module = frame.f_code, frame.f_locals is frame.f_globals
            variables = {} if in_module else dict(frame.f_locals)
            found.append(_Recorded(code.co_filename, frame.f_lineno, code.co_name, frame.f_globals, variables))
        frame = frame.f_back
    return found


def _flat(variables: dict[str, Any]) -> tuple[list[Any], Any]:
    """The leaves of a function's variables; a pytree that cannot be flattened is one leaf."""
    try:
        return flatten(variables, _is_opaque)
    except (TypeError, ValueError):
        return flatten(variables, lambda x: x is not variables)


def _is_opaque(x: Any) -> bool:
    """Whether it is another iterable than the containers of Python, such as a generator or a file."""
    return isinstance(x, Iterable) and not isinstance(x, dict | list | tuple)


def _is_live(x: Any) -> bool:
    return isinstance(x, Tracer) and x.builder.is_tracing()


class _Prompt(cmd.Cmd):
    """The commands at a breakpoint."""

    prompt = "(debug) "

    def __init__(self, frames: list[_Recorded], stdin: TextIO | None, stdout: TextIO | None):
        super().__init__(stdin=stdin, stdout=stdout or sys.stdout)
        self.use_rawinput = stdin is None
        self.frames, self.at = frames, 0

    def preloop(self) -> None:
        self.say("> " + self.frames[self.at].place())

    def say(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def value(self, text: str) -> Any:
        frame = self.frames[self.at]
        return eval(text, {**frame.globals, **frame.locals})

    def printed(self, text: str, form: Any) -> None:
        try:
            self.say(form(self.value(text)))
        except Exception as error:  # whatever the user's expression raises
            self.say(f"*** {type(error).__name__}: {error}")

    def do_p(self, text: str) -> None:
        """p EXPRESSION: print its value."""
        self.printed(text, str)

    def do_pp(self, text: str) -> None:
        """pp EXPRESSION: print its value in several lines."""
        self.printed(text, pprint.pformat)

    def default(self, line: str) -> bool | None:
        if line == "EOF":
            self.say("")
            return True
        return self.do_p(line)

    def emptyline(self) -> bool:
        return False

    def moved(self, step: int) -> None:
        self.at = min(max(self.at + step, 0), len(self.frames) - 1)
        self.preloop()

    def do_up(self, _: str) -> None:
        """u(p): go to the frame that called this one."""
        self.moved(1)

    def do_down(self, _: str) -> None:
        """d(own): go to the frame that this one called."""
        self.moved(-1)

    def do_where(self, _: str) -> None:
        """w(here), bt: print the stack, the innermost frame last."""
        for i, frame in reversed(list(enumerate(self.frames))):
            self.say(("> " if i == self.at else "  ") + frame.place())

    def do_list(self, _: str) -> None:
        """l(ist): print the lines around."""
        frame = self.frames[self.at]
        for number in range(max(frame.line - 5, 1), frame.line + 6):
            line = linecache.getline(frame.file, number).rstrip()
            self.say(f"{number:4}{'->' if number == frame.line else '  '} {line}")

    def do_continue(self, _: str) -> bool:
        """c(ont(inue)): go on with the program."""
        return True

    def do_quit(self, _: str) -> None:
        """q(uit), exit: end the program with an error."""
        raise bdb.BdbQuit("quit at debug.breakpoint")

    do_u, do_d, do_w, do_bt, do_l = do_up, do_down, do_where, do_where, do_list
    do_c = do_cont = do_continue
    do_q = do_exit = do_quit
