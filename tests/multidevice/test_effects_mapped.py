"""Callbacks in programs on several devices: what they see and how often is what JAX 0.10 shows."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import DEVICES, HALF, MESH, REVERSED, split, table
from xlamini import (
    NamedSharding,
    P,
    ShapeDtypeStruct,
    checkpoint,
    debug,
    effects_barrier,
    grad,
    jit,
    lax,
    numpy as jnp,
    pmap,
    pure_callback,
    shard_map,
    vmap,
)
from xlamini.experimental import io_callback

LINE = xlamini.make_mesh((8,), ("x",), axis_types=xlamini.sharding.AxisType.Auto)
X = table(16)
PARTS = [[2.0 * i, 2.0 * i + 1] for i in range(8)]
ON_LINE = NamedSharding(LINE, P("x"))


def f32(*shape: int) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, "float32")


def on_line(f: Any, in_specs: Any = P("x"), out_specs: Any = P("x"), **options: Any) -> Any:
    return shard_map(f, mesh=LINE, in_specs=in_specs, out_specs=out_specs, **options)


def spread(value: Any = X) -> Any:
    return xlamini.device_put(value, ON_LINE)


class Noting(list[Any]):
    """A callback that notes what it gets and returns it."""

    def __call__(self, *values: Any) -> Any:
        self.append([np.asarray(v).tolist() for v in values])
        return values[0] if values else np.float32(3)

    def sorted(self) -> list[Any]:
        return sorted(found[0] for found in self)


@pytest.fixture
def seen() -> Noting:
    return Noting()


def doubled(x: Any) -> Any:
    return np.asarray(x) * 2


def observed(f: Any, x: Any, **options: Any) -> Any:
    debug.callback(f, x, **options)
    return x


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)


# --- in shard_map and pmap: each device with what it has


@pytest.mark.parametrize("around", [lambda f: f, jit, lambda f: jit(jit(f))])
@pytest.mark.parametrize(
    "call",
    [
        observed,
        lambda f, x: io_callback(f, f32(2), x),
        lambda f, x: io_callback(f, f32(2), x, ordered=True),
        lambda f, x: pure_callback(f, f32(2), x),
        lambda f, x: observed(f, x, partitioned=True),
    ],
)
def test_each_device_calls_with_its_part(seen: Noting, call: Any, around: Any) -> None:
    same(around(on_line(lambda x: call(seen, x)))(X), X)
    effects_barrier()
    assert seen.sorted() == PARTS
    seen.clear()
    same(pmap(lambda x: call(seen, x))(X.reshape(8, 2)), X.reshape(8, 2))
    effects_barrier()
    assert seen.sorted() == PARTS


def test_of_a_shared_value_every_device_calls(seen: Noting) -> None:
    assert on_line(lambda x: observed(seen, lax.psum(x, "x")), out_specs=P())(X).tolist() == [56, 64]
    assert seen.sorted() == [[56, 64]] * 8


def test_each_line_that_is_printed_is_one_piece(capfd: pytest.CaptureFixture[str]) -> None:
    on_line(lambda x: [debug.print("<{}>", v) for v in x] and x)(X)
    effects_barrier()
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(f"<{float(i)}>" for i in range(16))


def test_results_vary_as_operands_do() -> None:
    def types(x: Any) -> Any:
        own, common = pure_callback(doubled, f32(2), x), pure_callback(doubled, f32(2), lax.psum(x, "x"))
        assert (own.aval.vma, common.aval.vma) == ({"x"}, frozenset())
        return own, common

    own, common = on_line(types, out_specs=(P("x"), P()))(X)
    same(own, 2 * X)
    assert common.tolist() == [112, 128]
    with pytest.raises(ValueError, match=r"out_specs has P\(\) for output 0 .* f32\[2\]\{V:x\} says that they may"):
        on_line(lambda x: pure_callback(doubled, f32(2), x), out_specs=P())(X)


def ring(x: Any) -> Any:
    return lax.ppermute(x, "x", [(i, (i + 1) % 8) for i in range(8)])


@pytest.mark.full
def test_in_loops_and_branches(seen: Noting) -> None:
    def thrice(call: Any) -> Any:
        return jit(on_line(lambda x: lax.scan(lambda c, _: (ring(call(c)), None), x, None, length=3)[0]))(X)

    same(thrice(lambda c: pure_callback(doubled, f32(2), c)), 8 * np.roll(X, 6))
    same(thrice(lambda c: io_callback(doubled, f32(2), c, ordered=True)), 8 * np.roll(X, 6))
    same(thrice(lambda c: observed(seen, c)), np.roll(X, 6))
    assert seen.sorted() == sorted(3 * PARTS)
    seen.clear()
    late = on_line(lambda x: lax.cond(lax.axis_index("x") > 3, lambda x: observed(seen, x), lambda x: x, x))
    same(late(X), X)
    assert seen.sorted() == PARTS[4:]


@pytest.mark.full
def test_under_transformations(seen: Noting) -> None:
    squared = on_line(lambda x: observed(seen, x) ** 2)
    same(grad(lambda x: squared(x).sum())(X), 2 * X)
    assert seen.sorted() == PARTS
    seen.clear()
    same(vmap(squared)(np.stack([X, X + 1])), np.stack([X, X + 1]) ** 2)
    assert seen.sorted() == sorted([*PARTS, *[[a + 1, b + 1] for a, b in PARTS]])
    one_by_one = on_line(lambda x: pure_callback(doubled, f32(2), x, vmap_method="sequential"))
    same(vmap(one_by_one)(np.stack([X, X + 1])), 2 * np.stack([X, X + 1]))
    same(grad(lambda x: checkpoint(on_line(lambda p: jnp.sin(observed(seen, p))))(x).sum())(X), np.cos(X))
    same(grad(lambda x: pmap(lambda p: observed(seen, p) ** 2)(x).sum())(X.reshape(8, 2)), 2 * X.reshape(8, 2))


def test_derivatives_that_call_python() -> None:
    @xlamini.custom_vjp
    def sine(x: Any) -> Any:
        return pure_callback(lambda v: np.sin(np.asarray(v)), f32(2), x)

    def backward(x: Any, ct: Any) -> Any:
        return (ct * pure_callback(lambda v: np.cos(np.asarray(v)), f32(2), x),)

    sine.defvjp(lambda x: (sine(x), x), backward)
    same(grad(lambda x: on_line(sine)(x).sum())(X), np.cos(X))
    with pytest.raises(ValueError, match="which cannot be differentiated"):
        grad(lambda x: on_line(lambda p: pure_callback(doubled, f32(2), p))(x).sum())(X)


# --- in a shard_map over some axes of the mesh


def some_axes(f: Any) -> Any:
    along_x = shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    return jit(along_x)(split(table(4, 4), "x", "y"))


HALVES = [table(4, 4)[:2].tolist(), table(4, 4)[2:].tolist()]


@pytest.mark.full
def test_over_some_axes_what_observes_is_called_once_for_each_part(seen: Noting) -> None:
    same(some_axes(lambda x: observed(seen, x)), table(4, 4))
    assert seen.sorted() == HALVES
    seen.clear()
    counted = some_axes(lambda x: lax.scan(lambda c, _: (observed(seen, c) + 1, None), x, None, length=2)[0])
    same(counted, table(4, 4) + 2)
    assert seen.sorted() == sorted([*HALVES, *[(np.array(h) + 1).tolist() for h in HALVES]])
    same(some_axes(lambda x: pure_callback(doubled, f32(2, 4), x)), 2 * table(4, 4))


def test_over_some_axes_io_is_refused(seen: Noting) -> None:
    with pytest.raises(NotImplementedError, match="along 'y' too; add them to axis_names, or call it outside"):
        some_axes(lambda x: io_callback(seen, f32(2, 4), x))


# --- in jit of arrays on a mesh: the first device with the whole


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "debug": observed,
    "pure": lambda f, x: pure_callback(f, f32(16), x),
    "io": lambda f, x: io_callback(f, f32(16), x),
    "ordered io": lambda f, x: io_callback(f, f32(16), x, ordered=True),
    "without results": lambda f, x: (io_callback(silent(f), None, x), x)[1],
}


def silent(f: Any) -> Any:
    """The function without its result."""
    return lambda *args: [f(*args)].clear()


@pytest.mark.sample(4)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("mesh", [LINE, MESH, REVERSED, HALF])
def test_over_a_mesh_it_is_called_once(seen: Noting, call: Any, mesh: Any, capfd: pytest.CaptureFixture[str]) -> None:
    def noting(x: Any) -> Any:
        seen(x)
        return x

    x = xlamini.device_put(X, NamedSharding(mesh, P("x")))
    same(jit(lambda x: call(noting, x * 2) + 1)(x), 2 * X + 1)
    effects_barrier()
    assert seen == [[(2 * X).tolist()]]
    assert not capfd.readouterr().err  # no remarks of the partitioner's


def test_an_array_split_along_both_axes_is_seen_whole(seen: Noting) -> None:
    jit(lambda x: observed(seen, x))(split(table(4, 8), "x", "y"))
    assert seen == [[table(4, 8).tolist()]]


@pytest.mark.full
def test_over_a_mesh_in_loops_branches_and_functions(seen: Noting) -> None:
    inner = jit(lambda x: pure_callback(doubled, f32(16), x))
    same(jit(lambda x: inner(inner(x)) + inner(x))(spread()), 6 * X)
    count = lambda x: lax.scan(lambda c, _: (io_callback(seen, f32(16), c, ordered=True) + 1, c[0]), x, None, length=3)
    last, firsts = jit(count)(spread())
    same(last, X + 3)
    assert firsts.tolist() == [0, 1, 2] == [found[0][0] for found in seen]
    grown = jit(lambda x: lax.while_loop(lambda c: c.sum() < 1000, lambda c: pure_callback(doubled, f32(16), c), x))
    same(grown(spread()), 16 * X)
    seen.clear()
    jit(lambda x: lax.cond(x.sum() > 3, lambda x: observed(seen, x), lambda x: x, x))(spread())
    assert len(seen) == 1


def test_over_a_mesh_results_lie_as_asked() -> None:
    call = lambda x: pure_callback(doubled, f32(16), x)
    assert jit(call)(spread()).sharding.spec == P()
    found = jit(call, out_shardings=ON_LINE)(spread())
    assert found.sharding.spec == P("x")
    same(found, 2 * X)
    pair = jit(lambda x: pure_callback(lambda v: (np.asarray(v), np.float32(7)), (f32(16), f32()), x))(spread())
    assert pair[1] == 7
    same(jit(lambda x: x + pure_callback(lambda: np.float32(3), f32()))(spread()), X + 3)


def test_over_a_mesh_partitioned_each_device_calls_with_its_part(seen: Noting) -> None:
    jit(lambda x: observed(seen, x * 1, partitioned=True))(spread())
    effects_barrier()
    assert seen.sorted() == PARTS


def test_both_ways_in_one_program(seen: Noting) -> None:
    def both(x: Any) -> Any:
        debug.callback(seen, x[:2])
        parts = on_line(lambda p: pure_callback(doubled, f32(2), p))(x)
        return parts + pure_callback(doubled, f32(16), parts)

    same(jit(both)(spread()), 6 * X)
    assert seen == [[[0, 1]]]


# --- order


@pytest.mark.parametrize("run", [jit, on_line, lambda f: lambda x: pmap(f)(x.reshape(8, 2))])
@pytest.mark.parametrize("observe", [observed, lambda f, x, ordered: debug.print("{}", x, ordered=ordered) or x])
def test_what_observes_is_not_ordered_on_several_devices(seen: Noting, run: Any, observe: Any) -> None:
    with pytest.raises(ValueError, match="ordered=True is for programs on one device, and this one runs on 8"):
        run(lambda x: observe(seen, x, ordered=True))(spread())
    one = xlamini.make_mesh((1,), ("x",), xlamini.sharding.AxisType.Auto, devices=DEVICES[:1])
    shard_map(lambda x: observed(seen, x, ordered=True), mesh=one, in_specs=P("x"), out_specs=P("x"))(X)
    effects_barrier()
    assert seen == [[X.tolist()]]


def test_ordered_programs_follow_one_another(seen: Noting) -> None:
    note = jit(lambda x: io_callback(seen, f32(16), x, ordered=True))
    for i in range(5):
        note(spread(X + i) if i % 2 else X + i)
    effects_barrier()
    assert [found[0][0] for found in seen] == list(range(5))


# --- over a mesh of explicit axes


def test_over_explicit_axes_results_are_whole(seen: Noting) -> None:
    mesh = xlamini.make_mesh((8,), ("x",), axis_types=(xlamini.sharding.AxisType.Explicit,))
    x = xlamini.device_put(X, NamedSharding(mesh, P("x")))

    def both(x: Any) -> Any:
        debug.callback(seen, x)
        debug.inspect_array_sharding(x, callback=lambda s: None)
        return pure_callback(doubled, f32(16), x)

    assert str(xlamini.typeof(both(x))) == "float32[16]"
    assert "b:f32[16] = pure_callback" in str(xlamini.make_jaxpr(both)(x))
    same(jit(both)(x), 2 * X)
    assert seen == [[X.tolist()]] * 2
    same(jit(lambda x: x + both(x))(x), 3 * X)
