"""Memory spaces in programs: device_put inside of jit, in types, derivatives, loops and branches."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import NamedSharding, P, lax, numpy as jnp
from xlamini.memory import Space
from xlamini.staging.run.eager import program_cache

X = np.arange(1.0, 5.0, dtype=np.float32)


def to_host(x: Any) -> Any:
    return xlamini.device_put(x, Space.Host)


def to_device(x: Any) -> Any:
    return xlamini.device_put(x, Space.Device)


def kind(x: Any) -> str:
    return x.sharding.memory_kind


def sin_through_host(x: Any) -> Any:
    return jnp.sum(jnp.sin(to_device(to_host(x * 2))))


def test_types_show_the_space() -> None:
    host = to_host(X)
    assert str(xlamini.typeof(host)) == "float32<host>[4]" and host.aval.str_short() == "f32<host>[4]"
    program = str(xlamini.make_jaxpr(lambda x: to_device(to_host(x * 2)) + 1)(X))
    assert "c:f32<host>[4] = device_put[memory_space=Host] b" in program
    assert "d:f32[4] = device_put[memory_space=Device] c" in program
    struct = xlamini.ShapeDtypeStruct((2,), "float32", sharding=host.sharding)
    assert str(xlamini.typeof(struct)) == "float32<host>[2]"


def test_results_are_where_their_types_say() -> None:
    moved, twice, same = xlamini.jit(lambda x: (to_host(x + 1), to_host(x) * 2, x))(X)
    assert [kind(y) for y in (moved, twice, same)] == ["pinned_host", "pinned_host", "device"]
    np.testing.assert_array_equal(moved, X + 1)
    np.testing.assert_array_equal(twice, X * 2)
    assert kind(xlamini.jit(lambda x: to_device(x) * 2)(moved)) == "device"
    by_sharding = xlamini.jit(lambda x: xlamini.device_put(x, moved.sharding))(X)
    assert by_sharding.sharding == moved.sharding


def test_eager_operations_stay_in_the_memory_of_their_operands() -> None:
    host = to_host(X)
    assert kind(host + 1) == kind(jnp.sum(host)) == kind(host[1:]) == kind(jnp.sort(host)) == "pinned_host"
    np.testing.assert_allclose(xlamini.nn.softmax(host), np.exp(X) / np.exp(X).sum(), rtol=1e-6)
    np.testing.assert_array_equal(host.at[0].set(7.0), [7, 2, 3, 4])


@pytest.mark.parametrize("wrap", [lambda f: f, xlamini.jit], ids=["eager", "jit"])
def test_operands_in_different_memories_are_refused(wrap: Any) -> None:
    with pytest.raises(ValueError, match=r"memory_space of all inputs passed to `add` must be the same.*<host>\[4\]"):
        wrap(jnp.add)(to_host(X), jnp.asarray(X))
    np.testing.assert_array_equal(wrap(jnp.multiply)(to_host(X), np.float32(3)), 3 * X)  # a number has no memory


def test_constants_are_in_no_memory() -> None:
    shifted = xlamini.jit(lambda x: jnp.where(x > 1, x, 0) + jnp.arange(4))(to_host(X))
    assert kind(shifted) == "pinned_host"
    np.testing.assert_array_equal(shifted, np.where(X > 1, X, 0) + np.arange(4))
    matrix = to_host(np.diag(X))
    np.testing.assert_allclose(jnp.linalg.cholesky(matrix), np.diag(np.sqrt(X)))
    gradient = xlamini.grad(xlamini.nn.logsumexp)(to_host(X))
    np.testing.assert_allclose(gradient, np.exp(X) / np.exp(X).sum(), rtol=1e-6)


def test_a_program_on_host_values_does_not_run_by_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache, "_OPERATION_MS", 0.0)  # any program of the device would run so
    gradient = xlamini.grad(lambda x: xlamini.nn.logsumexp(x) * 0.75)(to_host(X))
    np.testing.assert_allclose(gradient, 0.75 * np.exp(X) / np.exp(X).sum(), rtol=1e-6)


def test_files_keep_the_memories(tmp_path: Path) -> None:
    traced = xlamini.jit(lambda x: (2 * x, to_device(x) + 1))
    compiled = traced.lower(to_host(X)).compile()
    compiled.save(tmp_path / "program")
    exported = xlamini.export.deserialize(xlamini.export.export(traced)(to_host(X)).serialize())
    assert [str(a) for a in exported.out_avals] == ["float32<host>[4]", "float32[4]"]
    for call in (compiled, xlamini.load(tmp_path / "program"), exported.call, xlamini.jit(exported.call)):
        first, second = call(to_host(X))
        assert (kind(first), kind(second)) == ("pinned_host", "device")
        np.testing.assert_array_equal(first, 2 * X)
        np.testing.assert_array_equal(second, X + 1)


def test_in_and_out_shardings() -> None:
    device = jnp.asarray(X).sharding
    host = device.with_memory_kind("pinned_host")
    assert kind(xlamini.jit(lambda x: 2 * x, out_shardings=host)(X)) == "pinned_host"
    assert kind(xlamini.jit(lambda x: x, out_shardings=device)(to_host(X))) == "device"
    double = xlamini.jit(lambda x: 2 * x, in_shardings=host)
    for x in (X, jnp.asarray(X), to_host(X)):
        assert kind(double(x)) == "pinned_host"
        np.testing.assert_array_equal(double(x), 2 * X)
    outer = xlamini.jit(lambda x: xlamini.jit(lambda y: y + 1, out_shardings=host)(x))
    assert kind(outer(X)) == "pinned_host"
    with pytest.raises(ValueError, match=r"jit: out_shardings: a program moves values .* not 'unpinned_host'"):
        xlamini.jit(lambda x: x, out_shardings=device.with_memory_kind("unpinned_host"))(X)
    with pytest.raises(ValueError, match=r"device_put: a program moves values .* not 'unpinned_host'"):
        xlamini.jit(lambda x: xlamini.device_put(x, device.with_memory_kind("unpinned_host")))(X)


@pytest.mark.parametrize("wrap", [lambda f: f, xlamini.jit], ids=["eager", "jit"])
def test_the_derivative_of_a_move_is_the_move_back(wrap: Any) -> None:
    np.testing.assert_allclose(wrap(xlamini.grad(sin_through_host))(X), 2 * np.cos(2 * X), rtol=1e-6)
    gradient = wrap(xlamini.grad(lambda x: jnp.sum(to_device(x) ** 2)))(to_host(X))
    assert kind(gradient) == "pinned_host"
    np.testing.assert_array_equal(gradient, 2 * X)
    out, tangent = xlamini.jvp(wrap(lambda x: to_host(jnp.sin(x))), (X,), (X,))
    assert kind(out) == kind(tangent) == "pinned_host"
    np.testing.assert_allclose(tangent, X * np.cos(X), rtol=1e-6)
    hessian = wrap(xlamini.hessian(sin_through_host))(X)
    np.testing.assert_allclose(hessian, np.diag(-4 * np.sin(2 * X)), rtol=1e-5, atol=1e-6)
    unused = wrap(xlamini.grad(lambda x: 1.0 + 0 * jnp.sum(to_device(x[:1]))))(to_host(X))
    assert kind(unused) == "pinned_host" and not np.any(unused)


def test_vmap() -> None:
    xs = np.stack([X, X + 1])
    outer = xlamini.grad(lambda x: xlamini.vmap(sin_through_host)(x).sum())
    for f in (xlamini.vmap(xlamini.grad(sin_through_host)), outer):
        np.testing.assert_allclose(f(xs), 2 * np.cos(2 * xs), rtol=1e-5)
    assert kind(xlamini.vmap(to_host)(xs)) == "pinned_host"
    assert kind(xlamini.vmap(to_device, out_axes=1)(to_host(xs))) == "device"


def total(carry: Any, x: Any) -> Any:
    """A running sum that is in the host's memory between the iterations."""
    new = to_device(carry) + jnp.sin(x)
    return to_host(new), to_host(new * carry_scale(x))


def carry_scale(x: Any) -> Any:
    return 1 + x


def test_scan_with_carry_and_results_on_the_host() -> None:
    def loss(carry: Any, xs: Any, put: Any) -> Any:
        last, every = lax.scan(total if put else total_in_place, carry, xs)
        return jnp.sum(to_device(last)) + jnp.sum(to_device(every) ** 2)

    def total_in_place(carry: Any, x: Any) -> Any:
        new = carry + jnp.sin(x)
        return new, new * carry_scale(x)

    xs = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    last, every = xlamini.jit(lambda c: lax.scan(total, c, xs))(to_host(X))
    assert kind(last) == kind(every) == "pinned_host" and str(every.aval) == "float32<host>[3,4]"
    np.testing.assert_allclose(last, X + np.sin(xs).sum(0), rtol=1e-6)
    moved = xlamini.grad(lambda c, x: loss(c, x, True), (0, 1))(to_host(X), xs)
    plain = xlamini.grad(lambda c, x: loss(c, x, False), (0, 1))(X, xs)
    assert [kind(g) for g in moved] == ["pinned_host", "device"]
    for a, b in zip(moved, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_the_carry_stays_in_its_memory() -> None:
    with pytest.raises(TypeError, match=r"as float32\[4\], returned as float32<host>\[4\](.|\n)*Space.Device"):
        lax.scan(lambda c, y: (to_host(c), y), X, np.ones((3, 4), np.float32))
    with pytest.raises(TypeError, match=r"float32<host>\[4\] from true_fun, float32\[4\] from (.|\n)*Space.Host"):
        lax.cond(True, to_host, lambda x: x, X)
    found = lax.while_loop(lambda c: jnp.sum(to_device(c)) < 30, lambda c: c * 2, to_host(X))
    assert kind(found) == "pinned_host"
    np.testing.assert_array_equal(found, X * 4)
    assert kind(lax.cond(True, lambda x: x + 1, lambda x: x, to_host(X))) == "pinned_host"


def test_sharded_arrays() -> None:
    mesh = xlamini.make_mesh((4,), ("x",), axis_types=(xlamini.sharding.AxisType.Auto,))
    split = NamedSharding(mesh, P("x"))
    host = split.with_memory_kind("pinned_host")
    x = xlamini.device_put(X, split)
    assert xlamini.jit(to_host)(x).sharding == host
    assert xlamini.jit(lambda x: xlamini.device_put(2 * x, host))(x).sharding == host
    assert xlamini.jit(lambda x: 2 * x, out_shardings=host)(x).sharding == host
    moved = xlamini.jit(xlamini.shard_map(lambda y: to_host(y + 1), mesh=mesh, in_specs=P("x"), out_specs=P("x")))(x)
    assert moved.sharding == host
    np.testing.assert_array_equal(moved, X + 1)
    parts = moved.addressable_shards
    assert {p.data.sharding.memory_kind for p in parts} == {"pinned_host"} and len(parts) == 4


def test_explicit_axes() -> None:
    mesh = xlamini.make_mesh((4,), ("x",))
    with xlamini.set_mesh(mesh):
        x = xlamini.device_put(X, P("x"))
        out = xlamini.jit(lambda x: to_host(2 * x))(x)
        assert str(out.aval) == "float32<host>[4@x]" and kind(out) == "pinned_host"
        gradient = xlamini.grad(lambda x: jnp.sum(to_device(x) ** 2))(out)
        assert str(gradient.aval) == "float32<host>[4@x]"
        np.testing.assert_array_equal(gradient, 4 * X)


def test_donation_needs_the_same_memory() -> None:
    x = to_host(X)
    xlamini.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    with pytest.warns(UserWarning, match=r"donated arguments is of no use.*float32<host>\[4\]"):
        xlamini.jit(lambda x: to_device(x) + 1, donate_argnums=0)(to_host(X))


def test_accelerators_are_told_of_each_move() -> None:
    """Lowered only: the CPU has one memory, and needs no copy."""
    traced = xlamini.jit(lambda x: (to_device(to_host(2 * x)) + 1, to_host(x))).trace(X)
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("@annotate_device_placement") == 3
    assert '_xla_buffer_placement = "pinned_host"' in text and '_xla_buffer_placement = "device"' in text
    assert 'mhlo.memory_kind = "pinned_host"' in text
    assert "annotate_device_placement" not in traced.lower().as_text()
    plain = xlamini.jit(lambda x: to_device(x) + 1).lower(X).as_text()
    assert "memory_kind" not in plain


def test_keys_move_too() -> None:
    key = xlamini.random.key(3)
    moved = xlamini.jit(to_host)(key)
    assert kind(moved) == "pinned_host"
    back = xlamini.jit(to_device)(moved)
    np.testing.assert_array_equal(xlamini.random.bits(back, (3,)), xlamini.random.bits(key, (3,)))
