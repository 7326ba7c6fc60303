"""Public modules whose names a type stub lists: the `.pyi` beside a face is read at import, and names load on demand.

The stub is the one list of public names, for Python and for type checkers. It has one form only, so that a few lines
read it in a fraction of a millisecond where `ast` takes ten times as long: `from module import a as a, b as b`, in
parentheses where that takes several lines.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from xlamini.core.errors.api_boundary import make_edge
from xlamini.core.errors.missing_names import no_name

Attached = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def attach_stub(package: str) -> Attached:
    """`__getattr__`, `__dir__` and `__all__` of the module called `package`, from the stub beside it.

    Every name is lazy: its module is imported when the name is first used, so that a program pays for what it uses. A
    function is then an edge, which keeps the library's frames out of tracebacks. Modules that must be imported for
    their effects, the face imports itself.

    `dir()` lists the names of the stub alone, so that completion and `help` show no module of the inside.

    One kind of name is eager: a function called like the submodule that defines it, as `einsum` in `numpy/einsum.py`.
    A later import of that submodule would replace the function by the module.
    """
    namespace = vars(sys.modules[package])
    modules = read_stub(_stub_text(namespace["__spec__"]))

    def load(name: str) -> Any:
        if name not in modules:
            no_name(package, name, modules, sys._getframe(1))
        if modules[name] == package:
            return import_module(f"{package}.{name}")
        namespace[name] = getattr(import_module(modules[name]), name)
        make_edge(namespace, name)
        return namespace[name]

    for name, module in modules.items():
        if module == f"{package}.{name}":
            load(name)
    return load, lambda: sorted(modules), [name for name in modules if not name.startswith("_")]


def read_stub(text: str) -> dict[str, str]:
    """The module of each name in a stub.

    >>> read_stub("from xlamini.numpy.sorting import sort as sort, argsort as argsort")
    {'sort': 'xlamini.numpy.sorting', 'argsort': 'xlamini.numpy.sorting'}
    """
    modules = {}
    for statement in f"\n{text}".split("\nfrom ")[1:]:
        module, _, names = statement.partition(" import ")
        modules.update(dict.fromkeys(names.strip("(), \n").split()[::3], module))
    return modules


def _stub_text(spec: Any) -> str:
    """The text of the stub, from the loader of its module, which may read from a zip file."""
    path, _, _ = spec.origin.rpartition(".")
    return spec.loader.get_data(f"{path}.pyi").decode()
