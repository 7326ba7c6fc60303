"""The prompt of debug.breakpoint: commands as in pdb, over frames that are snapshots."""
from __future__ import annotations

import bdb
import cmd
import linecache
import pprint
import threading
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple, NoReturn, TextIO

_AROUND = 5
"""How many lines `list` shows before and after the current one."""
_one_at_a_time = threading.RLock()


class Frame(NamedTuple):
    """A Python frame when it was traced: its code and line, the module's names, and its variables."""

    code: CodeType
    line: int
    names: dict[str, Any]
    variables: Mapping[str, Any]

    @property
    def place(self) -> str:
        return f"{self.code.co_filename}({self.line}){self.code.co_qualname}"

    def source(self) -> list[tuple[int, str]]:
        """The numbered lines around the current one, in the same function."""
        lines = linecache.getlines(self.code.co_filename, self.names)
        first = max(self.line - _AROUND, 1 if self.code.co_name == "<module>" else self.code.co_firstlineno)
        return [(n, lines[n - 1].rstrip()) for n in range(first, min(self.line + _AROUND, len(lines)) + 1)]


class Prompt(cmd.Cmd):
    """Reads commands and runs them, until one of them continues or quits the program."""

    frames: Sequence[Frame]
    index: int

    prompt = "(xdb) "

    def __init__(self, frames: Sequence[Frame], stdin: TextIO | None = None, stdout: TextIO | None = None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput: bool = stdin is None and stdout is None
        self.frames, self.index = frames, 0

    def run(self) -> None:
        """Read commands, while no other thread does."""
        with _one_at_a_time:
            self._write("Entering xdb:")
            self.cmdloop()

    @property
    def frame(self) -> Frame:
        return self.frames[self.index]

    def do_p(self, text: str) -> None:
        """p expression: print its value."""
        self._show(text, repr)

    def do_pp(self, text: str) -> None:
        """pp expression: print its value, in several lines if it is long."""
        self._show(text, pprint.pformat)

    def do_u(self, _: str) -> None:
        """u(p): go to the frame of the caller."""
        self._go(1, "At topmost frame.")

    def do_d(self, _: str) -> None:
        """d(own): go back to the frame that was called."""
        self._go(-1, "At bottommost frame.")

    def do_l(self, _: str) -> None:
        """l(ist): the source around the current line."""
        self._write(f"> {self.frame.place}")
        for number, line in self.frame.source():
            self._write(f"{number:4d} {'->' if number == self.frame.line else '  '} {line}")

    def do_w(self, _: str) -> None:
        """w(here), bt: the frames, the innermost last; an arrow points at the current one."""
        for index in reversed(range(len(self.frames))):
            frame = self.frames[index]
            text = linecache.getline(frame.code.co_filename, frame.line, frame.names).strip()
            self._write(f"{'>' if index == self.index else ' '} {frame.place}\n-> {text}")

    def do_a(self, _: str) -> None:
        """a(rgs): the arguments of the function."""
        code = self.frame.code
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            self._write(f"{name} = {self.frame.variables.get(name)!r}")

    def do_c(self, _: str) -> bool:
        """c(ont(inue)): go on with the program."""
        return True

    def do_q(self, _: str) -> NoReturn:
        """q(uit), exit: stop the program with an error."""
        raise bdb.BdbQuit("the command was to quit, or the input has ended")

    do_up: Callable[..., None] = do_u
    do_down: Callable[..., None] = do_d
    do_list: Callable[..., None] = do_l
    do_args: Callable[..., None] = do_a
    do_bt: Callable[..., None]
    do_where = do_bt = do_w
    do_continue: Callable[..., bool]
    do_cont = do_continue = do_c
    do_EOF: Callable[..., NoReturn]
    do_exit: Callable[..., NoReturn]
    do_quit = do_exit = do_EOF = do_q

    def default(self, line: str) -> None:
        """What is no command is an expression."""
        self.do_p(line)

    def emptyline(self) -> bool:
        """An empty line repeats nothing: a command may cost a computation."""
        return False

    def _show(self, text: str, form: Any) -> None:
        try:
            self._write(form(eval(text, {**self.frame.names, **self.frame.variables})))
        except Exception as error:
            self._write(f"*** {type(error).__name__}: {error}")

    def _go(self, step: int, end: str) -> None:
        if 0 <= self.index + step < len(self.frames):
            self.index += step
        else:
            self._write(end)
        self.do_l("")

    def _write(self, text: str) -> None:
        self.stdout.write(f"{text}\n")
