"""What a function can reach from outside: globals, variables of enclosing functions, the objects of its methods.

The search follows functions that it calls by name, as long as they are the user's. A fingerprint of a value says what
it holds, three levels deep; so that of a list changes when an element is appended, and that of an object when an
attribute is set.
"""
from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Tracer
from xlamini.core.errors.frames import definition, hidden_files

_DEEP = 3
"""How many levels of containers a fingerprint looks into."""
_LARGE = 1 << 20
"""The size in bytes from which an array counts as unchanged while it is the same object."""
_PLAIN = (type(None), bool, int, float, complex, str, bytes)


class Reached(NamedTuple):
    """A name that a function reads or writes, where it does, and how to read its value now.

    `names` are those of all globals and attributes that the function refers to.
    """

    name: str
    file: str
    line: int
    read: Callable[[], Any]
    names: frozenset[str] = frozenset()


def reached_from(f: Callable[..., Any]) -> list[Reached]:
    """All names outside of `f` that it and the user's functions that it calls refer to."""
    found: dict[Any, Reached] = {}
    waiting, seen = [f], set()
    while waiting:
        fun = waiting.pop()
        if isinstance(fun, functools.partial):
            waiting.extend([fun.func, *fun.args])
        for owner, plain in _functions(fun):
            if plain in seen or hidden_files[plain.__code__.co_filename]:
                continue
            seen.add(plain)
            names = frozenset(_all_names(plain.__code__))
            for reached in [*_names(plain), *_owner(plain, owner)]:
                found.setdefault((reached.file, reached.name), reached._replace(names=names))
                waiting.append(reached.read())
    return list(found.values())


def parts_read(reached: Reached, deep: int = _DEEP) -> Iterator[Reached]:
    """What the function can read of a name: of a user's object those attributes that it refers to, else the value."""
    value = reached.read()
    if not (deep and _is_users(value)):
        yield reached
        return
    for name in sorted(_with_those_of_methods(reached.names, type(value)) & vars(value).keys()):
        part = reached._replace(name=f"{reached.name}.{name}", read=functools.partial(_attribute, reached.read, name))
        yield from parts_read(part, deep - 1)


def argument(name: str, value: Any, f: Callable[..., Any]) -> Reached:
    """A static argument of `f`, as a name that it reads."""
    of_others = [r.names for r in reached_from(f)]
    names = frozenset[str]().union(*of_others, *(_all_names(g.__code__) for _, g in _functions(f)))
    return Reached(name, *definition(inspect.unwrap(f)), lambda: value, names)


def _with_those_of_methods(names: frozenset[str], owner: type) -> frozenset[str]:
    """Names, and those that the methods among them refer to."""
    methods = [m for base in owner.__mro__ for name, m in vars(base).items() if name in names]
    found = names.union(*(_all_names(m.__code__) for m in methods if isinstance(m, FunctionType)))
    return found if found == names else _with_those_of_methods(found, owner)


def _attribute(read: Callable[[], Any], name: str) -> Any:
    return getattr(read(), name, None)


def _functions(x: Any) -> Iterator[tuple[Any, FunctionType]]:
    """The Python functions that a call of `x` runs, with the objects that they are methods of."""
    if isinstance(x, MethodType):
        owner, x = x.__self__, x.__func__
    else:
        owner = None
    plain = inspect.unwrap(x) if callable(x) and not isinstance(x, type) else x
    if isinstance(plain, FunctionType):
        yield owner, plain
    elif _is_users(plain) and isinstance(call := vars(type(plain)).get("__call__"), FunctionType):
        yield plain, call


def _owner(plain: FunctionType, owner: Any) -> list[Reached]:
    if owner is None or isinstance(owner, type):
        return []
    code = plain.__code__
    return [Reached(code.co_varnames[0], code.co_filename, code.co_firstlineno, lambda: owner)]


def _names(plain: FunctionType) -> Iterator[Reached]:
    """The globals and variables of enclosing functions that the code refers to, and attributes of user's modules."""
    code, space = plain.__code__, plain.__globals__
    for name, line in _lines_of_names(code).items():
        if name in space and not isinstance(space[name], ModuleType):
            yield Reached(name, code.co_filename, line, functools.partial(space.get, name))
    for name, cell in zip(code.co_freevars, plain.__closure__ or (), strict=False):
        yield Reached(name, code.co_filename, _line_of(code, name), functools.partial(_contents, cell))
    for module in (space[n] for n in _lines_of_names(code) if isinstance(space.get(n), ModuleType)):
        if not hidden_files[getattr(module, "__file__", None) or ""] and not is_library(module.__name__):
            for name in set(code.co_names) & vars(module).keys():
                yield Reached(name, code.co_filename, code.co_firstlineno, functools.partial(getattr, module, name))


def _all_names(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes in the code, and in the functions in it."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _all_names(const)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return None


def _lines_of_names(code: CodeType) -> dict[str, int]:
    """The global names that the code and the functions in it refer to, with a line of each: that of a write, if any."""
    found: dict[str, int] = {}
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        line = _line(instruction) or line
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            found[instruction.argval] = line
        elif instruction.opname == "LOAD_GLOBAL":
            found.setdefault(instruction.argval, line)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            found = {**_lines_of_names(const), **found}
    return found


def _line(instruction: dis.Instruction) -> int | None:
    """The instruction's line; `starts_line` is a truth value from Python 3.13 on."""
    return None if instruction.positions is None else instruction.positions.lineno


def _line_of(code: CodeType, name: str) -> int:
    """A line that refers to a variable of an enclosing function; that of a write, if there is one."""
    line, found = code.co_firstlineno, {}
    for instruction in dis.get_instructions(code):
        line = _line(instruction) or line
        if instruction.argval == name:
            found.setdefault(instruction.opname.startswith("STORE"), line)
    return found.get(True, found.get(False, code.co_firstlineno))


def is_library(module: str) -> bool:
    """Whether a module is one of the standard library's, or of NumPy's and jaxlib's."""
    root = module.partition(".")[0]
    return root in sys.stdlib_module_names or root in ("numpy", "jaxlib", "ml_dtypes")


def _is_users(x: Any) -> bool:
    """Whether `x` is an object of a class that the user wrote."""
    module = sys.modules.get(type(x).__module__)
    if module is None or isinstance(x, type | ModuleType | FunctionType) or is_library(module.__name__):
        return False
    return not hidden_files[getattr(module, "__file__", None) or ""] and hasattr(x, "__dict__")


# --- fingerprints


def fingerprint(x: Any, deep: int = _DEEP) -> Any:
    """What a value holds now, as plain data."""
    if isinstance(x, _PLAIN):
        return type(x), x
    if isinstance(x, Tracer):
        return "tracer", id(x)
    if isinstance(x, np.ndarray):
        return id(x), x.shape, x.tobytes() if x.nbytes <= _LARGE else None
    return _of_container(x, deep - 1) if deep else id(x)


def _of_container(x: Any, deep: int) -> Any:
    if isinstance(x, list | tuple | set | frozenset):
        return id(x), [fingerprint(v, deep) for v in x]
    entries = x if isinstance(x, dict) else vars(x) if _is_users(x) else None
    return id(x) if entries is None else ("map", id(x), {repr(k): fingerprint(v, deep) for k, v in entries.items()})


def is_written(before: Any, after: Any) -> bool:
    """Whether a value was written. A dict or object that only has new entries is a cache, unless they are tracers."""
    if before == after:
        return False
    if not (_is_map(before) and _is_map(after)) or before[1] != after[1] or not before[2].keys() <= after[2].keys():
        return True
    new = [after[2][name] for name in after[2].keys() - before[2].keys()]
    return any(map(_has_tracer, new)) or any(is_written(v, after[2][name]) for name, v in before[2].items())


def _is_map(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) == 3 and x[0] == "map"


def _has_tracer(x: Any) -> bool:
    if isinstance(x, dict):
        return any(map(_has_tracer, x.values()))
    return isinstance(x, tuple | list) and ("tracer" in x[:1] or any(map(_has_tracer, x)))
