"""Refs as leaves of pytrees and as arguments: jit, vmap, scan, vjp, make_jaxpr. Values are those of JAX 0.10.2."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import lax, numpy as jnp
from xlamini.ad import DidntWant, DontWant, GradRef, GradValue
from xlamini.core.flags.jax_flags import check_static_indices
from xlamini.ref import AbstractRef, Ref, addupdate, empty_ref, free_ref, get, new_ref

pytestmark = pytest.mark.sample(3)

RAMP = np.arange(3, dtype=np.float32)


def write(x: Any, ref: Ref) -> None:
    ref[...] = x


# --- leaves


def test_refs_are_leaves_of_pytrees() -> None:
    r = new_ref(RAMP)
    assert xlamini.tree.leaves({"a": r}) == [r]
    assert_close(xlamini.tree.map(get, {"a": r})["a"], RAMP, 0)
    assert xlamini.block_until_ready({"a": r})["a"] is r
    assert repr(xlamini.typeof(r)) == "Ref{float32[3]}" and isinstance(xlamini.typeof(r), AbstractRef)


# --- jit


def test_one_trace_serves_all_refs_of_a_type() -> None:
    traced = []

    @xlamini.jit
    def add(refs: Any, x: Any) -> Any:
        traced.append(x)
        refs["a"][...] += x
        return refs["a"][...] * 10

    first, second = new_ref(1.0), new_ref(2.0)
    assert [float(add({"a": r}, 1.0)) for r in (first, second, first)] == [20, 30, 30]
    assert (float(first[...]), float(second[...]), len(traced)) == (3, 3, 1)


def test_nested_calls_with_several_refs() -> None:
    @xlamini.jit
    def inner(refs: Any, g: Any) -> None:
        refs[0][...] -= g
        refs[1][...] -= g

    @xlamini.jit
    def outer(a: Ref, b: Ref) -> None:
        inner((a, b), 1.0)
        inner((b, a), 2.0)

    a, b = new_ref(0.0), new_ref(1.0)
    outer(a, b)
    outer(a, b)
    assert (float(a[...]), float(b[...])) == (-6, -5)


def test_a_jitted_function_takes_a_ref_and_closes_over_others() -> None:
    count, total = new_ref(0), new_ref(0.0)

    def step(ref: Ref, x: Any) -> None:
        count[...] += 1
        total[...] += x
        ref[...] *= x

    r = new_ref(jnp.ones(3))
    both = xlamini.jit(lambda ref, x: xlamini.jit(step)(ref, x))
    for run in (xlamini.jit(step), both, step):
        run(r, 2.0)
    assert (int(count[...]), float(total[...])) == (3, 6)
    assert_close(r[...], [8, 8, 8], 0)


def test_static_arguments_and_shardings_beside_a_ref() -> None:
    @functools.partial(xlamini.jit, static_argnames="times", in_shardings=(None, None), out_shardings=None)
    def add(ref: Ref, x: Any, times: int = 1) -> Any:
        for _ in range(times):
            ref[...] += x
        return x

    r = new_ref(0.0)
    add(r, 1.0, times=3)
    assert_close(r[...], 3, 0)


# --- vmap


def test_vmap_maps_refs() -> None:
    r = new_ref(jnp.zeros(3))
    xlamini.vmap(write)(RAMP, r)
    assert_close(r[...], RAMP, 0)
    xlamini.jit(xlamini.vmap(lambda x, ref: addupdate(ref, ..., x)))(RAMP, r)
    assert_close(r[...], 2 * RAMP, 0)

    def distance(x: Any, y: Any, out: Ref) -> None:
        assert (x.ndim, out.ndim) == (1, 0)
        out[...] = ((x - y) ** 2).sum()

    vectors, table = np.arange(12.0, dtype=np.float32).reshape(3, 4), new_ref(jnp.zeros((3, 3)))
    xlamini.vmap(xlamini.vmap(distance, (0, None, 0)), (None, 0, 0))(vectors, vectors, table)
    assert_close(table[...], [[0, 64, 256], [64, 0, 64], [256, 64, 0]], 0)


def test_vmap_over_another_axis_of_a_ref_and_of_none() -> None:
    r = new_ref(np.arange(6, dtype=np.float32).reshape(2, 3))
    sums = xlamini.vmap(lambda ref: (addupdate(ref, 0, 1.0), ref[...].sum())[1], in_axes=1)(r)
    assert_close(sums, [4, 6, 8], 0)
    assert_close(r[...], [[1, 2, 3], [3, 4, 5]], 0)
    xlamini.vmap(lambda x, ref: addupdate(ref, ..., 1.0), in_axes=(0, None))(RAMP, r)
    assert_close(r[...], [[2, 3, 4], [4, 5, 6]], 0)
    with pytest.raises(ValueError, match="with vmapped value on an unbatched array reference"):
        xlamini.vmap(lambda x, ref: addupdate(ref, ..., x), in_axes=(0, None))(RAMP, r)
    assert_close(r[...], [[2, 3, 4], [4, 5, 6]], 0)


# --- loops and branches


def test_scan_slices_a_ref() -> None:
    r = new_ref(jnp.ones(3))

    def body(carry: Any, part: Any) -> Any:
        part["r"][...] += carry
        return carry + 1, part["r"][...] * part["x"]

    last, ys = lax.scan(body, 0.0, {"r": r, "x": RAMP})
    assert_close(last, 3, 0)
    assert_close(ys, [0, 2, 6], 0)
    assert_close(r[...], [1, 2, 3], 0)
    xlamini.jit(lambda ref: lax.scan(body, 0.0, {"r": ref, "x": RAMP}, reverse=True))(r)
    assert_close(r[...], [3, 3, 3], 0)


def test_a_branch_takes_a_ref() -> None:
    r = new_ref(1.0)
    lax.cond(True, lambda ref, x: addupdate(ref, ..., x), lambda ref, x: None, r, 2.0)
    assert_close(xlamini.checkpoint(lambda ref, x: ref[...] * x)(r, 2.0), 6, 0)


# --- derivatives


def square(ref: Ref) -> Any:
    return ref[...] ** 2


def test_the_gradient_of_a_ref_is_added_to_a_ref() -> None:
    x, total = new_ref(2.0), new_ref(100.0)
    y, pullback = xlamini.vjp(square, x)
    assert pullback.with_refs(total)(1.0) == (GradRef(),)
    assert (float(y), float(total[...])) == (4, 104)
    with pytest.raises(ValueError, match=r"must be accumulated into a ref.*with_refs"):
        pullback(1.0)

    def updated(ref: Ref) -> Any:
        ref[...] = jnp.sin(ref[...])
        return ref[...] ** 2

    start, total = new_ref(2.0), new_ref(0.0)
    _, pullback = xlamini.vjp(updated, start)
    pullback.with_refs(total)(1.0)
    assert_close(total[...], 2 * np.sin(2) * np.cos(2), 1e-6)
    assert_close(start[...], np.sin(2), 1e-6)
    out, pullback, aux = xlamini.vjp(lambda r, x: (r[...] * x, r.shape), new_ref(3.0), 2.0, has_aux=True)
    assert (float(out), aux) == (6, ())
    assert float(pullback.with_refs(DontWant(), GradValue())(1.0)[1]) == 3


def test_each_gradient_goes_where_its_entry_says() -> None:
    _, pullback = xlamini.vjp(lambda p, z: p["a"] * p["b"] * z, {"a": 2.0, "b": 3.0}, 5.0)
    total = new_ref(1.0)
    found = pullback.with_refs({"a": total, "b": GradValue()}, DontWant())(1.0)
    assert float(total[...]) == 16 and float(found[0]["b"]) == 10
    assert (found[0]["a"], found[1]) == (GradRef(), DidntWant())
    program = xlamini.make_jaxpr(lambda: pullback.with_refs(GradValue(), DontWant())(1.0))()
    assert str(program).count("mul") < str(xlamini.make_jaxpr(lambda: pullback(1.0))()).count("mul")


def test_gradients_are_accumulated_in_a_jitted_scan() -> None:
    def loss(w: Any, x: Any) -> Any:
        return jnp.sin(x @ w).sum()

    def accumulated(w: Any, xs: Any) -> Any:
        total = new_ref(jnp.zeros_like(w))

        def step(_: Any, x: Any) -> Any:
            value, pullback = xlamini.vjp(lambda w: loss(w, x), w)
            pullback.with_refs(total)(jnp.ones_like(value))
            return None, value

        _, values = lax.scan(step, None, xs)
        return total[...], values

    w, xs = jnp.ones(3), np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    for run in (accumulated, xlamini.jit(accumulated)):
        total, values = run(w, xs)
        assert_close(total, sum(np.cos(x @ np.ones(3)) @ x for x in xs), 1e-4)
        assert_close(values, [np.sin(x @ np.ones(3)).sum() for x in xs], 1e-4)


def test_the_jaxpr_of_a_function_of_refs_takes_refs() -> None:
    r = new_ref(RAMP)
    program, out = xlamini.make_jaxpr(lambda x, ref: (addupdate(ref, ..., x), x * 2)[1], return_shape=True)(1.0, r)
    assert list(map(str, program.in_avals)) == ["~float32[]", "Ref{float32[3]}"]
    assert [a.shape for a in program.out_avals] == [()]
    assert out.shape == () and xlamini.eval_shape(lambda ref: ref[...] * 2, r).shape == (3,)
    assert_close(r[...], RAMP, 0)


# --- parts, and refs that are empty or freed


@pytest.mark.full
def test_parts_of_a_ref() -> None:
    r = new_ref(jnp.zeros(4))
    r.at[1].set(5.0)
    r.at[1:].add(1.0)
    r.at[1:].at[0].multiply(2.0)
    r.at[2:][1] = 7.0
    r.at[:2][...] += 1.0
    assert_close(r[...], [1, 13, 1, 7], 0)
    assert_close(r.at[9].get(mode="fill", fill_value=-1), -1, 0)
    assert_close(r.at[1:][0], 13, 0)
    r.addupdate(1.0)
    r.addupdate(1.0, 0)
    assert_close(r[...], [3, 14, 2, 8], 0)
    assert r.sharding == r[...].sharding and r.unsafe_buffer_pointer() == r[...].unsafe_buffer_pointer()
    assert_close(xlamini.grad(lambda x: (q := new_ref(x), q.at[0].multiply(x[1]), q[...].sum())[2])(RAMP), [1, 1, 1], 0)


def test_an_empty_ref_and_a_freed_one() -> None:
    r = xlamini.jit(lambda: empty_ref(xlamini.ShapeDtypeStruct((2,), "int32"))[...])()
    assert (r.shape, r.dtype) == ((2,), np.int32)
    r = new_ref(1.0)
    free_ref(r)
    for use in (lambda: r[...], lambda: addupdate(r, ..., 1.0)):
        with pytest.raises(ValueError, match=r"a ref of type Ref\{float32\[\]\} is used after free_ref"):
            use()
    with pytest.raises(NotImplementedError, match="memory_space and kind must be None"):
        new_ref(1.0, memory_space="device")


# --- errors


@pytest.mark.parametrize(
    "run",
    [
        lambda r: xlamini.jit(lambda ref: ref)(r),
        lambda r: xlamini.jit(lambda x: {"made": new_ref(x)})(1.0),
        lambda r: xlamini.vmap(lambda ref: ref)(r),
        lambda r: lax.cond(True, lambda: r, lambda: r),
        lambda r: lax.scan(lambda c, x: (c, new_ref(x)), 0.0, RAMP),
        lambda r: xlamini.eval_shape(lambda ref: ref, r),
    ],
)
def test_a_ref_is_not_returned(run: Callable[[Ref], Any]) -> None:
    with pytest.raises(ValueError, match=r"returned a mutable array reference of type .*cannot be returned"):
        run(new_ref(RAMP))


def test_a_ref_is_passed_once_and_not_closed_over_besides() -> None:
    r = new_ref(RAMP)
    with pytest.raises(ValueError, match="only one reference to a mutable array may be passed"):
        xlamini.jit(lambda a, b: None)(r, r)
    for transformed in (xlamini.jit, xlamini.vmap, lambda f: lambda ref: lax.scan(lambda c, x: (c, f(x)), 0.0, ref)):
        with pytest.raises(ValueError, match=r"was both closed over, at .*, and passed as an argument"):
            transformed(lambda ref: ref[...] + r[...])(r)
    assert_close(xlamini.jit(lambda: r[...])(), RAMP, 0)


def test_a_ref_is_no_array() -> None:
    r = new_ref(RAMP)
    carried = lambda r: lax.scan(lambda c, x: (c, x), r, RAMP)
    for use in (jnp.sin, jnp.asarray, np.asarray, lambda r: lax.add(r, 1.0), carried):
        with pytest.raises(TypeError, match=r"a ref of type Ref\{float32\[3\]\} is used where an array is expected"):
            use(r)


def test_what_takes_no_refs_says_so() -> None:
    r = new_ref(1.0)
    with pytest.raises(TypeError, match=r"to differentiate is a ref.*with_refs"):
        xlamini.grad(square)(r)
    with pytest.raises(TypeError, match="the stages of compilation take its value"):
        xlamini.jit(square).lower(r)
    _, pullback = xlamini.vjp(lambda x, y: x * y, 2.0, 3.0)
    with pytest.raises(TypeError, match=r"with_refs: 1.0 of type float is given"):
        pullback.with_refs(1.0, GradValue())
    with pytest.raises(ValueError, match=r"with_refs: .* tuple of length 1"):
        pullback.with_refs(GradValue())
    with pytest.raises(ValueError, match=r"added to a ref of shape \(3,\); pass a ref of shape \(\)"):
        pullback.with_refs(new_ref(RAMP), GradValue())(1.0)


def test_the_type_of_a_ref_is_made_from_an_arrays_type() -> None:
    assert repr(xlamini.ref.AbstractRef(xlamini.typeof(np.ones(2, np.float32)))) == "Ref{float32[2]}"
    with pytest.raises(TypeError, match=r"AbstractRef: inner_aval must be a ShapedArray, got 2; write xlamini.typeof"):
        xlamini.ref.AbstractRef(2)  # type: ignore[arg-type]


# --- leaves that are no arrays, and numbers out of bounds


def test_device_get_leaves_refs_as_they_are() -> None:
    r = new_ref(RAMP)
    got = xlamini.device_get({"a": r, "b": jnp.ones(2)})
    assert got["a"] is r and type(got["b"]) is np.ndarray


@pytest.mark.parametrize("index", [3, np.int32(3), (3,)])
def test_a_ref_refuses_numbers_out_of_bounds_whatever_the_flag(index: Any) -> None:
    r = new_ref(RAMP)
    with check_static_indices(False):
        assert_close(r[...][index], RAMP[2], 0)
        for use in (lambda: r[index], lambda: r.__setitem__(index, 1.0), lambda: addupdate(r, index, 1.0)):
            with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
                use()
        assert_close(xlamini.jit(lambda r: r[index])(r), RAMP[2], 0)
    assert_close(r[...], RAMP, 0)
