"""What the house counts of itself: numbers that only fall. `python -m tests.support.house_counts` prints them.

`--lower` writes them into the table of tests/test_house_limits.py, where they are less than the limits there.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support import house_caches
from tests.support.paths import ROOT
from xlamini.core.flags.config import flags

PACKAGE = ROOT / "xlamini"
TABLE = ROOT / "tests" / "test_house_limits.py"

SPINE = set("core runtime lowering primitives interpreters staging transforms lax numpy random nn extend".split())
KERNELS = (
    "transforms/pallas/", "lowering/kernels/", "runtime/kernels/", "nn/kernels/", "experimental/pallas/",
    "core/program/kernels.py", "core/program/ref_parts.py", "numpy/indexing/ref_parts.py", "nn/tiled_attention.py",
    "nn/fused_attention.py", "transforms/fused_call.py", "staging/aot/kernel",
)  # fmt: skip
"""The rooms of kernels of one's own, counted apart from the spine and the extras."""
EXTRAS = set("inspection experimental scipy analysis as_jax commands doctor example_libraries".split())
MANY = 8
"""So many parameters are too many to remember in their order."""

_TOKEN = re.compile(
    r"""[rRbBfFuU]{0,2}(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"|(?P<comment>\#[^\n]*)|[\d.]*\d\w*\.?(?:[eE][-+]?\d+)?|\w+|\*\*=?|//=?|<<=?|>>=?|\.\.\.|->|:=|[-+*/%@&|^=!<>]=|[^\s\\]",
    re.DOTALL,
)


class Module:
    """A file of the package, read once."""

    def __init__(self, path: Path):
        self.path, self.name = path, str(path.relative_to(PACKAGE))
        self.text = path.read_text()
        self.tree = ast.parse(self.text, self.name)
        self.nodes = list(ast.walk(self.tree))

    @property
    def floor(self) -> str:
        """The first folder of its path, "" for a face in the root."""
        return self.name.partition("/")[0] if "/" in self.name else ""

    def tokens(self) -> int:
        """The tokens without comments and docstrings; a dotted name after `from` or `import` is one."""
        text = re.sub(r"(?m)^( *(?:from|import) )([\w.]+)", lambda m: m[1] + m[2].replace(".", "_"), self.text)
        count = sum(1 for match in _TOKEN.finditer(text) if match["comment"] is None)
        return count - sum(map(_is_text, self.nodes))

    def functions(self) -> Iterator[ast.FunctionDef]:
        return (node for node in self.nodes if isinstance(node, ast.FunctionDef))

    def imported(self) -> Iterator[tuple[str, str]]:
        """Module and name of what it imports by `from`."""
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and node.module:
                yield from ((node.module, alias.name) for alias in node.names)


@functools.cache
def modules() -> list[Module]:
    return [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]


def _is_text(node: ast.AST) -> bool:
    """Whether it is a text by itself, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _tokens(floors: set[str]) -> int:
    """In thousands, as each commit changes some."""
    return round(sum(m.tokens() for m in modules() if m.floor in floors and not m.name.startswith(KERNELS)) / 1000)


def _tokens_of_kernels() -> int:
    return round(sum(m.tokens() for m in modules() if m.name.startswith(KERNELS)) / 1000)


def _class(name: str, file: str) -> ast.ClassDef:
    (found,) = [
        node
        for m in modules()
        if m.floor == "core" and m.path.name == file
        for node in m.tree.body
        if isinstance(node, ast.ClassDef) and node.name == name
    ]
    return found


def _members_of_primitive() -> int:
    """Its attributes and methods, without those of Python's (`__init__`) and private ones."""
    names = set()
    for node in _class("Primitive", "primitive.py").body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return len({name for name in names if not name.startswith("_")})


def _traits() -> int:
    """The bits in core's primitive.py: capital names bound to a power of two."""
    (module,) = [m for m in modules() if m.floor == "core" and m.path.name == "primitive.py"]
    return sum(isinstance(node, ast.Assign) and _is_bit(node.value) for node in module.tree.body)


def _is_bit(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) is int and value.value.bit_count() == 1


def _inlined() -> int:
    """Calls `ctx.inline(…)` of rules; those within an inner function make the body of a region."""
    return sum(
        isinstance(node, ast.Call) and ast.unparse(node.func) == "ctx.inline"
        for m in modules()
        for node in _of_outer_functions(m.tree, 0)
    )


def _of_outer_functions(node: ast.AST, depth: int) -> Iterator[ast.AST]:
    """The nodes outside of functions and lambdas that are inside of others."""
    for child in ast.iter_child_nodes(node):
        inner = depth + isinstance(child, ast.FunctionDef | ast.Lambda)
        if inner < 2:
            yield child
            yield from _of_outer_functions(child, inner)


def _questions_for_the_platform() -> int:
    """Where a file of primitives reads an attribute `platform`."""
    return sum(
        isinstance(node, ast.Attribute) and node.attr == "platform"
        for m in modules()
        if m.floor == "primitives"
        for node in m.nodes
    )


def _routes_outside_of_the_pipeline() -> int:
    """Files on a program's way to StableHLO that call a pass themselves."""
    passes = {f"xlamini.interpreters.{name}": name for name in ("dce", "expand", "physical")}
    ways = ("staging/compile/", "staging/run/", "staging/aot/", "transforms/export/", "inspection/")
    return sum(
        any(passes.get(module) == name for module, name in m.imported())
        for m in modules()
        if m.name.startswith(ways) and m.path.name != "pipeline.py"
    )


def _with_many_parameters() -> int:
    def count(a: ast.arguments) -> int:
        return len([*a.posonlyargs, *a.args, *a.kwonlyargs])

    return sum(count(node.args) >= MANY for m in modules() for node in m.functions())


def classes_there_twice() -> dict[str, list[str]]:
    """The files of each class name that several classes have."""
    files: dict[str, list[str]] = {}
    for m in modules():
        for node in m.nodes:
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name, []).append(m.name)
    return {name: found for name, found in files.items() if len(found) > 1}


def _imports_inside_functions() -> int:
    return len(
        {
            (m.name, node.lineno)
            for m in modules()
            for function in m.functions()
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
    )


def _files_of_the_largest_folder() -> int:
    return max(Counter(m.path.parent for m in modules()).values())


def _memos() -> int:
    return sum(len(list(house_caches.memo_names(m.tree))) for m in modules() if m.path.name != "memo.py")


def _flags() -> int:
    return len(flags)


COUNTS = {
    "tokens of the spine, in thousands": lambda: _tokens(SPINE),
    "tokens of the extras, in thousands": lambda: _tokens(EXTRAS),
    "tokens of kernels, in thousands": _tokens_of_kernels,
    "members of Primitive": _members_of_primitive,
    "traits of primitives": _traits,
    "ctx.inline outside of regions": _inlined,
    "questions for the platform in primitives": _questions_for_the_platform,
    "routes outside of the pipeline": _routes_outside_of_the_pipeline,
    "functions of 8 or more parameters": _with_many_parameters,
    "class names that exist twice": lambda: len(classes_there_twice()),
    "imports inside functions": _imports_inside_functions,
    "files in the largest folder": _files_of_the_largest_folder,
    "memos": _memos,
    "flags": _flags,
}


@functools.cache
def counts() -> dict[str, int]:
    """All counts by name; what is counted and how, the functions above say."""
    return {name: count() for name, count in COUNTS.items()}


def lower(text: str, found: dict[str, int]) -> str:
    """The text of the table with each limit that is above its count lowered to it."""
    for name, count in found.items():
        text = re.sub(rf'("{re.escape(name)}": \()(\d+)', lambda m, n=count: m[1] + str(min(int(m[2]), n)), text)
    return text


if __name__ == "__main__":
    width = max(map(len, COUNTS))
    sys.stdout.writelines(f"{name:{width}} {count}\n" for name, count in counts().items())
    if "--lower" in sys.argv:
        TABLE.write_text(lower(TABLE.read_text(), counts()))
