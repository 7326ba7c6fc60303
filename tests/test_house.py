"""The house keeps its measures: sizes, docstrings, who imports jaxlib, and no primitive named where none belongs."""

from __future__ import annotations

import ast
import functools
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gpu.test_transformations_on_gpu import FILES, ON_THE_CPU_ONLY
from tests.support import house_caches
from tests.support.paths import ROOT
from tests.support.planted_mistakes import MISTAKES
from xlamini.commands import rules

PACKAGE = sorted((ROOT / "xlamini").rglob("*.py"))
CODE_FOLDERS = ("xlamini", "tests", "examples", "benchmarks", "docs")
CODE = [p for folder in CODE_FOLDERS for p in sorted((ROOT / folder).rglob("*.py"))]
PAGES = [p for kind in ("*.md", "*/*.md", "pyproject.toml", ".ci/run") for p in sorted(ROOT.glob(kind))]
FOLDERS = ("xlamini", "tests", "benchmarks", "examples")
PROSE_KINDS = ("*.md", "docs/**/*.md", "benchmarks/*.md", *(f"{folder}/**/README.md" for folder in FOLDERS))
PROSE = [p for kind in PROSE_KINDS for p in sorted(ROOT.glob(kind))]

LONGEST_FUNCTION, USUAL_FUNCTION, MEDIAN_FUNCTION = 40, 20, 7
LONGEST_FILE, LONGEST_TEST_FILE = 400, 500
WIDEST_PROSE, LONGEST_RELEASE = 120, 60
CHANGES = {"New", "Changed", "Fixed"}

# Which of jaxlib's modules a floor may import; a floor that is not here may import none.
JAXLIB = {
    "as_jax": r"jaxlib\.mlir\b",
    "core": r"jaxlib\._jax(\.(config|jax_jit|pytree|JaxRuntimeError).*)?$|jaxlib\.version$",
    "lowering": r"jaxlib\.(mlir|mosaic|triton)\b",
    "runtime": r"jaxlib\b",
}
FORBIDDEN = [r"\b(TODO|FIXME|XXX|HACK)\b", r"# type: ignore(?!\[)", r"# noqa(?!:)", r"/(root|home|work)/"]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), relative(path))


def length(function: ast.FunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    documented = ast.get_docstring(function) is not None
    skipped = function.body[0].end_lineno - function.body[0].lineno + 1 if documented else 0
    return function.end_lineno - function.lineno + 1 - skipped


def functions(paths: list[Path]) -> list[tuple[int, str]]:
    """The length of every function, and where it stands."""
    return [
        (length(node), f"{relative(path)}:{node.lineno} {node.name}")
        for path in paths
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef)
    ]


def imported(path: Path) -> Iterator[str]:
    """Modules that a file imports, `from a import b` as `a.b`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def long_functions(paths: list[Path]) -> list[str]:
    return [where for lines, where in functions(paths) if lines > LONGEST_FUNCTION]


@pytest.mark.slow
def test_no_function_is_long() -> None:
    assert long_functions(PACKAGE) == []


@pytest.mark.slow
def test_no_function_outside_of_the_package_is_long() -> None:
    assert long_functions([path for path in CODE if path not in {*PACKAGE}]) == []


@pytest.mark.full
def test_most_functions_are_short() -> None:
    lengths = sorted(lines for lines, _ in functions(PACKAGE))
    assert statistics.median(lengths) <= MEDIAN_FUNCTION
    assert lengths[len(lengths) * 9 // 10] < USUAL_FUNCTION


def test_no_file_is_long() -> None:
    lines = {relative(path): path.read_text().count("\n") for path in CODE if path.parent.name != "golden"}
    limits = {path: LONGEST_TEST_FILE if path.startswith("tests") else LONGEST_FILE for path in lines}
    assert {path: n for path, n in lines.items() if n > limits[path]} == {}


@pytest.mark.slow
def test_every_module_says_what_it_is() -> None:
    assert [relative(path) for path in CODE if path.read_text() and not ast.get_docstring(tree(path))] == []


def prose(page: str) -> Iterator[str]:
    """The lines of a Markdown page outside of tables and code, with each link as its text alone."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
    for line in re.sub(r"\]\([^)]*\)", "]", text).splitlines():
        if not line.startswith(("|", "    ")):
            yield line


def test_prose_is_wrapped() -> None:
    wide = [(p, line) for p in PROSE for line in prose(p.read_text()) if len(line) > WIDEST_PROSE]
    assert [f"{relative(path)}: {line}" for path, line in wide] == []


def test_each_release_is_a_short_list_of_sentences() -> None:
    for release in (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]:
        assert len(release.splitlines()) <= LONGEST_RELEASE, release.splitlines()[0]
        title, *parts = re.split(r"^### ", release, flags=re.MULTILINE)
        assert len(title.split("\n", 1)[1].strip()) == 0 and {part.split("\n")[0] for part in parts} <= CHANGES
        entries = [entry for part in parts for entry in re.split(r"^- ", part, flags=re.MULTILINE)[1:]]
        assert [entry for entry in entries if not re.fullmatch(r"(?:(?!\.\s).)+\.\s*", entry, re.DOTALL)] == []


def test_prose_leaves_out_tables_code_and_addresses() -> None:
    page = "A [link](docs/page.md)\n| cell |\n    code\n```\nfence\n```\nend"
    assert [line for line in prose(page) if line] == ["A [link]", "end"]


@pytest.mark.full
def test_jaxlib_is_imported_where_it_may_be() -> None:
    found = [(path, name) for path in PACKAGE for name in imported(path) if re.match(r"jax(lib)?\b", name)]
    assert [
        f"{relative(path)} imports {name}"
        for path, name in found
        if not re.match(JAXLIB.get(path.relative_to(ROOT / "xlamini").parts[0], "nothing"), name)
    ] == []


@pytest.mark.full
@pytest.mark.parametrize("floor", ["interpreters", "lowering"])
def test_no_primitive_is_named(floor: str) -> None:
    """Kernels are lowered from StableHLO, so that their tables have the names of its operations."""
    rewrites = {path.stem for path in (ROOT / "xlamini/interpreters").glob("*.py")}
    names = {row.primitive.name for row in rules.rows()} - rewrites
    assert len(names) > 20
    assert [
        f"{relative(path)}:{node.lineno} {node.value!r}"
        for path in sorted((ROOT / "xlamini" / floor).rglob("*.py"))
        if path.parent.name != "kernels"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and node.value in names
    ] == []


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_no_forbidden_words(pattern: str) -> None:
    texts = [path for path in [*CODE, *PAGES] if path != Path(__file__)]
    assert [relative(path) for path in texts if re.search(pattern, path.read_text())] == []


# --- names and rooms

FLOORS = ("core", "runtime", "lowering", "primitives", "interpreters", "staging", "transforms", "commands")
ADVERB_OR_PARTICIPLE = re.compile(r"\w*(?:(?<!e)ed|ly|wise|ways|ther|where)|anew|apart|alone|alike|several|start")
FIELD_WORDS = {
    "assembly", "bitwise", "distributed", "elementwise", "embed", "family", "gather", "only", "scatter",
}  # nouns that look like adverbs, the mathematicians' words, and names that JAX gives  # fmt: skip


def is_of_face(node: ast.stmt) -> bool:
    """Whether a statement belongs in a face: an import, a docstring, `__all__`, or the call that attaches the stub."""
    if isinstance(node, ast.Assign):
        names = [n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
        return all(name.startswith("__") for name in names)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)


def is_command(node: ast.stmt) -> bool:
    """Whether a statement is `if __name__ == "__main__": ...`."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def test_root_modules_are_faces_or_commands() -> None:
    roots = [p for p in (ROOT / "xlamini").glob("*.py") if not p.name.startswith("__")]
    assert [
        f"{relative(path)}:{node.lineno}"
        for path in roots
        for node in tree(path).body
        if not is_of_face(node) and not is_command(node)
    ] == []


def test_private_floors_say_so() -> None:
    pages = {floor: ast.get_docstring(tree(ROOT / "xlamini" / floor / "__init__.py")) for floor in FLOORS}
    assert [floor for floor, page in pages.items() if not page.splitlines()[0].startswith("Private: ")] == []


def test_modules_are_named_by_nouns_or_verbs() -> None:
    names = {part for path in PACKAGE for part in path.relative_to(ROOT / "xlamini").with_suffix("").parts}
    odd = {name for name in names if ADVERB_OR_PARTICIPLE.fullmatch(name.rpartition("_")[2])}
    assert {name for name in odd if name.rpartition("_")[2] not in FIELD_WORDS} == set()


# --- caches


def in_package(of: Callable[[ast.Module], Iterator[str]]) -> set[str]:
    root = ROOT / "xlamini"
    return {house_caches.where(root, path, name) for path in PACKAGE for name in of(tree(path))}


@pytest.mark.full
def test_every_cached_function_is_a_memo() -> None:
    """A bare `functools.cache` is for constants, which take no arguments, and for facts of the machine."""
    found = in_package(house_caches.bare_caches) - {f"core/caching/memo.py line {n}" for n in range(240)}
    assert found == house_caches.MACHINE


@pytest.mark.full
def test_every_table_of_a_module_is_a_memo() -> None:
    """But for registries: `xlamini.clear_caches()` could not bring back what they hold."""
    assert in_package(house_caches.tables) == house_caches.REGISTRIES


@pytest.mark.full
def test_memos_have_names_of_their_own() -> None:
    names = [name for path in PACKAGE if path.name != "memo.py" for name in house_caches.memo_names(tree(path))]
    assert len(names) > 30
    assert sorted(names) == sorted(set(names))


def test_files_that_a_gpu_runs_exist() -> None:
    """A machine without a GPU never opens them by these names."""
    assert not [name for name in (*FILES, *ON_THE_CPU_ONLY) if not (ROOT / "tests" / name).is_file()]


# --- trips

# How many files of the library each trip of tests/support/trips.py may cross: numbers that only fall, but for what a
# trip does more than it did: since the ledger of compilations a miss says why it is one, and how long each phase took;
# and a compilation asks which of XLA's libraries suits the program's convolutions. A stage has the programs of calls.
# A flattening keeps count of Python's recursion limit (core/pytree/flattening.py); eager transformations ask of each
# operation whether it depends on what is traced; derivatives of tanh are computed from its argument.
FILES_CROSSED = {
    "jit, first call": 62,
    "jit, second call": 0,
    "eager grad, first call": 86,
    "eager grad, third call": 40,
    "eager vmap, third call": 40,
    "make_jaxpr(grad(scan))": 69,
    "device_put(ndarray)": 9,
    "jnp.sinh, first call": 53,
    "jnp.sinh, second call": 1,
    "x + 1.0, second call": 4,
    "lower one operation": 34,
}


@pytest.mark.full
def test_trips_cross_few_files() -> None:
    """In a process of its own, as caches that other tests filled would make the trips shorter."""
    counted = subprocess.run(
        [sys.executable, "-m", "tests.support.trips", "--json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    crossed = {name: len(trip["files"]) for name, trip in json.loads(counted.stdout).items()}
    longer = {name: n for name, n in crossed.items() if n > FILES_CROSSED[name]}
    assert not longer, f"{longer} files, allowed: {FILES_CROSSED}; which: python -m tests.support.trips --files NAME"


def test_every_mistake_can_be_planted() -> None:
    texts = {file: (ROOT / "xlamini" / file).read_text() for file, *_ in MISTAKES.values()}
    assert [name for name, it in MISTAKES.items() if texts[it.file].count(it.right) != 1] == []
    paths = {path for it in MISTAKES.values() for path in it.tests.split()}
    assert [path for path in paths if not (ROOT / "tests" / path).exists()] == []
