"""The house's limits: numbers that only fall. Who adds a mechanism removes one.

A count above its limit fails, and so does one below it: then lower the limit, by
`python -m tests.support.house_counts --lower`, so that what was won is kept.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.house_counts import Module, counts, lower, modules

# For each count the limit, and what to do instead of raising it.
LIMITS: dict[str, tuple[int, str]] = {
    "tokens of the spine, in thousands": (703, "find what the new code replaces, and remove that; a table is shorter"),
    "tokens of the extras, in thousands": (229, "extras are tables where they can be; or make another extra smaller"),
    "tokens of kernels, in thousands": (96, "one rule serves both targets where it can; find what they share"),
    "members of Primitive": (18, "put it into a facet (sharding, memory, checks), or into a table of the analysis"),
    "traits of primitives": (3, "state it in a facet beside the analysis that reads it"),
    "ctx.inline outside of regions": (9, "write a form of the primitive, which a jaxpr shows"),
    "questions for the platform in primitives": (16, "write a form for the platform"),
    "routes outside of the pipeline": (0, "go through the pipeline's passes, up to the one that you need"),
    "functions of 8 or more parameters": (105, "pass a NamedTuple of what belongs together, or split the function"),
    "class names that exist twice": (6, "give the new class the noun that tells it apart"),
    "imports inside functions": (98, "import at the top of the file, from a floor below"),
    "files in the largest folder": (64, "make a room of the files that belong together"),
    "memos": (72, "use a memo that is there, or keep the value on the jaxpr"),
    "flags": (162, "make it an argument, or decide"),
}

# What `interpreters` and `staging` import from operations today; the list only gets shorter.
IMPORTED_OPERATIONS: set[str] = {
    "interpreters/error_values.py: NOWHERE",
    "interpreters/error_values.py: add",
    "interpreters/error_values.py: broadcast_in_dim",
    "interpreters/error_values.py: concatenate",
    "interpreters/error_values.py: dynamic_index_in_dim",
    "interpreters/error_values.py: expand_dims",
    "interpreters/error_values.py: first_bad",
    "interpreters/error_values.py: ge",
    "interpreters/error_values.py: gt",
    "interpreters/error_values.py: look_at_p",
    "interpreters/error_values.py: lt",
    "interpreters/error_values.py: one_more",
    "interpreters/error_values.py: pad",
    "interpreters/error_values.py: reshape",
    "interpreters/error_values.py: stop_gradient",
    "interpreters/error_values.py: sub",
    "interpreters/error_values.py: where",
    "interpreters/jet.py: mul",
    "interpreters/outline/views.py: reshape_p",
    "staging/call/check.py: stop_gradient",
    "staging/compile/pipeline.py: moved_to",
    "staging/compile/outlining.py: copy",
    "staging/compile/outlining.py: jit_p",
    "staging/compile/program.py: cpu_options",
    "staging/run/jit/nested_call.py: jit_p",
    "staging/trace/sharding_prefix.py: moved_to",
    "staging/trace/tracing.py: mark_all",
    "staging/trace/tracing.py: metadata_around",
}

# Modules of the primitives' floor that hold no operation, but what families, rules and the platform's choice share.
HELPERS = {
    "batch_ops", "out_sharding", "precision", "promotion", "tangent_ops", "kinds", "dtype_kinds", "generators",
}  # fmt: skip
HELPING_NAMES = {
    "convert", "in_space", "index_in_dim", "instantiated", "move_batch_dim", "placed_as", "stands_for_array", "zeros",
    "full", "with_batch_first",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_numbers_only_fall(name: str) -> None:
    limit, instead = LIMITS[name]
    count = counts()[name]
    assert count <= limit, f"{name}: {count}, where at most {limit} are allowed: {instead}"
    assert count >= limit, (
        f"{name}: {count}, fewer than the limit {limit}; lower it: python -m tests.support.house_counts --lower"
    )


@pytest.mark.slow
def test_every_count_has_a_limit() -> None:
    assert counts().keys() == LIMITS.keys()


def test_limits_are_lowered_and_never_raised() -> None:
    table = '"one": (63, "a"),\n"two": (7, "b"),'
    assert lower(table, {"one": 60, "two": 9}) == '"one": (60, "a"),\n"two": (7, "b"),'


def operations(module: Module) -> set[str]:
    """The operations that a file imports by name, as `file: name`."""
    return {f"{module.name}: {name}" for source, name in module.imported() if _is_operation(source, name)}


def _is_operation(source: str, name: str) -> bool:
    if name.endswith("_p"):
        return True
    if source == "xlamini.primitives":
        return name not in HELPING_NAMES
    return source.startswith("xlamini.primitives.") and source.rpartition(".")[2] not in HELPERS


@pytest.mark.slow
def test_interpreters_and_staging_import_no_operation() -> None:
    """Rules belong to the operation: an interpreter that knows one by name would have to know its rules."""
    found = {name for m in modules() if m.floor in ("interpreters", "staging") for name in operations(m)}
    assert found - IMPORTED_OPERATIONS == set(), "ask the primitive by a rule or a facet in place of its name"
    assert IMPORTED_OPERATIONS - found == set(), "it is gone: take it from the list"


def test_an_imported_operation_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.house_counts.PACKAGE", tmp_path)
    file = tmp_path / "rewrite.py"
    file.write_text("def f():\n    from xlamini.primitives.shape.shape import reshape_p as again\n    return again\n")
    assert operations(Module(file)) == {"rewrite.py: reshape_p"}
