"""The text of a public name: its docstring, or the string that replaces one.

An alias, a number or a class of another library's has no docstring of ours: its text is the string below its
assignment, where editors look for it too.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from pathlib import Path
from typing import Any

from docs.builder.names import sources_of
from xlamini.core.flags.config import Flag
from xlamini.core.program.primitive import Primitive


def text(name: str, member: Any) -> str:
    """What the reference says of a public name; empty if there is nothing."""
    if isinstance(member, Flag):
        return f"Flag: {member.help}."
    if isinstance(member, Primitive):
        return inspect.getdoc(member) or f"The primitive of equations `{member.name}`."
    return _own(member) or below_assignment(name) or _of_its_class(member)


def _own(member: Any) -> str:
    """The docstring of a function or class of this package, or of an object that was given one."""
    doc = inspect.getdoc(member) or ""
    return doc if _is_ours(member) and doc != inspect.getdoc(type(member)) else ""


def _of_its_class(member: Any) -> str:
    return inspect.getdoc(member) or "" if _is_ours(type(member)) else ""


def _is_ours(member: Any) -> bool:
    return (getattr(member, "__module__", None) or "").startswith("xlamini")


def below_assignment(name: str) -> str:
    """The string below the assignment of a name in the module that its face takes it from.

    >>> below_assignment("xlamini.typing.ArrayLike").split(";")[0]
    'An array, or a number'
    """
    module, _, attribute = name.rpartition(".")
    while module.startswith("xlamini") and module in sys.modules:
        found, imported = _assigned(module)
        if attribute in found:
            return found[attribute]
        face = sources_of(sys.modules[module])
        module, attribute = (face[attribute], attribute) if attribute in face else imported.get(attribute, ("", ""))
    return ""


@functools.cache
def _assigned(module: str) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """The texts below a module's own names, empty for none, and the module and name of each name that it imports."""
    body = ast.parse(Path(str(sys.modules[module].__file__)).read_text()).body
    found, imported = {}, {}
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ImportFrom) and node.module:
            imported.update({alias.asname or alias.name: (node.module, alias.name) for alias in node.names})
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = ""
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            found.update(dict.fromkeys(_targets(node), _string(following)))
    return found, imported


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _string(node: ast.stmt | None) -> str:
    value = node.value if isinstance(node, ast.Expr) else None
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return inspect.cleandoc(value.value) if is_text else ""
