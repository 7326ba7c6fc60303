"""`out_sharding=` of functions: what they return is split as asked, has the numbers of one device, or is refused."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import table
from tests.support.error_rows import Row, check, ones, parameters, row
from xlamini import (
    NamedSharding,
    P,
    device_put,
    grad,
    jit,
    lax,
    make_jaxpr,
    nn,
    numpy as jnp,
    ops,
    random,
    set_mesh,
    shard_map,
    vmap,
)
from xlamini.core.flags.config import strict_sharding
from xlamini.errors import ShardingError
from xlamini.sharding import AxisType, auto_axes


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    with strict_sharding(True):
        yield


MESH = xlamini.make_mesh((2, 4), ("x", "y"), axis_types=AxisType.Explicit)
MIXED = xlamini.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
AUTO = xlamini.make_mesh((2, 4), ("x", "y"), axis_types=AxisType.Auto)
X, KEY = table(8, 16) / 64 - 1, random.key(0)
IDS, TWICE = np.arange(8) % 4, np.array([1, 3] * 4)
GROUPS, STACK = np.array([2, 2, 4]), np.cos(table(3, 16, 4))
SIGNAL, KERNEL = np.sin(table(8, 3, 8)), np.cos(table(4, 3, 3))
RAGGED = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])

Function = Callable[..., Any]
INITIALIZERS = {
    "constant": nn.initializers.constant(2.0),
    "uniform": nn.initializers.uniform(),
    "glorot_normal": nn.initializers.glorot_normal(),
    "orthogonal": nn.initializers.orthogonal(),
    "ones": nn.initializers.ones,
}
DRAWS: dict[str, Function] = {
    "uniform": lambda **to: random.uniform(KEY, (8, 16), **to),
    "normal": lambda **to: random.normal(KEY, (8, 16), **to),
    "bits": lambda **to: random.bits(KEY, (8, 16), **to),
    "raw key": lambda **to: random.uniform(random.PRNGKey(3), (8, 16), **to),
    "randint": lambda **to: random.randint(KEY, (8, 16), 0, 9, **to),
    "bernoulli": lambda **to: random.bernoulli(KEY, 0.3, (8, 16), **to),
    "orthogonal": lambda **to: random.orthogonal(KEY, 4, (8,), **to),
    "multivariate_normal": lambda **to: random.multivariate_normal(KEY, np.zeros(4), np.eye(4), (8,), **to),
    "permutation": lambda **to: random.permutation(KEY, X, **to),
}

# A function of X, split along y in its second dimension, then the spec that is asked for and the type that it gives.
CASES: dict[str, tuple[Function, P, str]] = {
    "matmul": (lambda x, **to: jnp.matmul(x, x.T, **to), P("x"), "f32[8@x,8]"),
    "dot": (lambda x, **to: jnp.dot(x, x.T, **to), P("x", "y"), "f32[8@x,8@y]"),
    "tensordot": (lambda x, **to: jnp.tensordot(x, x, ((1,), (1,)), **to), P(None, "x"), "f32[8,8@x]"),
    "linalg.tensordot": (lambda x, **to: jnp.linalg.tensordot(x, x.T, axes=1, **to), P(), "f32[8,8]"),
    "einsum": (lambda x, **to: jnp.einsum("ij,kj->ik", x, x, **to), P("x"), "f32[8@x,8]"),
    "einsum of three": (lambda x, **to: jnp.einsum("ij,kj,kl->il", x, x, x, **to), P("x", "y"), "f32[8@x,16@y]"),
    "lax.dot": (lambda x, **to: lax.dot(x, x.T, **to), P("x"), "f32[8@x,8]"),
    "ragged_dot": (lambda x, **to: lax.ragged_dot(x, STACK, GROUPS, **to), P("x"), "f32[8@x,4]"),
    "ragged_dot_general": (
        lambda x, **to: lax.ragged_dot_general(x, STACK, GROUPS, RAGGED, **to), P(None, "y"), "f32[8,4@y]"
    ),
    "convolution": (
        lambda x, **to: lax.conv_general_dilated(SIGNAL, KERNEL, (1,), "SAME", **to), P("x"), "f32[8@x,4,8]"
    ),
    "reshape": (lambda x, **to: jnp.reshape(x, (16, -1), **to), P("x"), "f32[16@x,8]"),
    "reshape by columns": (lambda x, **to: jnp.reshape(x, (16, 8), "F", **to), P("x"), "f32[16@x,8]"),
    "reshape along two axes": (lambda x, **to: lax.reshape(x, (128,), **to), P(("x", "y")), "f32[128@(x,y)]"),
    "method reshape": (lambda x, **to: jnp.asarray(x).reshape(4, 32, **to), P("y"), "f32[4@y,32]"),
    "ravel": (lambda x, **to: jnp.ravel(x, **to), P("y"), "f32[128@y]"),
    "method flatten": (lambda x, **to: jnp.asarray(x).flatten(**to), P("x"), "f32[128@x]"),
    "repeat": (lambda x, **to: jnp.repeat(x, 2, axis=1, **to), P("x", "y"), "f32[8@x,32@y]"),
    "repeat each": (lambda x, **to: jnp.repeat(x, TWICE, axis=0, **to), P("y"), "f32[16@y,16]"),
    "repeat in a length": (
        lambda x, **to: jnp.repeat(x, TWICE, 0, total_repeat_length=16, **to), P("x"), "f32[16@x,16]"
    ),
    "broadcast_to": (lambda x, **to: jnp.broadcast_to(x, (4, 8, 16), **to), P("y", "x"), "f32[4@y,8@x,16]"),
    "broadcast": (lambda x, **to: lax.broadcast(x, (4,), **to), P("x"), "f32[4@x,8,16]"),
    "broadcast_in_dim": (
        lambda x, **to: lax.broadcast_in_dim(x, (4, 8, 16), (1, 2), **to), P("x"), "f32[4@x,8,16]"
    ),
    "percentile": (lambda x, **to: jnp.percentile(x, np.array([20.0, 30.0]), 1, **to), P("x"), "f32[2@x,8]"),
    "bincount": (lambda x, **to: jnp.bincount(IDS, length=4, **to), P("x"), "i32[4@x]"),
    "reduce_sum": (lambda x, **to: lax.reduce_sum(x, (0,), **to), P("x"), "f32[16@x]"),
    "reduce": (lambda x, **to: lax.reduce(x, np.float32(0), lambda a, b: a + b, (0,), **to), P("x"), "f32[16@x]"),
    "segment_sum": (lambda x, **to: ops.segment_sum(x, IDS, 4, **to), P("x", "y"), "f32[4@x,16@y]"),
    "segment_max": (lambda x, **to: ops.segment_max(x, IDS, 4, **to), P("y"), "f32[4@y,16]"),
    "segment_min": (lambda x, **to: ops.segment_min(x, IDS, 4, **to), P(), "f32[4,16]"),
    "segment_prod": (lambda x, **to: ops.segment_prod(x, IDS, 4, **to), P("x"), "f32[4@x,16]"),
    "at get": (lambda x, **to: jnp.asarray(x).at[IDS].get(**to), P("y", "x"), "f32[8@y,16@x]"),
    "at set": (lambda x, **to: jnp.asarray(x).at[0].set(1.0, **to), P("x", "y"), "f32[8@x,16@y]"),
    "at add": (lambda x, **to: jnp.asarray(x).at[IDS].add(1.0, **to), P("x"), "f32[8@x,16]"),
    "at multiply": (lambda x, **to: jnp.asarray(x).at[IDS].multiply(2.0, **to), P("x"), "f32[8@x,16]"),
    "at divide": (lambda x, **to: jnp.asarray(x).at[IDS].divide(2.0, **to), P("x"), "f32[8@x,16]"),
    "at max of a mask": (lambda x, **to: jnp.asarray(x).at[x > 0].max(0.5, **to), P("x"), "f32[8@x,16]"),
    "zeros": (lambda x, **to: jnp.zeros((8, 16), **to), P("x", "y"), "f32[8@x,16@y]"),
    "many zeros": (lambda x, **to: jnp.zeros((80, 160), **to), P("x", "y"), "f32[80@x,160@y]"),
    "ones": (lambda x, **to: jnp.ones((8, 16), "int8", **to), P("x"), "i8[8@x,16]"),
    "empty": (lambda x, **to: jnp.empty((8, 16), **to), P("x"), "f32[8@x,16]"),
    "full": (lambda x, **to: jnp.full((8, 16), 2, **to), P("x"), "i32[8@x,16]"),
    "full of unsigned": (lambda x, **to: jnp.full((80, 160), 3e9, "uint32", **to), P("x"), "u32[80@x,160]"),
    "full of an array": (lambda x, **to: jnp.full((80, 160), jnp.float32(3), **to), P("x"), "f32[80@x,160]"),
    "full of a row": (lambda x, **to: jnp.full((8, 16), jnp.arange(16.0), **to), P("x"), "f32[8@x,16]"),
    "zeros_like": (lambda x, **to: jnp.zeros_like(x, **to), P("y"), "f32[8@y,16]"),
    "ones_like": (lambda x, **to: jnp.ones_like(x, **to), P("x", "y"), "f32[8@x,16@y]"),
    "full_like": (lambda x, **to: jnp.full_like(x, 3, **to), P("x"), "f32[8@x,16]"),
    "arange": (lambda x, **to: jnp.arange(16, **to), P("y"), "i32[16@y]"),
    "arange in steps": (lambda x, **to: jnp.arange(1, 17, 2.0, **to), P("y"), "f32[8@y]"),
    "iota": (lambda x, **to: lax.broadcasted_iota("int32", (8, 16), 1, **to), P("x", "y"), "i32[8@x,16@y]"),
    "lax.empty": (lambda x, **to: lax.empty((8,), "float32", **to), P("x"), "f32[8@x]"),
    "array": (lambda x, **to: jnp.array(x, **to), P("x"), "f32[8@x,16]"),
    "array of lists": (lambda x, **to: jnp.array([[1, 2], [3, 4.5]], **to), P("x"), "f32[2@x,2]"),
    "array of rank": (lambda x, **to: jnp.array([1, 2], ndmin=2, **to), P(None, "x"), "i32[1,2@x]"),
    "array of a number": (lambda x, **to: jnp.array(3.5, **to), P(), "f32[]"),
    "asarray": (lambda x, **to: jnp.asarray(x, **to), P("y"), "f32[8@y,16]"),
    "asarray of NumPy's": (lambda x, **to: jnp.asarray(X, "bfloat16", **to), P("x"), "bf16[8@x,16]"),
    "rng_bit_generator": (
        lambda x, **to: lax.rng_bit_generator(np.arange(4, dtype=np.uint32), (8, 16), **to)[1], P("x"), "u32[8@x,16]"
    ),
    **{
        f"random {name}": (lambda x, draw=draw, **to: draw(**to), P("x"), "")
        for name, draw in DRAWS.items()
    },
    **{
        f"initializers.{name}": (lambda x, f=f, **to: f(KEY, (8, 16), **to), P("x", "y"), "f32[8@x,16@y]")
        for name, f in INITIALIZERS.items()
    },
}
OTHER_BITS = {"rng_bit_generator"}  # the backend's own generator gives each device other ones


def split(value: Any, *partitions: Any, mesh: Any = MESH) -> Any:
    return device_put(value, NamedSharding(mesh, P(*partitions)))


def text_of(x: Any) -> str:
    return xlamini.typeof(x).str_short()


@pytest.mark.sample(72)
@pytest.mark.parametrize("name", CASES)
def test_split_as_asked(name: str) -> None:
    fun, spec, text = CASES[name]
    expected = fun(jnp.asarray(X))
    with set_mesh(MESH):
        for run in (fun, jit(fun, static_argnames="out_sharding")):
            found = run(split(X, None, "y"), out_sharding=spec)
            assert found.sharding.is_equivalent_to(NamedSharding(MESH, spec), found.ndim)
            assert text_of(found) == (text or text_of(expected).replace("[8", "[8@x"))
            if name not in OTHER_BITS:
                np.testing.assert_allclose(found.astype("float32"), expected.astype("float32"), 1e-5, 1e-5)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(("random", "initializers"))])
def test_where_the_compiler_decides(name: str) -> None:
    """Along axes of type Auto types say nothing, but the result lies as asked; the sharding may name its mesh."""
    fun, spec, _ = CASES[name]
    there = NamedSharding(AUTO, spec)
    found = jit(fun, static_argnames="out_sharding")(X, out_sharding=there)
    assert found.sharding.is_equivalent_to(there, found.ndim)
    assert "@" not in text_of(found)
    if name not in OTHER_BITS:
        expected = fun(jnp.asarray(X)).astype("float32")
        np.testing.assert_allclose(found.astype("float32"), expected, 1e-5, 1e-5)


@pytest.mark.parametrize("name", ["matmul", "at get", "many zeros", "arange", "asarray", "random normal", "reduce"])
def test_outside_of_a_program_where_the_compiler_decides(name: str) -> None:
    fun, spec, _ = CASES[name]
    with set_mesh(AUTO):
        found = fun(split(X, None, "y", mesh=AUTO), out_sharding=spec)
    assert found.sharding.is_equivalent_to(NamedSharding(AUTO, spec), found.ndim)
    np.testing.assert_allclose(found, fun(jnp.asarray(X)), 1e-5, 1e-5)


def test_axes_of_both_types() -> None:
    """Types speak of the explicit axes; along the others the compiler is told."""
    with set_mesh(MIXED):
        found = jnp.matmul(X, X.T, out_sharding=P("x", "y"))
        assert (text_of(found), found.sharding.spec) == ("f32[8@x,8]", P("x", "y"))
    np.testing.assert_allclose(found, X @ X.T, 1e-5, 1e-5)


def test_the_sharding_names_the_mesh() -> None:
    """Then none need be set."""
    there = NamedSharding(MESH, P("x"))
    for run in (jnp.matmul, jit(jnp.matmul, static_argnames="out_sharding")):
        found = run(X, X.T, out_sharding=there)
        assert (text_of(found), found.sharding.mesh) == ("f32[8@x,8]", MESH)
    assert text_of(jnp.ones((8, 2), out_sharding=there)) == "f32[8@x,2]"
    assert text_of(random.normal(KEY, (8,), out_sharding=there)) == "f32[8@x]"


def test_no_device_has_all_of_it() -> None:
    """An array that is made in parts is not made whole first: no more than its parts are allocated."""
    with set_mesh(MESH):
        lowered = jit(lambda: jnp.zeros((800, 1600), out_sharding=P("x", "y"))).lower()
        assert "f32[800,1600]" not in lowered.compile().as_text()
        draw = jit(lambda key: random.normal(key, (800, 1600), out_sharding=P("x", "y"))).lower(KEY)
        assert "f32[800,1600]" not in draw.compile().as_text()


def test_like() -> None:
    """Without `out_sharding` an array like another is split as that is, unless it has another shape."""
    x = split(X, "x", "y")
    fills = [lambda x: jnp.full_like(x, 2), lambda x: lax.full_like(x, 2)]
    for make in (jnp.zeros_like, jnp.ones_like, jnp.empty_like, *fills):
        assert [text_of(make(x)), text_of(jit(make)(x))] == ["f32[8@x,16@y]"] * 2
    assert text_of(jnp.zeros_like(x, shape=(4,))) == "f32[4]"
    assert jnp.zeros_like(split(X, "y", mesh=AUTO)).sharding.spec == P("y")


def test_in_a_jaxpr() -> None:
    """What the operands leave open the function asks for; the move is an equation."""
    with set_mesh(MESH):
        found = make_jaxpr(lambda x: jnp.einsum("ij,kj->ik", x, x, out_sharding=P("x")))(split(X, None, "y"))
    assert "f32[8@x,8] = reshard" in str(found)


def test_of_several_results() -> None:
    def both(a: Any, b: Any) -> Any:
        return a[0] + b[0], a[1] * b[1]

    zero = np.float32(0)
    with set_mesh(MESH):
        found = lax.reduce((split(X, "x"), X), (zero, zero + 1), both, (0,), out_sharding=P("x"))
    assert [text_of(y) for y in found] == ["f32[16@x]"] * 2
    np.testing.assert_allclose(found[0], X.sum(0), 1e-5, 1e-5)


@pytest.mark.full
def test_vmap() -> None:
    """Under it the mapped axis stays split as it is, and `out_sharding` is about the others."""
    with set_mesh(MESH):
        found = vmap(lambda row: jnp.reshape(row, (4, 4), out_sharding=P("y")))(split(X, "x"))
        assert text_of(found) == "f32[8@x,4@y,4]"
        np.testing.assert_array_equal(found, X.reshape(8, 4, 4))
        keys = random.split(KEY, 8)
        drawn = vmap(lambda key: random.normal(key, (4,), out_sharding=P("y")))(keys)
        assert text_of(drawn) == "f32[8,4@y]"
    np.testing.assert_array_equal(drawn, vmap(lambda key: random.normal(key, (4,)))(keys))


@pytest.mark.parametrize("mesh", [MESH, AUTO, MIXED], ids=["explicit", "auto", "mixed"])
def test_grad(mesh: Any) -> None:
    """A cotangent goes back into the operand's sharding."""

    def loss(x: Any, **to: Any) -> Any:
        return (jnp.matmul(jnp.tanh(x), x.T, **to) ** 2).sum()

    with set_mesh(mesh):
        x = split(X, None, "y", mesh=mesh)
        found = jit(grad(lambda x: loss(x, out_sharding=P("x"))))(x)
        assert text_of(found) == text_of(x)
    np.testing.assert_allclose(found, grad(loss)(X), 1e-4, 1e-4)


def test_scan() -> None:
    with set_mesh(MESH):
        start = jnp.zeros(16, out_sharding=P("y"))
        found = lax.scan(lambda c, row: (c + row * jnp.ones(16, out_sharding=P("y")), None), start, split(X, None, "y"))
    assert text_of(found[0]) == "f32[16@y]"
    np.testing.assert_allclose(found[0], X.sum(0), 1e-5, 1e-5)


def test_within_auto_axes() -> None:
    """There the compiler decides along the axes, and a sharding of theirs is a constraint."""
    with set_mesh(MESH):
        f = auto_axes(lambda x: jnp.reshape(x, (16, 8), out_sharding=NamedSharding(MESH, P("y"))), out_sharding=P("y"))
        found = f(split(X, "x"))
    assert text_of(found) == "f32[16@y,8]"
    np.testing.assert_array_equal(found, X.reshape(16, 8))


def in_mesh(program: Function, mesh: Any = MESH) -> Any:
    with set_mesh(mesh):
        return program()


def mapped(x: Any) -> Any:
    return shard_map(lambda x: jnp.zeros(4, out_sharding=P("x")), mesh=AUTO, in_specs=P("x"), out_specs=P("x"))(x)


MISTAKES = [
    row(
        "no mesh", lambda: jnp.zeros(4, out_sharding=P("x")), ValueError, "zeros: out_sharding is P('x',)",
        "names no mesh; write NamedSharding(mesh, P('x',))", "xlamini.set_mesh(mesh)",
    ),
    row("no mesh in jit", lambda: jit(lambda: jnp.arange(4, out_sharding=P("x")))(), ValueError, "arange: out_shard"),
    row("no mesh to draw over", lambda: random.bits(KEY, (4,), out_sharding=P("x")), ValueError, "bits: out_sharding"),
    row("no mesh at", lambda: jnp.ones(4).at[0].add(1.0, out_sharding=P("x")), ValueError, "add: out_sharding is"),
    row(
        "axis", lambda: in_mesh(lambda: jnp.matmul(X, X.T, out_sharding=P("z"))), ShardingError,
        "names the axis 'z', which the mesh does not have; it has 'x' of size 2, 'y' of size 4",
    ),
    row("twice", lambda: in_mesh(lambda: jnp.ravel(X, out_sharding=P(("x", "x")))), ShardingError, "'x' twice"),
    row(
        "size", lambda: in_mesh(lambda: random.uniform(KEY, (7,), out_sharding=P("x"))), ShardingError,
        "size 7, which cannot be split into the 2 parts that P('x',) asks for", "pad it to 8",
    ),
    row(
        "size of a product", lambda: in_mesh(lambda: jit(lambda x: jnp.dot(x[:5], x.T, out_sharding=P("y")))(X)),
        ShardingError, "dimension 0 of an array of shape (5, 8) has size 5",
    ),
    row(
        "rank", lambda: in_mesh(lambda: jnp.zeros((8, 16), out_sharding=P("x", "y", None))), ShardingError,
        "speaks of 3 dimensions, but the array has 2",
    ),
    row(
        "rank of at", lambda: in_mesh(lambda: jnp.ones((8, 4)).at[0].get(out_sharding=P("x", "y"))), ShardingError,
        "speaks of 2 dimensions, but the array has 1",
    ),
    row(
        "text", lambda: in_mesh(lambda: jnp.reshape(X, -1, out_sharding="x")), TypeError,
        "reshape: out_sharding must be a PartitionSpec or a NamedSharding, got 'x'; write P('x')",
    ),
    row("device", lambda: jnp.ones(4, out_sharding=xlamini.devices()[0]), TypeError, "ones: out_sharding must be a"),
    row(
        "one device's", lambda: lax.broadcast(X, (2,), out_sharding=jnp.ones(()).sharding), TypeError,
        "broadcast: out_sharding must be", "got SingleDeviceSharding",
    ),
    row(
        "both", lambda: in_mesh(lambda: jnp.ones(4, device=xlamini.devices()[0], out_sharding=P("x"))), ValueError,
        "ones: device and out_sharding are both given; leave one out",
    ),
    row("an own axis", lambda: mapped(ones(4)), ValueError, "zeros: out_sharding is P('x',)", "'x' each", "out_specs"),
]


@pytest.mark.parametrize("case", parameters({"out_sharding": MISTAKES}))
def test_mistakes(case: Row) -> None:
    check(case)
