"""The caches of the package as its source shows them: what test_house.py compares with the registry of memos."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

CACHES = {"cache", "lru_cache"}
TABLES = {"dict", "list", "set", "OrderedDict", "WeakKeyDictionary", "WeakSet", "WeakValueDictionary"}

# Facts of the machine, asked once: functions of a device or a path, which no user's work adds to.
MACHINE = {
    "runtime/devices/ffi_targets.py _warn_once",
    "runtime/devices/platforms.py _first_device",
    "runtime/devices/plugins.py _entry_points",
    "runtime/files/disk_key.py _machine",
    "runtime/files/disk_key.py _surroundings",
    "runtime/sharding.py on_device",
    "runtime/targets/topology.py _gpu_target",
    "runtime/targets/topology.py _tpu_target",
}

# Registries: what a table holds was declared, started or wrapped, and cannot be made again; and the registry of memos.
REGISTRIES = {
    "as_jax/overlay/interpreters/partial_eval.py custom_partial_eval_rules",
    "as_jax/overlay/interpreters/partial_eval.py custom_staging_rules",
    "as_jax/overlay/interpreters/partial_eval.py dce_rules",
    "as_jax/overlay/interpreters/partial_eval.py partial_eval_jaxpr_custom_rules",
    "analysis/lints/registry.py rules",
    "core/errors/api_boundary.py _edged",
    "core/tracing/own_operands.py _entrances",
    "core/tracing/own_operands.py _trials",
    "core/errors/api_boundary.py _edges",
    "core/program/avals.py _interned",  # types are compared by identity, and so are their shardings
    "core/program/avals.py types_of_values",
    "core/flags/config.py flags",
    "core/program/ref_types.py _of_inner",  # as in core/program/avals.py
    "core/program/hi_types.py _of_types",  # as in core/program/avals.py
    "core/program/mutable_values.py _cells",  # of the objects alive, which have no room for them
    "core/caching/memo.py _in_progress",  # while a thread makes it
    "core/caching/memo.py _registry",
    "core/monitoring.py listeners",
    "core/program/bindable.py primitives",
    "core/pytree/nodes.py _registered",
    "core/sharding/aval_sharding.py _interned",
    "core/flags/environment_variables.py ignored",
    "experimental/sparse/transform.py rules",
    "primitives/base/operators.py _PLAIN",
    "runtime/execution/call_failures.py _failures",  # until XLA reports them
    "runtime/devices/clients.py _makers",
    "runtime/devices/clients.py _started",
    "runtime/devices/ffi_registration.py _functions",
    "runtime/devices/ffi_registration.py _untyped",
    "runtime/devices/ffi_targets.py _registered",
    "runtime/devices/ffi_targets.py batch_partitionable",
    "runtime/devices/platforms.py _default_names",
    "runtime/devices/plugins.py _loaded",
    "runtime/execution/partitioner.py _calls",  # while the programs that name them live
    "runtime/execution/partitioner.py _registered",
    "runtime/targets/topology.py _by_client",
    "staging/aot/treedef_json.py _by_class",
    "staging/aot/treedef_json.py _by_name",
    "staging/run/jit/cpp_function.py jitted_functions",  # of these two the memos of jitted functions are made
    "staging/run/programs.py _shared",
    "staging/trace/trace_cache.py _by_function",
    "staging/run/jit/entries.py last",  # weak references and texts; they tell that caches were cleared
}


def bare_caches(tree: ast.Module) -> Iterator[str]:
    """Functions with a cache of `functools` that take arguments, and other uses of one: not registered."""
    plain = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found = [d for d in node.decorator_list if any(map(_names_cache, ast.walk(d)))]
            plain.update(part for d in found for part in ast.walk(d))
            if found and _takes_arguments(node):
                yield node.name
    yield from (f"line {node.lineno}" for node in ast.walk(tree) if _names_cache(node) and node not in plain)


def tables(tree: ast.Module) -> Iterator[str]:
    """Names of modules and classes that are bound to an empty container, to be filled as the program runs.

    A `Mapping` is none: it stays empty.
    """
    for body in [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        for node in body:
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).startswith("Mapping"):
                continue
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_empty(node.value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (ast.unparse(target) for target in targets)


def memo_names(tree: ast.Module) -> Iterator[str]:
    """The names of the memos that a module makes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Memo", "OwnedMemo", "memoised", "register"}:
            yield ast.unparse(node.args[0])


def where(root: Path, path: Path, name: str) -> str:
    """How the lists above write it."""
    return f"{path.relative_to(root)} {name}"


def _names_cache(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in CACHES and isinstance(node.value, ast.Name) and node.value.id == "functools"
    return isinstance(node, ast.Name) and node.id in CACHES


def _takes_arguments(function: ast.FunctionDef) -> bool:
    given = function.args
    return bool(given.posonlyargs or given.args or given.kwonlyargs or given.vararg or given.kwarg)


def _is_empty(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        return name in TABLES and not value.args and not value.keywords
    return (isinstance(value, ast.Dict) and not value.keys) or (isinstance(value, ast.List) and not value.elts)
