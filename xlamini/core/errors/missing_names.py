"""Names that a module or an array does not have: the AttributeError says what to write instead.

The text is made when somebody reads it, because `hasattr` does not. A name of another library is in the tables of
`other_names`; any other may be in another public module, or misspelt.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

from xlamini.core.errors.other_names import ARRAY, MODULES
from xlamini.core.flags.environment_variables import near

_OTHERS = "xlamini numpy nn scipy.special lax numpy.linalg scipy.linalg random tree tree_util sharding debug".split()


class Text:
    """The text of an error, made when it is read."""

    args: tuple[Any, ...]
    end: Callable[..., str]
    start: str

    def __init__(self, start: str, end: Callable[..., str], *args: Any):
        self.start, self.end, self.args = start, end, args

    def __str__(self) -> str:
        return self.start + self.end(*self.args)

    __repr__ = __str__

    def __reduce__(self) -> Any:
        return str, (str(self),)


def refuse(text: Any, name: str, module: str, caller: FrameType) -> NoReturn:
    """AttributeError; ImportError for `from module import name`, where Python would drop the text of the former.

    Python adds a guess of its own to an error with `obj`, so there is none.
    """
    if dis.opname[caller.f_code.co_code[caller.f_lasti]] == "IMPORT_FROM":
        raise ImportError(str(text), name=module)
    raise AttributeError(text, name=name)


def no_name(module: str, name: str, names: Iterable[str], caller: FrameType) -> NoReturn:
    """The error about a name that the public module called `module`, which has `names`, lacks."""
    start = f"module {sys.modules[module].__name__!r} has no attribute {name!r}"
    refuse(Text(start, _advice, module, name, names), name, module, caller)


def _advice(module: str, name: str, names: Iterable[str]) -> str:
    if name.startswith("__"):
        return ""
    known = MODULES.get(module, {}).get(name)
    return (f"; write {known}" if known else _elsewhere(name)) or near(name, names)


def _elsewhere(name: str) -> str:
    """The first public module that has the name."""
    modules = ["xlamini", *(f"xlamini.{module}" for module in _OTHERS[1:])]
    found = [module for module in modules if name in getattr(import_module(module), "__all__", ())]
    return f"; there is {found[0]}.{name}" if found else ""


class _Missing:
    """In the place of a method of other libraries': a name to which the class answers with an error.

    `__getattr__` would be called for such a name only, too, but Python looks up all others more slowly beside it.
    """

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        kind = "Array" if owner.__module__.startswith("jaxlib") else owner.__name__
        text = f"{kind!r} object has no attribute {self.name!r}; write {ARRAY[self.name]}"
        raise AttributeError(text, name=self.name)


def _dir_without(self: Any) -> list[str]:
    kind = type(self)
    return [name for name in object.__dir__(self) if type(vars(kind).get(name)) is not _Missing]


def answer_for_other_methods(kind: type) -> None:
    """Let values of a class of arrays say what is written for the methods that other libraries' arrays have."""
    for name in ARRAY:
        if name not in vars(kind):
            setattr(kind, name, _Missing(name))
    kind.__dir__ = _dir_without  # type: ignore[method-assign]


def public_dir(module: str, names: Iterable[str]) -> tuple[Callable[[str], NoReturn], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a public module that holds its `names`."""
    def missing(name: str) -> NoReturn:
        no_name(module, name, names, sys._getframe(1))

    return missing, lambda: sorted(names)
