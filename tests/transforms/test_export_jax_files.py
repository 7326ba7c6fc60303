"""Files that JAX wrote give JAX's values, and damaged ones errors; tests/golden/record_exported.py recorded them."""
from __future__ import annotations

import dataclasses
import json
import struct
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

import xlamini
from tests.golden.exported_program import (
    ARGUMENTS,
    PLATFORMS,
    SYMBOLIC,
    State,
    container_arguments,
    container_values,
    containers_program,
    program,
    register,
    sharded_program,
    shardings,
    values,
)
from tests.support.paths import GOLDEN
from xlamini import export, numpy as jnp
from xlamini.errors import LoadError, ShapeError
from xlamini.lowering import module_check
from xlamini.lowering.mlir import interned
from xlamini.runtime.files.flatbuffer import first_table
from xlamini.runtime.files.flatbuffer_writer import Number, Parts, packed
from xlamini.runtime.files.portable import module_of
from xlamini.transforms.export import jax_file, jax_schema as schema
from xlamini.transforms.export.exported_file import fields_of, kind_of

FOLDER = GOLDEN / "exported" / "jax_0.10.2"
VALUES = json.loads((GOLDEN / "exported" / "format_3" / "values.json").read_text())
OF_CONTAINERS = json.loads((FOLDER / "containers.json").read_text())
QUICK = ("one_symbol", "narrow")

register(xlamini)


def file_of(name: str) -> bytes:
    return (FOLDER / f"{name}.jax").read_bytes()


def check(found: list[list[Any]], recorded: list[Any]) -> None:
    pairs = [(x, y) for xs, ys in zip(found, recorded, strict=True) for x, y in zip(xs, ys, strict=True)]
    for leaf, (dtype, shape, expected) in pairs:
        assert (str(leaf.dtype), list(leaf.shape)) == (dtype, shape)
        tolerance = 0 if "int" in dtype else 0.02 if dtype == "bfloat16" else 5e-5
        given = np.asarray(leaf).astype("float64").ravel()
        np.testing.assert_allclose(given, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.full) for n in SYMBOLIC])
def test_a_file_of_jax_gives_its_values_and_derivatives(name: str) -> None:
    module_check.checked.clear()
    found, known = export.deserialize(file_of(name)), SYMBOLIC[name]
    assert found.platforms == known.platforms and found.has_vjp() == bool(known.vjp_order)
    check(values(found.call, name, xlamini), VALUES[name])


def test_its_kernels_on_all_platforms_are_those_that_are_called_here() -> None:
    found, wanted = export.deserialize(file_of("platforms_of_fixed_sizes")), program(xlamini)
    assert (found.platforms, found.module_kept_var_idx) == (PLATFORMS, (0, 2))
    pairs = zip(*(xlamini.tree.leaves(fun(*ARGUMENTS)) for fun in (found.call, wanted)), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    ours, theirs = (
        xlamini.grad(lambda x, f=fun: f(x, *ARGUMENTS[1:])["factor"].sum())(ARGUMENTS[0])
        for fun in (found.call, wanted)
    )
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("name", SYMBOLIC)
def test_it_becomes_a_file_of_ours(name: str) -> None:
    found = export.deserialize(file_of(name))
    again = bytes(found.serialize(SYMBOLIC[name].vjp_order))
    assert again.startswith(b"xlamini exported function")
    check(values(export.deserialize(again).call, name, xlamini), VALUES[name])


def test_its_containers_are_those_that_are_registered() -> None:
    found = export.deserialize(file_of("containers"))
    assert found._names[0] == "args[0].mean" and found._names[-1] == "kwargs['rows']['first']"
    check(container_values(found.call, xlamini), OF_CONTAINERS)
    args, kwargs = container_arguments(3, lambda shape, dtype: np.ones(shape, dtype))
    moved, none, ordered = found.call(*args, **kwargs)
    assert isinstance(moved, State) and none is None and list(ordered) == ["z", "a"] and type(ordered) is OrderedDict
    with pytest.raises(ShapeError, match=r"args\[0\]\.count"):
        found.call(State(args[0].mean, args[0].count[:2]), *args[1:], **kwargs)


def test_a_container_that_is_not_registered_is_an_error() -> None:
    blob = file_of("containers").replace(b"golden.State", b"silver.State")
    with pytest.raises(LoadError, match=r"registered as 'silver\.State', which is not registered here"):
        export.deserialize(blob)


def test_a_named_tuple_with_other_fields_is_an_error() -> None:
    blob = file_of("containers").replace(b'"mean", "count"', b'"count", "mean"')
    with pytest.raises(LoadError, match=r"'golden\.State' was written with the fields count, mean"):
        export.deserialize(blob)


@pytest.mark.full
def test_it_is_part_of_programs_as_ours_are() -> None:
    found, x = export.deserialize(file_of("with_vjp")), np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
    w = np.float32([[1, 2], [-1, 0.5]])
    wanted = SYMBOLIC["with_vjp"].of(xlamini)
    np.testing.assert_allclose(xlamini.jit(found.call)(x, w), wanted(x, w), rtol=1e-5)
    each = xlamini.vmap(lambda w: found.call(x, w))(jnp.stack([w, 2 * w]))
    np.testing.assert_allclose(each[1], wanted(x, 2 * w), rtol=1e-5)
    gradient = xlamini.jit(xlamini.grad(lambda w: found.call(x, w).sum()))(w)
    np.testing.assert_allclose(gradient, xlamini.grad(lambda w: wanted(x, w).sum())(w), rtol=1e-5)
    m, = export.symbolic_shape("m")
    outer = export.export(xlamini.jit(lambda x: found.call(x, w) * 2))(xlamini.ShapeDtypeStruct((2 * m, 2), "float32"))
    again = export.deserialize(outer.serialize())
    np.testing.assert_allclose(again.call(x[:2]), 2 * wanted(x[:2], w), rtol=1e-5)


def test_the_constraints_that_jax_checks_are_checked() -> None:
    found = export.deserialize(file_of("two_symbols"))
    with pytest.raises(ValueError, match="n >= 5"):
        found.call(np.ones((2, 4), np.float32))
    with pytest.raises(ShapeError, match="b >= 1"):
        found.call(np.ones((0, 5), np.float32))


# --- damaged files


def is_read(blob: bytes) -> bool:
    """Whether a file is read; LoadError is what tells that it is not, and no other error is expected."""
    try:
        found = export.deserialize(blob)
        if found.has_vjp():
            found.vjp()
    except LoadError:
        return False
    return found.in_tree.num_leaves == len(found.in_avals)


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.full)])
def test_a_truncated_file_is_an_error(count: int) -> None:
    blob = file_of("with_vjp")
    for end in np.linspace(0, len(blob) - 1, count).astype(int):
        assert not is_read(blob[:end]), end


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=[pytest.mark.full, pytest.mark.slow])])
def test_a_changed_byte_is_an_error_or_another_function(count: int) -> None:
    random, blob = np.random.RandomState(0), file_of("with_vjp")
    read = 0
    for place in random.randint(0, len(blob), count):
        changed = bytearray(blob)
        changed[place] ^= 1 << random.randint(8)
        read += is_read(bytes(changed))
    assert 0 < read < count


@pytest.mark.full
def test_changed_bytes_outside_of_the_module_are_errors_or_other_headers() -> None:
    blob = file_of("containers")
    _, parts = jax_file._unpacked(blob)
    start = blob.index(parts[0])
    outside = [i for i in range(len(blob)) if not start <= i < start + len(parts[0])]
    found = [_header(blob[:i] + bytes([value]) + blob[i + 1 :]) for i in outside[::29] for value in (0, 0x7F, 0xFF)]
    assert 0 < found.count(None) < len(found)


def _header(blob: bytes) -> Any:
    """The fields in a file, None for one that has none; no error but LoadError is expected."""
    try:
        return kind_of(blob).read(blob, fields_of, "write it again")
    except LoadError:
        return None


# --- forged files


def table_of(blob: bytes) -> Any:
    return first_table(blob, schema.EXPORTED)


def patched(blob: bytes, place: int | None, kind: str, value: int) -> bytes:
    """The file with another number at a place."""
    assert place is not None
    data = struct.pack(f"<{kind}", value)
    return blob[:place] + data + blob[place + len(data) :]


def test_a_later_calling_convention_is_an_error() -> None:
    blob = file_of("one_symbol")
    later = patched(blob, table_of(blob)._place("calling_convention_version"), "H", 11)
    with pytest.raises(LoadError, match=r"has calling convention 11, but here are 9 to 10; it was written by JAX"):
        export.deserialize(later)


def test_a_field_that_is_not_known_is_an_error() -> None:
    blob = file_of("one_symbol")
    table = table_of(blob)
    more = patched(blob, table._vtable, "H", table._size + 2)
    with pytest.raises(LoadError, match="has fields that this version does not know, so a later version wrote it"):
        jax_file.JaxFile().read(more, fields_of, "write it again")


def test_side_effects_are_an_error() -> None:
    blob = file_of("one_symbol")
    place = table_of(blob)._place("ordered_effects")
    shardings = table_of(blob)._place("in_shardings")
    target = shardings + struct.unpack_from("<I", blob, shardings)[0]
    with pytest.raises(LoadError, match="it has side effects"):
        export.deserialize(patched(blob, place, "I", target - place))


def test_a_part_inside_of_itself_is_an_error() -> None:
    blob = file_of("containers")
    tree = table_of(blob).table("in_tree", schema.TREE)
    start, _ = tree._elements("children", 4)
    with pytest.raises(LoadError, match="offset that leads out of it"):  # none leads back
        export.deserialize(patched(blob, start, "I", (tree.place - start) % 2**32))


def test_a_dtype_that_is_not_known_is_an_error() -> None:
    blob = file_of("one_symbol")
    [aval, *_] = table_of(blob).tables("unique_avals", schema.AVAL)
    with pytest.raises(LoadError, match="arrays of the dtype 99"):
        export.deserialize(patched(blob, aval._place("dtype"), "b", 99))


def test_tables_that_share_their_parts_are_read_only_so_far() -> None:
    leaf = Parts(schema.TREE, {"kind": Number("b", schema.LEAF)})
    tree = leaf
    for _ in range(40):
        tree = Parts(schema.TREE, {"kind": Number("b", schema.TUPLE), "children": [leaf, tree]})
    blob = packed(Parts(schema.EXPORTED, {"in_tree": tree, "mlir_module_serialized": b""}))
    assert _header(blob) is None
    node = table_of(blob).table("in_tree", schema.TREE)
    while inner := node.tables("children", schema.TREE):
        start, _ = node._elements("children", 4)
        blob, node = patched(blob, start, "I", inner[1].place - start), inner[1]
    with pytest.raises(LoadError, match="longer than itself, or inside of each other"):  # of 2**40 leaves
        export.deserialize(blob)


@pytest.mark.full
def test_a_call_of_a_kernel_with_options_that_nobody_writes_is_an_error() -> None:
    found = export.deserialize(file_of("platforms"))
    text = str(module_of(found.mlir_module_serialized, interned().context))
    assert text.count("mode = 86 : ui8") == 1
    with interned().context:
        module = ir.Module.parse(text.replace("mode = 86 : ui8", "mode = 85 : ui8"))
        code = stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version())
    forged = dataclasses.replace(found, mlir_module_serialized=code)
    read = export.deserialize(export.serialize_for_jax(forged))
    with pytest.raises(LoadError, match="it calls lapack_ssyevd_ffi with types or attributes that xlamini"):
        read.call(np.ones((2, 3, 3), np.float32))


# --- files for JAX


def exports(name: str) -> export.Exported:
    if name == "containers":
        args, kwargs = container_arguments(export.symbolic_shape("b")[0], xlamini.ShapeDtypeStruct)
        return export.export(xlamini.jit(containers_program(xlamini)))(*args, **kwargs)
    if name == "sharded":
        types = [xlamini.ShapeDtypeStruct((8, 8), "float32", sharding=s) for s in shardings(xlamini)]
        return export.export(xlamini.jit(sharded_program(xlamini)))(*types)
    known = SYMBOLIC[name]
    return export.export(xlamini.jit(known.of(xlamini)), platforms=known.platforms)(*known.types(xlamini))


def derivatives(blob: bytes) -> list[Any]:
    """The headers in a file: of the function and of its derivatives."""
    header, parts = jax_file._unpacked(blob)
    return [header, *(derivatives(parts[1]) if len(parts) > 1 else [])]


def said(header: Any) -> Any:
    """A header but for names, which each library gives to derivatives, and for the order of terms in sizes."""
    fields = fields_of(header, [b""])
    return {**header, "name": "", **{name: str(fields[name]) for name in ("in_avals", "out_avals")}}


@pytest.mark.parametrize("name", [*SYMBOLIC, "sharded"])
def test_a_file_for_jax_says_what_that_of_jax_says(name: str) -> None:
    of_jax = derivatives(file_of(name))[: 1 if name == "sharded" else None]  # JAX shards a cotangent of one number
    ours = derivatives(bytes(export.serialize_for_jax(exports(name), len(of_jax) - 1)))
    assert [*map(said, ours)] == [*map(said, of_jax)]


@pytest.mark.full
@pytest.mark.parametrize("name", SYMBOLIC)
def test_a_file_for_jax_is_read_here_too(name: str) -> None:
    blob = bytes(export.serialize_for_jax(exports(name), SYMBOLIC[name].vjp_order))
    check(values(export.deserialize(blob).call, name, xlamini), VALUES[name])


def test_a_derivative_by_whole_numbers_has_no_form_in_files_for_jax() -> None:
    made = exports("containers")
    found, wanted = derivatives(bytes(export.serialize_for_jax(made))), derivatives(file_of("containers"))
    assert [found[0][k] for k in ("in_tree", "out_tree")] == [wanted[0][k] for k in ("in_tree", "out_tree")]
    with pytest.raises(ValueError, match="containers_vjp has results of dtype float0"):
        export.serialize_for_jax(made, 1)


def test_a_file_without_lists_of_types_and_shardings_is_read() -> None:
    blob = file_of("sharded")
    (wanted, *_), table = derivatives(blob), table_of(blob)
    for i, name in enumerate(schema.EXPORTED):
        if name.startswith("unique") or name.endswith("idxs"):  # before version 10 of the format
            blob = patched(blob, table._vtable + 4 + 2 * i, "H", 0)
    (found, *_) = derivatives(blob)
    assert (found["in_avals"], found["out_avals"]) == (wanted["in_avals"], wanted["out_avals"])
    specs = [(found["meshes"][number], spec) for number, spec in found["in_shardings"]]
    assert specs == [(wanted["meshes"][number], spec) for number, spec in wanted["in_shardings"]]
