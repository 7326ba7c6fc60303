"""Pages of the reference: one for each public module, or several by topic, written before Sphinx reads its sources.

Each page has a table of its names by autosummary, then every name by autodoc. The text is the docstring's.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from docs.builder.docstrings import to_rst
from docs.builder.names import names_of, public_modules
from docs.builder.topics import topics_of

ON_OTHER_PAGES = {"xlamini.errors"}
"""Modules whose names have a page in the sources: `docs/reference/errors.md`."""


def write(folder: Path) -> None:
    """Write all pages into `folder`, leave those that are the same, and delete those that no module has any more."""
    seen = {id(getattr(module, name)) for module in _elsewhere() for name in names_of(module)}
    pages = {f"{page}.rst": text for module in _shown() for page, text in _pages(module, seen).items()}
    for path in folder.rglob("*.rst"):
        if str(path.relative_to(folder)) not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def directive(module: ModuleType, name: str) -> str:
    """The directive of autodoc for a name: a class, a function (or what is called like one), or a value."""
    member = getattr(module, name)
    if inspect.isclass(member):
        return "autoexception" if issubclass(member, BaseException) else "autoclass"
    return "autofunction" if callable(member) and _has_signature(member) else "autodata"


def _elsewhere() -> list[ModuleType]:
    return [module for name, module in public_modules().items() if name in ON_OTHER_PAGES]


def _shown() -> list[ModuleType]:
    modules = public_modules()
    return [m for name, m in modules.items() if name not in ON_OTHER_PAGES and (names_of(m) or name == "xlamini")]


def _pages(module: ModuleType, seen: set[int]) -> dict[str, str]:
    topics = topics_of(module)
    if "" in topics:
        return {module.__name__: _page(module.__name__, _about(module), module, topics[""], seen)}
    of_topic = {title: f"{module.__name__}/{_slug(title)}" for title in topics}
    entries = "\n".join(f"   {title} <{page}>" for title, page in of_topic.items())
    overview = _heading(module.__name__) + _about(module) + f"\n.. toctree::\n\n{entries}\n"
    return {module.__name__: overview} | {
        page: _page(f"{module.__name__}: {title}", "", module, topics[title], seen) for title, page in of_topic.items()
    }


def _page(title: str, about: str, module: ModuleType, names: list[str], seen: set[int]) -> str:
    table = "\n".join(f"   {name}" for name in names)
    entries = "\n".join(_entry(module, name, seen) for name in names)
    start = f".. currentmodule:: {module.__name__}\n\n"
    return f"{_heading(title)}{about}\n{start}.. autosummary::\n   :nosignatures:\n\n{table}\n\n{entries}"


def _entry(module: ModuleType, name: str, seen: set[int]) -> str:
    """A class under its second name refers to the first, because Sphinx also lists it by the module that defines it."""
    member, kind = getattr(module, name), directive(module, name)
    options = ["   :no-value:"] if kind == "autodata" and not isinstance(member, int | float | str) else []
    if kind in ("autoclass", "autoexception") and id(member) in seen:
        options.append("   :no-index:")
    elif kind == "autoclass" and member.__module__.startswith("xlamini"):
        options.append("   :members:")
    seen.add(id(member))
    return "\n".join([f".. {kind}:: {module.__name__}.{name}", *options, ""])


def _about(module: ModuleType) -> str:
    return "\n".join(to_rst(inspect.cleandoc(module.__doc__ or "").splitlines()))


def _heading(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n\n"


def _slug(title: str) -> str:
    return re.sub(r"[^a-z]+", "-", title.lower())


def _has_signature(member: Any) -> bool:
    try:
        inspect.signature(member)
    except (TypeError, ValueError):
        return False
    return True
