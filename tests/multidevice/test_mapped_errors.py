"""Mistakes with shard_map and pmap. See tests/support/error_rows.py."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.multidevice.meshes import MESH, REVERSED
from tests.support.error_rows import Row, check, ones, parameters, row
from xlamini import P, jit, lax, new_ref, pmap, set_mesh, shard_map, smap
from xlamini.core.errors import ShardingTypeError
from xlamini.errors import ShardingError


def mapped(f: Any, ins: Any = P("x"), outs: Any = P("x"), **options: Any) -> Any:
    return shard_map(f, mesh=MESH, in_specs=ins, out_specs=outs, **options)


def same(x: Any) -> Any:
    return x


SHARD_MAP = [
    row(
        "axis", lambda: mapped(same, P("z"))(ones(8)), ShardingError, "in_specs has P('z',)", "'z' is none of",
        "'x', 'y'",
    ),
    row(
        "out axis", lambda: mapped(same, P("x"), P("z"))(ones(8)), ShardingError, "out_specs has P('z',)",
        "'z' is none of",
    ),
    row("long spec", lambda: mapped(same, P("x", "y"))(ones(8)), ShardingError, "the argument 'x'", "2 dimensions"),
    row("uneven", lambda: mapped(same)(ones(5)), ShardingError, "the argument 'x'", "size 5", "2 parts", "pad it to 6"),
    row(
        "varies", lambda: mapped(same, P("x"), P())(ones(8)), ValueError, "out_specs has P() for output 0 of same",
        "{V:x}", "psum or pmean it over 'x'", "check_vma=False",
    ),
    row("scalar out", lambda: mapped(lambda x: x.sum())(ones(8)), ShardingError, "P('x',) for output 0", "x[None]"),
    row(
        "unbound", lambda: mapped(lambda x: lax.psum(x, "z"))(ones(8)), NameError, "unbound axis name: 'z'",
        "shard_map",
    ),
    row(
        "no axis at all", lambda: jit(lambda x: lax.psum(x, "x"))(ones(8)), NameError, "none",
        "over a mesh that has it",
    ),
    row(
        "mesh", lambda: shard_map(same, mesh=8, in_specs=P(), out_specs=P())(1.0), TypeError, "a Mesh, got 8",
        "make_mesh",
    ),
    row(
        "no mesh", lambda: shard_map(same, in_specs=P(), out_specs=P())(1.0), ValueError, "no mesh; pass mesh=",
        "set_mesh",
    ),
    row(
        "misspelt", lambda: mapped(same, "x")(ones(8)), TypeError, "in_specs must be PartitionSpecs, got 'x'",
        "P('x')",
    ),
    row("no in_specs", lambda: mapped(same, None)(ones(8)), ValueError, "in_specs is left out", "'x'", "Explicit"),
    row(
        "few specs", lambda: mapped(lambda a, b: a, (P("x"),))(ones(8), ones(8)), ValueError, "shard_map: ",
        "in_specs",
    ),
    row("out tree", lambda: mapped(same, P("x"), {"a": P()})(ones(8)), ValueError, "shard_map: ", "out_specs"),
    row(
        "axis_names", lambda: mapped(same, axis_names={"z"})(ones(8)), ShardingError, "axis_names has 'z'",
        "none of the axes 'x', 'y' of the mesh",
    ),
    row(
        "abstract mesh", lambda: shard_map(same, mesh=MESH.abstract_mesh, in_specs=P(), out_specs=P())(1.0),
        ShardingError, "its mesh has 8 devices, AbstractMesh('x': 2, 'y': 4", "the program runs on 1",
        "move the arguments to a mesh of 8 devices",
    ),
    row("function", lambda: mapped(3), TypeError, "shard_map", "3"),
    row(
        "gather reduced", lambda: mapped(lambda x: lax.all_gather(x, "x", to="reduced"))(ones(8)), ShardingTypeError,
        "of type f32[2,4]{R:x}", "name them, take the sum with psum, or cast with pcast",
    ),
    row(
        "gather groups",
        lambda: mapped(lambda x: lax.all_gather(x, "x", to="invarying", axis_index_groups=[[0], [1]]))(ones(8)),
        ValueError, "all along 'x' get the same", "each group gets its own",
    ),
    row(
        "gather to", lambda: mapped(lambda x: lax.all_gather(x, "x", to="same"))(ones(8)), ValueError,
        "all_gather: to must be 'varying', 'reduced' or 'invarying', got 'same'",
    ),
    row(
        "pcast", lambda: mapped(lambda x: lax.pcast(x, "x", to="reduced"))(ones(8)), ValueError,
        "float32[4]{V:x} is varying along 'x', which cannot be cast to 'reduced'",
    ),
    row("scatter", lambda: mapped(lambda x: lax.psum_scatter(x, "x"))(ones(8)), ValueError, "size 4", "tiled=True"),
]


def nested(inner: Any, **options: Any) -> Any:
    """`inner` within a shard_map over x alone."""
    return mapped(inner, axis_names={"x"}, **options)(np.ones((8, 8), np.float32))


def over_y(ins: Any = P("y"), outs: Any = P("y"), **options: Any) -> Any:
    return shard_map(same, in_specs=ins, out_specs=outs, axis_names={"y"}, **options)


NESTED = [
    row(
        "manual already", lambda: nested(shard_map(same, in_specs=P("x"), out_specs=P(), axis_names={"x"})),
        ShardingError, "in_specs has P('x',)", "along 'x' a shard_map around splits already",
    ),
    row("of all axes", lambda: nested(mapped(same)), ShardingError, "along 'x' a shard_map around splits already"),
    row(
        "out_specs", lambda: nested(over_y(P("y"), P("x"))), ShardingError, "out_specs has P('x',)",
        "along 'x' a shard_map around",
    ),
    row(
        "another mesh", lambda: nested(over_y(mesh=REVERSED)), ShardingError, "same is mapped over Mesh('x': 2, 'y': 4",
        "within a shard_map over Mesh", "without mesh=",
    ),
    row(
        "types before", lambda: nested(over_y(mesh=MESH.abstract_mesh)), ShardingError,
        "mesh is AbstractMesh('x': 2, 'y': 4, axis_types=(Auto, Auto), device", "axis_types=(Manual, Auto)",
    ),
    row(
        "varies", lambda: nested(over_y(P("y"), P())), ValueError, "out_specs has P() for output 0 of same",
        "devices along 'y' have the same", "{V:x,y}",
    ),
    row(
        "varies around", lambda: nested(over_y(), outs=P()), ValueError, "devices along 'x' have the same", "{V:x}",
    ),
    row("parts", lambda: nested(lambda x: over_y()(x[:3])), ShardingError, "size 3", "the 4 parts", "P('y',)"),
    row("pmap", lambda: nested(pmap(same)), ShardingError, "pmap: same is mapped over", "within a shard_map over"),
]


def smapped(*args: Any, **options: Any) -> Any:
    with set_mesh(MESH):
        return smap(same, **{"in_axes": 0, "out_axes": 0, "axis_name": "x", **options})(*args)


def in_axes_left_out() -> Any:
    with set_mesh(MESH):
        return smap(same, out_axes=0, axis_name="x")(ones(8))


SMAP = [
    row("no mesh", lambda: smap(same, in_axes=0, out_axes=0, axis_name="x")(ones(8)), ValueError, "set_mesh"),
    row("axis", lambda: smapped(ones(8), axis_name="z"), ShardingError, "axis_name is 'z'", "of the axes 'x', 'y'"),
    row("axes", lambda: smapped(ones(8), axis_name=("x", "y")), TypeError, "one axis, got ('x', 'y')", "in another"),
    row("left out", in_axes_left_out, ValueError, "in_axes is left out", "'x'", "Explicit"),
    row("list", lambda: smapped(ones(8), in_axes=[0]), TypeError, "in_axes must be an int, None, or a tuple", "[0]"),
    row("name", lambda: smapped(ones(8), out_axes="x"), TypeError, "out_axes is 'x' for output 0 of same"),
    row("in_axes", lambda: smapped(ones(8), in_axes=1), ValueError, "in_axes is 1 for x of same", "dimensions 0 to 0"),
    row("scalar", lambda: smapped(1.0), ValueError, "in_axes is 0 for x of same", "no dimension to split; use None"),
    row("out_axes", lambda: smapped(ones(8), out_axes=1), ValueError, "out_axes is 1 for output 0 of same", "{V:x}"),
    row("varies", lambda: smapped(ones(8), out_axes=None), ValueError, "devices along 'x' have the same", "psum"),
    row("uneven", lambda: smapped(ones(5)), ShardingError, "the argument 'x'", "size 5", "pad it to 6"),
    row("entries", lambda: smapped(ones(8), in_axes=(0, 0)), ValueError, "smap: ", "in_axes"),
    row(
        "twice", lambda: nested(smap(same, in_axes=0, out_axes=0, axis_name="x")), ShardingError,
        "along 'x' an smap or shard_map around splits already",
    ),
    row("ref", lambda: smapped(new_ref(ones(8))), TypeError, "smap: an argument is a ref"),
    row("function", lambda: smap(3, in_axes=0, out_axes=0, axis_name="x"), TypeError, "smap", "3"),
]

PMAP = [
    row("rows", lambda: pmap(same)(ones(9)), ShardingError, "same is mapped over 9 entries", "has 8", "at most 8"),
    row("devices", lambda: pmap(same, devices=MESH.devices[0])(ones(8)), ShardingError, "8 entries", "devices has 4"),
    row("sizes", lambda: pmap(lambda a, b: a)(ones(8), ones(4)), ValueError, "pmap got inconsistent", "a (float32[8])"),
    row("axis_size", lambda: pmap(same, axis_size=4)(ones(8)), ValueError, "pmap got ", "axis_size has size 4"),
    row("nothing", lambda: pmap(same, in_axes=None)(ones(8)), ValueError, "pmap: nothing is mapped", "axis_size"),
    row("scalar", lambda: pmap(same)(1.0), ValueError, "pmap: in_axes is 0 for x of same", "use None"),
    row("in_axes", lambda: pmap(same, in_axes="x")(ones(8)), TypeError, "pmap: in_axes must be ints", "'x'"),
    row("out_axes", lambda: pmap(same, out_axes=2)(ones(8)), ValueError, "pmap: out_axes is 2 for output 0 of same"),
    row(
        "entries", lambda: pmap(same, in_axes=(0, 0))(ones(8)), ValueError, "pmap: in_axes has 2 entries",
        "1 positional",
    ),
    row(
        "static", lambda: pmap(lambda x, n: x, static_broadcasted_argnums=1)(ones(8), [3]), ValueError, "'n'",
        "hashed",
    ),
    row("number", lambda: pmap(same, static_broadcasted_argnums=3), ValueError, "static_broadcasted_argnums has 3"),
    row("function", lambda: pmap(3), TypeError, "pmap", "3"),
    row("nested", lambda: pmap(pmap(same))(np.ones((2, 4))), ShardingError, "pmap: same is", "of that mesh"),
]


@pytest.mark.parametrize("case", parameters({"shard_map": SHARD_MAP, "nested": NESTED, "smap": SMAP, "pmap": PMAP}))
def test_bad_input(case: Row) -> None:
    check(case)
