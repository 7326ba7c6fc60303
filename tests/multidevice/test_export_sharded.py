"""Exported functions whose values are sharded over devices: what they say of it, called, differentiated, in files."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import DEVICES, HALF, MESH, REVERSED, over, split, table
from tests.support.paths import GOLDEN, ROOT
from xlamini import P, ShapeDtypeStruct, export, lax, numpy as jnp, random
from xlamini.errors import LoadError, ShardingError
from xlamini.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from xlamini.transforms.export import exported_file

AXES = AbstractMesh((2, 4), ("x", "y"), AxisType.Auto)
EXPLICIT = MESH.update(axis_types=AxisType.Explicit)
FOUR = Mesh(np.array(DEVICES[:4]), ("a",))
SQUARE = Mesh(np.array(DEVICES[2:6]).reshape(2, 2), ("b", "c"))
X, W = table(8, 8) / 64, np.sin(table(8, 8))


def typed(*partitions: Any, mesh: Any = AXES, shape: tuple[int, ...] = (8, 8)) -> ShapeDtypeStruct:
    """The type of an array that is sharded over the axes of a mesh."""
    return ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, P(*partitions)))


def exported(fun: Callable[..., Any], *args: Any, platforms: Any = None, **options: Any) -> Any:
    return export.export(xlamini.jit(fun, **options), platforms=platforms)(*args)


def again(found: Any, vjp_order: int = 0) -> Any:
    return export.deserialize(found.serialize(vjp_order=vjp_order))


def loss(x: Any, w: Any) -> Any:
    return jnp.sum(jnp.tanh(x @ w) ** 2)


def gradients(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those of the loss, by hand in double precision."""
    y = np.tanh(x.astype(np.float64) @ w)
    inner = 2 * y * (1 - y**2)
    return inner @ w.T, x.T @ inner


def summed(mesh: Any) -> Callable[..., Any]:
    """A function of each device's part, with a collective."""
    return xlamini.shard_map(
        lambda x: lax.psum(jnp.sin(x), "x") * lax.axis_index("y"), mesh=mesh, in_specs=P("x", "y"),
        out_specs=P(None, "y"),
    )  # fmt: skip


def summed_by_hand(x: np.ndarray) -> np.ndarray:
    return (np.sin(x[:4]) + np.sin(x[4:])) * np.repeat(np.arange(4), 2)


# What is known of it. The numbers and shardings are JAX's for the same programs, except that the shardings of XLA
# (`in_shardings_hlo`) are None in JAX 0.10.2, and that the mesh of a shard_map counts if it is abstract.


@pytest.mark.parametrize("mesh", [AXES, MESH, REVERSED], ids=["axes", "mesh", "reversed"])
def test_shardings_of_arguments(mesh: Any) -> None:
    found = exported(lambda x, n: x * n, typed("x", "y", mesh=mesh), 2.0)
    assert (found.nr_devices, found.in_avals[0].str_short()) == (8, "f32[8,8]")
    assert found._in_named_shardings == (NamedSharding(AXES, P("x", "y")), None)
    assert (found._out_named_shardings, found.out_shardings_hlo, found.out_shardings_jax(MESH)) == ((None,),) * 3
    assert str(found.in_shardings_hlo) == "({devices=[2,4]<=[8]}, None)"
    text = found.mlir_module()
    assert 'sdy.mesh @mesh = <["x"=2, "y"=4]>' in text
    assert '%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>} loc("x")' in text
    assert '%arg1: tensor<f32> loc("n")) -> (tensor<8x8xf32> {jax.result_info = "result"})' in text


def test_shardings_of_jit() -> None:
    found = exported(
        lambda a, b: {"y": a @ b, "n": a.sum()}, X, X, in_shardings=(over("x", "y"), None),
        out_shardings={"y": over("x"), "n": None},
    )  # fmt: skip
    assert (found.nr_devices, found._in_named_shardings) == (8, (NamedSharding(AXES, P("x", "y")), None))
    assert found._out_named_shardings == (None, NamedSharding(AXES, P("x")))
    assert found.out_shardings_jax(MESH) == (None, over("x"))
    assert "jax.result_info = \"result['y']\", sdy.sharding = " in found.mlir_module()


@pytest.mark.parametrize(
    ("count", "fun", "argument"),
    [
        (8, lambda x: lax.with_sharding_constraint(x * 2, over("x")), X),
        (8, lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(AXES, P("x"))), X),
        (8, summed(MESH), X),
        (8, summed(AXES), X),
        (8, lambda x: xlamini.device_put(x, over("x")) * 2, X),
        (8, lambda x: x * 2, split(X, "x")),
        (4, lambda x: x * 2, typed("a", mesh=FOUR)),
        (1, lambda x: x * 2, typed("x", mesh=Mesh(np.array(DEVICES[:1]), ("x",)))),
        (1, lambda x: x + split(X, "x"), X),
        (1, lambda x: x * 2, X),
    ],
)
def test_the_number_of_devices(count: int, fun: Any, argument: Any) -> None:
    found = exported(fun, argument)
    assert (found.nr_devices, again(found).nr_devices) == (count, count)


def test_the_current_mesh_counts() -> None:
    with xlamini.set_mesh(MESH):
        found = exported(lambda x: jnp.sum(x) ** 2, X)
    assert (found.nr_devices, found.vjp().nr_devices) == (8, 8)
    alone = exported(lambda x: jnp.sum(x) ** 2, X)
    with xlamini.set_mesh(MESH):
        assert alone.vjp().nr_devices == 1


def test_explicit_types() -> None:
    for found in (made := exported(lambda x: jnp.sin(x).T, typed("x", "y", mesh=EXPLICIT)), again(made)):
        assert [a.str_short() for a in (*found.in_avals, *found.out_avals)] == ["f32[8@x,8@y]", "f32[8@y,8@x]"]
        assert found._out_named_shardings == (NamedSharding(EXPLICIT.abstract_mesh, P("y", "x")),)
    with xlamini.set_mesh(EXPLICIT):
        whole = exported(lambda x: x * 2, X)
    assert whole._out_named_shardings == (NamedSharding(EXPLICIT.abstract_mesh, P(None, None)),)


def test_the_shardings_over_other_meshes() -> None:
    found = exported(lambda x: x.T, typed("a", mesh=AbstractMesh((4,), ("a",), AxisType.Auto)))
    assert found.in_shardings_jax(FOUR) == (NamedSharding(FOUR, P("a")),)
    assert found.in_shardings_jax(SQUARE) == (NamedSharding(SQUARE, P(("b", "c"))),)
    assert found.in_shardings_jax(SQUARE.abstract_mesh) == (NamedSharding(SQUARE.abstract_mesh, P(("b", "c"))),)
    with pytest.raises(ValueError, match=r"was exported for 4 devices, but Mesh\(.*has 8; make a mesh of 4"):
        found.in_shardings_jax(MESH)
    with pytest.raises(TypeError, match=r"mesh must be a Mesh, got 4; xlamini\.make_mesh makes one"):
        found.in_shardings_jax(4)
    halves = exported(lambda x: x.T, typed("x", mesh=HALF))
    with pytest.raises(ShardingError, match=r"for P\('x',\) over the axes .*no PartitionSpec of .* says; use a mesh"):
        halves.in_shardings_jax(FOUR)


# Called.


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize(
    ("mesh", "given", "taken"),
    [(FOUR, P("a"), P("a")), (FOUR, P(), P("a")), (SQUARE, P("b"), P(("b", "c"))), (SQUARE, P(None, "c"), None)],
)
def test_a_call_on_other_devices(mesh: Mesh, given: P, taken: P | None, restored: bool) -> None:
    found = exported(lambda x: jnp.sin(x) + 1, typed("a", mesh=FOUR))
    x = xlamini.device_put(X, NamedSharding(mesh, given))
    for call in ((again(found) if restored else found).call, xlamini.jit(lambda x: found.call(x) * 1)):
        out = call(x)
        np.testing.assert_allclose(out, np.sin(X) + 1, rtol=1e-6)
        assert out.sharding.spec == (taken or P(("b", "c"))) and out.sharding.mesh == mesh


def test_devices_in_another_order() -> None:
    found = again(exported(summed(AXES), typed("x", "y")))
    for mesh in (MESH, REVERSED):
        x = xlamini.device_put(X, found.in_shardings_jax(mesh)[0])
        out = found.call(x)
        np.testing.assert_allclose(out, summed_by_hand(X), rtol=1e-6)
        assert [shard.device for shard in out.addressable_shards] == list(mesh.devices.flat)


def test_the_number_of_devices_is_checked() -> None:
    found = again(exported(lambda x: x * 2, typed("a", mesh=FOUR)))
    said = "was exported for 4 devices, but is called on {}; move its arguments to a mesh of 4 devices"
    for call in (found.call, xlamini.jit(found.call)):
        with pytest.raises(ValueError, match=said.format(1)):
            call(X)
        with pytest.raises(ValueError, match=said.format(8)):
            call(split(X, "x"))
    with xlamini.set_mesh(FOUR):
        assert found.call(X).sharding == NamedSharding(FOUR, P("a"))
    inside = xlamini.shard_map(found.call, mesh=SQUARE, in_specs=P(), out_specs=P(), check_vma=False)
    with pytest.raises(ValueError, match="is called in shard_map, whose function is for one device; call it outside"):
        inside(X)


def test_a_function_for_one_device_runs_on_several() -> None:
    found = again(exported(lambda x: jnp.cos(x), X))
    assert found.call(split(X, "x")).sharding == over("x")
    out = found.call(xlamini.device_put(X, NamedSharding(EXPLICIT, P("x"))))
    np.testing.assert_allclose(out, np.cos(X), rtol=1e-6)
    each = xlamini.shard_map(exported(lambda x: x * 2, X[:4, :2]).call, mesh=MESH, in_specs=P("x", "y"),
                             out_specs=P("x", "y"))  # fmt: skip
    np.testing.assert_array_equal(each(X), X * 2)


@pytest.mark.parametrize("platforms", [("cpu",), ("tpu", "cuda", "cpu")])
def test_collectives_among_others(platforms: Any) -> None:
    """Per-device code in both programs, with operations that differ by platform."""

    def of_part(x: Any) -> Any:
        return lax.psum(jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(4)), ("x", "y"))

    mapped = xlamini.shard_map(of_part, mesh=AXES, in_specs=P("x", "y"), out_specs=P())
    found = again(exported(mapped, typed("x", "y"), platforms=platforms))
    parts = [X[i : i + 4, j : j + 2] for i in (0, 4) for j in (0, 2, 4, 6)]
    wanted = sum(np.linalg.cholesky(part @ part.T + 9 * np.eye(4)) for part in parts)
    twice = xlamini.jit(lambda x: summed(MESH)(x).sum() + found.call(x) + found.call(x * 1))
    np.testing.assert_allclose(twice(split(X, "x")), summed_by_hand(X).sum() + 2 * wanted, rtol=1e-5)


def test_a_shard_map_over_axes_runs_on_the_devices_of_its_arguments() -> None:
    total = summed(AXES)
    for run in (total, xlamini.jit(total)):
        np.testing.assert_allclose(run(split(X, "x")), summed_by_hand(X), rtol=1e-6)
    with xlamini.set_mesh(MESH):
        np.testing.assert_allclose(total(X), summed_by_hand(X), rtol=1e-6)


@pytest.mark.full
def test_meshes_of_both_programs() -> None:
    """Equal meshes are one mesh of the module; others keep their devices."""
    lines = AbstractMesh((8,), ("line",), AxisType.Auto)
    found = exported(
        lambda a, b: lax.with_sharding_constraint(a + b, NamedSharding(lines, P("line"))), typed("x", "y"),
        typed("line", mesh=lines),
    )  # fmt: skip
    program = xlamini.jit(lambda a, b: lax.with_sharding_constraint(found.call(a, b), over("y")) + found.call(b, a))
    x, w = split(X, "x"), split(W, "y")
    np.testing.assert_allclose(program(x, w), 2 * (X + W), rtol=1e-6)
    text = program.lower(x, w).as_text()
    assert text.count("sdy.mesh") == 2 and text.count("func.func private") == 1


def test_exported_functions_in_exported_functions() -> None:
    inner = exported(lambda x: jnp.sin(x), typed("a", mesh=FOUR))
    row = AbstractMesh((4,), ("a",), AxisType.Auto)
    outer = again(exported(lambda x: inner.call(x) + 1, typed(None, "a", mesh=row)))
    assert outer.nr_devices == 4
    out = outer.call(xlamini.device_put(X, NamedSharding(SQUARE, P("b", "c"))))
    np.testing.assert_allclose(out, np.sin(X) + 1, rtol=1e-6)
    with pytest.raises(ValueError, match="was exported for 4 devices, but is called on 1"):
        exported(lambda x: inner.call(x), X)


def test_keys_and_unused_arguments() -> None:
    keys = xlamini.device_put(random.split(random.key(3), 8), over("x"))
    outs = over("y"), None
    made = exported(lambda unused, k, n: (xlamini.vmap(random.uniform)(k), n), X, keys, 3, out_shardings=outs)
    found = again(made)
    assert (found.module_kept_var_idx, found.in_shardings_jax(MESH)) == ((1, 2), (None, over("x"), None))
    value, n = found.call(X, keys, 3)
    np.testing.assert_array_equal(value, xlamini.vmap(random.uniform)(random.split(random.key(3), 8)))
    assert (value.sharding, int(n)) == (over("y"), 3)


@pytest.mark.parametrize("mesh", [EXPLICIT, MESH], ids=["explicit", "auto"])
def test_explicit_types_of_results(mesh: Mesh) -> None:
    found = again(exported(lambda x: jnp.sin(x).T, typed("x", "y", mesh=EXPLICIT)))
    marks = "f32[8@y,8@x]" if mesh is EXPLICIT else "f32[8,8]"
    for spec in (P("x", "y"), P("y")):
        out = found.call(xlamini.device_put(X, NamedSharding(mesh, spec)))
        assert (out.aval.str_short(), out.sharding.spec) == (marks, P("y", "x"))
        np.testing.assert_allclose(out, np.sin(X).T, rtol=1e-6)
    with xlamini.set_mesh(mesh):
        assert found.call(X).aval.str_short() == marks
    other = xlamini.make_mesh((8,), ("line",), mesh.axis_types[0])
    transposed = exported(lambda x: x.T, typed(("x", "y"), mesh=EXPLICIT))
    out = transposed.call(xlamini.device_put(X, NamedSharding(other, P("line"))))
    assert (out.sharding.spec, out.aval.explicit_sharding is None) == (P(None, "line"), mesh is MESH)


def test_partial_sums() -> None:
    terms = NamedSharding(EXPLICIT.abstract_mesh, P(None, None, unreduced={"y"}))
    rows, columns = NamedSharding(EXPLICIT, P(None, "y")), NamedSharding(EXPLICIT, P("y", None))
    with xlamini.set_mesh(EXPLICIT):
        made = exported(
            lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P(None, None, unreduced={"y"})),
            *[ShapeDtypeStruct((8, 8), "float32", sharding=s) for s in (rows, columns)],
        )
        found = again(made, 1)
        assert found._out_named_shardings == (terms,) and found.out_avals[0].str_short() == "f32[8,8]{U:y}"
        a, b = xlamini.device_put(X, rows), xlamini.device_put(W, columns)
        out = found.call(a, b)
        assert out.aval.str_short() == "f32[8,8]{U:y}"
        np.testing.assert_allclose(xlamini.reshard(out, P()), X @ W, rtol=1e-5, atol=1e-5)
        slope = xlamini.jit(xlamini.grad(lambda a: jnp.sum(xlamini.reshard(found.call(a, b), P()) ** 2)))(a)
        np.testing.assert_allclose(slope, 2 * (X @ W) @ W.T, rtol=1e-4, atol=1e-4)
    with pytest.raises(ShardingError, match=r"which no PartitionSpec of .* says; use a mesh"):
        found.out_shardings_jax(xlamini.make_mesh((8,), ("line",)))


# Derivatives.


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("mesh", [MESH, REVERSED, EXPLICIT], ids=["mesh", "reversed", "explicit"])
def test_gradients(mesh: Mesh, restored: bool) -> None:
    axes = mesh.abstract_mesh
    made = exported(loss, typed("x", mesh=axes), typed(None, "y", mesh=axes))
    found = again(made, 1) if restored else made
    x, w = (xlamini.device_put(v, s) for v, s in zip((X, W), found.in_shardings_jax(mesh), strict=True))
    for take in (xlamini.grad(found.call, (0, 1)), xlamini.jit(xlamini.grad(found.call, (0, 1)))):
        for ours, wanted, sharding in zip(take(x, w), gradients(X, W), found.in_shardings_jax(mesh), strict=True):
            np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-5)
            assert ours.sharding.is_equivalent_to(sharding, 2)


def test_the_pullback() -> None:
    # The shardings are JAX's; where the primal leaves a result open, JAX replicates its cotangent.
    made = exported(loss, typed("x"), typed(None, "y"), out_shardings=NamedSharding(AXES, P()))
    for found in (made.vjp(), again(made, 1).vjp()):
        assert found.nr_devices == 8
        assert found._in_named_shardings == (*made._in_named_shardings, NamedSharding(AXES, P()))
        assert found._out_named_shardings == made._in_named_shardings


@pytest.mark.full
def test_derivatives_of_order_two() -> None:
    found = again(exported(loss, typed("x"), typed(None, "y")), 2)
    x, w = split(X, "x"), split(W, None, "y")

    def sloped(call: Any) -> Any:
        return xlamini.grad(lambda x: jnp.sum(xlamini.grad(call)(x, w) ** 2))

    np.testing.assert_allclose(sloped(found.call)(x), sloped(loss)(X), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="vjp_order"):
        xlamini.grad(lambda x: jnp.sum(sloped(found.call)(x)))(x)


def test_gradients_of_per_device_programs() -> None:
    found = again(exported(summed(AXES), typed("x", "y")), 1)
    slope = xlamini.jit(xlamini.grad(lambda x: jnp.sum(found.call(x) ** 2)))(split(X, "y"))
    inner = 2 * summed_by_hand(X) * np.repeat(np.arange(4), 2)
    np.testing.assert_allclose(slope, np.concatenate([inner, inner]) * np.cos(X), rtol=1e-4, atol=1e-5)


# Files.


@pytest.mark.full
def test_another_process_with_another_number_of_devices(tmp_path: Path) -> None:
    path = tmp_path / "loss.bin"
    axes = AbstractMesh((2, 2), ("x", "y"), AxisType.Auto)
    path.write_bytes(exported(loss, typed("x", mesh=axes), typed(None, "y", mesh=axes)).serialize(vjp_order=1))
    code = (
        "import sys, pathlib, numpy, xlamini\n"
        "from xlamini import P, export\n"
        "found = export.deserialize(pathlib.Path(sys.argv[1]).read_bytes(), trusted=True)\n"
        "x = numpy.arange(64, dtype='float32').reshape(8, 8) / 64\n"
        "mesh = xlamini.make_mesh((3,), ('x',), devices=xlamini.devices()[:3])\n"
        "try: found.call(xlamini.device_put(x[:6], xlamini.NamedSharding(mesh, P())), x)\n"
        "except ValueError as error: print(error)\n"
        "try: found.call(xlamini.device_put(x, xlamini.NamedSharding(mesh, P())), x)\n"
        "except ValueError as error: print(error)\n"
        "mesh = xlamini.make_mesh((4,), ('all',), devices=xlamini.devices()[:0:-1])\n"
        "places = found.in_shardings_jax(xlamini.make_mesh((2, 2), ('p', 'q'), devices=xlamini.devices()[:0:-1]))\n"
        "args = map(xlamini.device_put, (x, numpy.sin(64 * x)), places)\n"
        "print(numpy.asarray(xlamini.grad(found.call)(*args)).tobytes().hex())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XLAMINI_NUM_CPU_DEVICES": "5", "XLA_FLAGS": ""},
    )  # fmt: skip
    shape, number, value = run.stdout.splitlines()
    assert "exported for f32[8,8], called with f32[6,8]" in shape
    assert "was exported for 4 devices, but is called on 3" in number
    found = np.frombuffer(bytes.fromhex(value), np.float32).reshape(8, 8)
    np.testing.assert_allclose(found, gradients(X, W)[0], rtol=1e-4, atol=1e-5)


def test_a_file_of_format_2_is_read() -> None:
    blob = (GOLDEN / "exported" / "format_2.xlamini").read_bytes()
    assert blob.startswith(b"xlamini exported function, format 2\n")
    found = export.deserialize(blob)
    x, w = (xlamini.device_put(v, s) for v, s in zip((X, W), found.in_shardings_jax(MESH), strict=True))
    np.testing.assert_allclose(found.call(x, w), np.sum(np.tanh(X @ W) ** 2), rtol=1e-5)
    for ours, wanted in zip(xlamini.grad(found.call, (0, 1))(x, w), gradients(X, W), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-5)


def test_a_file_of_jax_over_devices_is_read() -> None:
    found = export.deserialize((GOLDEN / "exported" / "jax_0.10.2" / "sharded.jax").read_bytes())
    assert found.nr_devices == 8 and [s.spec for s in found.in_shardings_jax(MESH)] == [P("x"), P(None, "y")]
    x, w = (xlamini.device_put(v, s) for v, s in zip((X, W), found.in_shardings_jax(MESH), strict=True))
    np.testing.assert_allclose(found.call(x, w), np.sum(np.tanh(X @ W) ** 2), rtol=1e-5)
    for ours, wanted in zip(xlamini.grad(found.call, (0, 1))(x, w), gradients(X, W), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-5)
    again = export.deserialize(found.serialize())
    np.testing.assert_allclose(again.call(x, w), np.sum(np.tanh(X @ W) ** 2), rtol=1e-5)


def test_the_format_of_files_without_shardings_is_the_first() -> None:
    # Earlier versions read it; they would ignore the shardings of the second.
    assert exported(lambda x: x * 2, X).serialize().startswith(b"xlamini exported function, format 1\n")
    made = exported(lambda x: lax.with_sharding_constraint(x, over("x")), X)
    assert made.serialize().startswith(b"xlamini exported function, format 2\n")


@pytest.fixture(scope="module")
def blob() -> bytes:
    return bytes(exported(lambda x: x * 2, typed("x", "y"), out_shardings=over("x")).serialize())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"devices": 4}, "has meshes of other sizes than its 4 devices"),
        ({"devices": True}, "field 'devices' cannot be 'True'"),
        ({"devices": 4, "meshes": [], "in_shardings": [None], "out_shardings": [None]}, "StableHLO is for 8 devices"),
        ({"meshes": [[["x", -2, "Auto"], ["y", -4, "Auto"]]]}, "its header cannot be read"),
        ({"meshes": [[["x", 2.0, "Auto"], ["y", 4, "Auto"]]]}, "its header cannot be read"),
        ({"meshes": [[["x", 2, "Auto"], ["x", 4, "Auto"]]]}, "has a name twice"),
        ({"meshes": [[["x", 2, "Odd"], ["y", 4, "Auto"]]]}, "its header cannot be read"),
        ({"meshes": [[]]}, "deserialize: "),
        ({"meshes": []}, "its header cannot be read"),
        ({"in_shardings": []}, "deserialize: "),
        ({"in_shardings": [[1, ["x"]]]}, "its header cannot be read"),
        ({"in_shardings": [[-1, ["x"]]]}, "its header cannot be read"),
        ({"in_shardings": [[0, ["z"]]]}, "names the axis 'z', which the mesh does not have"),
        ({"in_shardings": [[0, ["x", "x"]]]}, "names the axis 'x' twice"),
        ({"in_shardings": [[0, ["x", None, "y"]]]}, "speaks of 3 dimensions, but the array has 2"),
        ({"in_shardings": [[0, [3]]]}, "its header cannot be read"),
        ({"out_shardings": {}}, "field 'out_shardings' cannot be"),
        ({"in_avals": [["float32", [7, 8], False]]}, "cannot be split into the 2 parts"),
    ],
)
def test_headers_that_do_not_fit(blob: bytes, change: dict[str, Any], said: str) -> None:
    header, body = exported_file.SHARDED_FILE.unpacked(blob)
    with pytest.raises(LoadError, match=said):
        export.deserialize(exported_file.SHARDED_FILE.packed({**header, **change}, body))
    assert export.deserialize(blob).nr_devices == 8


def test_a_sharded_module_in_a_file_without_shardings(blob: bytes) -> None:
    header, body = exported_file.SHARDED_FILE.unpacked(blob)
    with pytest.raises(LoadError, match="the StableHLO is for 8 devices, but the header says 1"):
        export.deserialize(exported_file.FILE.packed({k: header[k] for k in exported_file.FILE.fields}, body))


def test_axes_without_names_in_files() -> None:
    found = exported(lambda x: x, typed(0, mesh=AbstractMesh((8,), (0,), AxisType.Auto)))
    with pytest.raises(ValueError, match="serialize: the mesh axis 0 is no string, as names in a file must be"):
        found.serialize()


# What is refused.


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: exported(lambda a, b: a + b, typed("x"), typed("a", mesh=FOUR)),
            r"the argument 'a' of <lambda> is sharded over 8 devices, but the program runs on the 4 of Mesh\('a': 4",
        ),
        (
            lambda: exported(lambda x: lax.with_sharding_constraint(x, NamedSharding(FOUR, P("a"))), typed("x")),
            "the argument 'x' of <lambda> is sharded over 8 devices, but the program runs on the 4",
        ),
        (
            lambda: exported(lambda x: x, typed("x", mesh=MESH), out_shardings=NamedSharding(REVERSED, P("x"))),
            "output 0 of <lambda> is sharded over other devices than Mesh.*, or over the same in another order",
        ),
        (
            lambda: exported(lambda x: x, typed("y", shape=(6,))),
            "export: the argument 'x' of <lambda>: dimension 0 of an array of shape .* cannot be split into the 4",
        ),
    ],
)
def test_shardings_that_do_not_fit(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()
