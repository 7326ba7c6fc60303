"""Refs: read, written and added to, beside the same programs with plain values; through every transformation."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import lax, numpy as jnp
from xlamini.core.flags.jax_flags import check_static_indices
from xlamini.errors import ShapeError, UnexpectedTracerError
from xlamini.ref import Ref, addupdate, freeze, get, new_ref, set as set_ref, swap

RAMP = np.arange(3, dtype=np.float32)


def powers(x: Any) -> Any:
    """x**4 by a ref."""
    r = new_ref(x)
    for _ in range(3):
        r[...] *= x
    return freeze(r)


# --- outside of any trace


def test_static_indices_are_checked_whatever_the_flag_says() -> None:
    r = new_ref(RAMP)
    with check_static_indices(False):
        assert [float(x) for x in r] == [0, 1, 2]
        for use in (lambda: r[3], lambda: set_ref(r, 3, 1.0), lambda: get(r, (-4,)), lambda: r.at[1:].at[2][...]):
            with pytest.raises(IndexError, match="out of bounds"):
                use()
        assert [float(x) for x in xlamini.jit(lambda ref: list(ref))(r)] == [0, 1, 2]
        xlamini.jit(lambda ref: addupdate(ref, 5, 1.0))(r)  # dropped, as in JAX
        assert_close(r[np.int32(1)], 1, 0)
    assert_close(r[...], RAMP, 0)


def test_reading_and_writing() -> None:
    r = new_ref(RAMP)
    r[0] = 5
    r[1:] += 2.0
    assert_close(r[...], [5, 3, 4], 0)
    assert_close(r[1:], [3, 4], 0)
    assert_close(r[np.array([0, 2])], [5, 4], 0)
    r[...] = 1
    assert_close(get(r), [1, 1, 1], 0)
    assert (r.shape, r.dtype, r.ndim, r.size, len(r)) == ((3,), np.float32, 1, 3, 3)


def test_the_functions_of_the_module() -> None:
    r = new_ref(RAMP)
    set_ref(r, 0, 4.0)
    assert_close(swap(r, 0, 7.0), 4, 0)
    addupdate(r, slice(1, 3), 1.0)
    assert_close(freeze(r), [7, 2, 3], 0)
    assert repr(r) == "Ref([7., 2., 3.], dtype=float32)"


def test_a_ref_does_not_follow_the_array_it_was_made_of() -> None:
    array = RAMP.copy()
    r = new_ref(array)
    array[0] = 9
    assert_close(r[...], RAMP, 0)


# --- made inside


def test_a_ref_made_inside_leaves_a_pure_program() -> None:
    assert str(xlamini.make_jaxpr(powers)(1.0)).count("mul") == 3
    assert_close(xlamini.jit(powers)(2.0), 16, 0)
    assert_close(xlamini.grad(powers)(2.0), 32, 0)
    assert_close(xlamini.jit(xlamini.grad(xlamini.grad(powers)))(2.0), 48, 0)
    assert_close(xlamini.vmap(xlamini.grad(powers))(RAMP), 4 * RAMP**3, 0)
    assert_close(xlamini.grad(lambda x: xlamini.vmap(powers)(x).sum())(RAMP), 4 * RAMP**3, 0)


def test_python_may_ask_for_what_a_ref_holds() -> None:
    def collatz(x: Any) -> Any:
        r = new_ref(x)
        while r[...] < 10:
            r[...] *= 3
        return r[...]

    assert_close(xlamini.grad(collatz)(2.0), 9, 0)


# --- closed over, passed as an argument


def test_a_jitted_function_reads_and_writes_a_ref_it_closes_over() -> None:
    r = new_ref(0.0)

    @xlamini.jit
    def add(x: Any) -> Any:
        r[...] += x
        return r[...] * 10

    assert [float(add(x)) for x in (1.0, 2.0, 3.0)] == [10, 30, 60]
    r[...] = 100.0
    assert_close(add(1.0), 1010, 0)
    assert_close(r[...], 101, 0)


def test_a_jitted_function_that_only_reads_sees_the_new_value() -> None:
    r = new_ref(1.0)
    scaled = xlamini.jit(lambda x: x * r[...])
    assert_close(scaled(2.0), 2, 0)
    r[...] = 5.0
    assert_close(scaled(2.0), 10, 0)


def test_a_ref_is_an_argument() -> None:
    @xlamini.jit
    def add(ref: Ref, x: Any, scale: Any = 1.0) -> None:
        ref[...] += x * scale

    first, second = new_ref(0.0), new_ref(RAMP)
    for x in (1.0, 2.0):
        add(first, x)
        add(second, x, scale=2.0)
    assert_close(first[...], 3, 0)
    assert_close(second[...], RAMP + 6, 0)


def test_static_arguments_keep_their_places() -> None:
    def add(ref: Ref, times: int, x: Any) -> None:
        for _ in range(times):
            ref[...] += x

    r = new_ref(0.0)
    xlamini.jit(add, static_argnums=1)(r, 3, 1.0)
    xlamini.jit(add, static_argnames="times")(r, times=2, x=1.0)
    assert_close(r[...], 5, 0)


def test_nested_jits_and_a_ref_of_the_outer_one() -> None:
    @xlamini.jit
    def outer(x: Any) -> Any:
        r = new_ref(x)

        @xlamini.jit
        def times(y: Any) -> None:
            r[...] *= y

        times(2.0)
        times(3.0)
        times(x)
        return r[...]

    assert_close(outer(2.0), 24, 0)
    assert_close(xlamini.grad(outer)(2.0), 24, 0)


# --- loops and branches


def test_a_scan_writes_a_ref() -> None:
    def total(xs: Any) -> Any:
        r = new_ref(1.0)

        def body(carry: Any, x: Any) -> Any:
            r[...] = r[...] * x + carry
            return carry + 1, r[...]

        _, ys = lax.scan(body, 0.0, xs)
        return r[...], ys

    def plain(xs: Any) -> Any:
        r, ys = 1.0, []
        for carry, x in enumerate(xs):
            r = r * x + carry
            ys.append(r)
        return r, np.stack(ys)

    xs = np.array([2.0, 3.0, 4.0], np.float32)
    for run in (total, xlamini.jit(total)):
        for found, expected in zip(run(xs), plain(xs), strict=True):
            assert_close(found, expected, 1e-6)
    gradient = xlamini.grad(lambda xs: total(xs)[0])(xs)
    steps = [(plain(xs + h)[0] - plain(xs - h)[0]) / 2e-2 for h in np.eye(3) * 1e-2]
    assert_close(gradient, np.array(steps), 1e-4)


def test_loops_and_branches_write_a_ref_from_outside() -> None:
    r = new_ref(0.0)
    lax.fori_loop(0, 4, lambda i, c: addupdate(r, ..., i * 1.0) or c, 0)
    assert_close(r[...], 6, 0)
    lax.while_loop(lambda i: i < 3, lambda i: addupdate(r, ..., 1.0) or i + 1, 0)
    assert_close(r[...], 9, 0)
    lax.while_loop(lambda i: r[...] < 20, lambda i: addupdate(r, ..., 2.0) or i + 1, 0)
    assert_close(r[...], 21, 0)
    lax.cond(True, lambda: set_ref(r, ..., 7.0), lambda: None)
    lax.switch(1, [lambda x: None, lambda x: addupdate(r, ..., x)], 1.0)
    assert_close(r[...], 8, 0)


def test_a_ref_in_nested_control_flow_under_jit_and_grad() -> None:
    def run(x: Any) -> Any:
        r = new_ref(x)

        def body(i: Any, c: Any) -> Any:
            lax.cond(i % 2 == 0, lambda: swap(r, ..., r[...] * x), lambda: swap(r, ..., r[...] + x))
            return c

        lax.fori_loop(0, 4, body, 0)
        return r[...]

    def plain(x: float) -> float:
        return ((x * x) + x) * x + x

    assert_close(run(2.0), plain(2.0), 0)
    assert_close(xlamini.jit(run)(2.0), plain(2.0), 0)
    assert_close(xlamini.grad(run)(2.0), 3 * 4 + 2 * 2 + 1, 1e-6)
    assert_close(xlamini.vmap(run)(RAMP), [plain(x) for x in RAMP], 1e-6)


def test_a_checkpointed_function_writes_a_ref_once() -> None:
    r = new_ref(0.0)

    def loss(x: Any) -> Any:
        def inner(x: Any) -> Any:
            r[...] += 1
            return jnp.sin(x)

        return xlamini.checkpoint(inner)(x)

    assert_close(xlamini.grad(loss)(0.0), 1, 0)
    assert_close(r[...], 1, 0)


# --- transformations called from outside


def test_grad_of_a_function_that_writes_a_ref() -> None:
    seen = new_ref(0.0)

    def loss(x: Any) -> Any:
        seen[...] = x * 2
        return x**2

    value, gradient = xlamini.value_and_grad(loss)(3.0)
    assert (float(value), float(gradient), float(seen[...])) == (9, 6, 6)
    assert_close(xlamini.grad(lambda x: (loss(x), x), has_aux=True)(4.0)[0], 8, 0)
    assert_close(seen[...], 8, 0)


def test_every_way_to_differentiate_threads_refs() -> None:
    r = new_ref(0.0)

    def square(x: Any) -> Any:
        r[...] += x
        return x * x, r[...]

    _, pullback, aux = xlamini.vjp(square, 3.0, has_aux=True)
    assert (float(pullback(1.0)[0]), float(aux), float(r[...])) == (6, 3, 3)
    first = lambda x: square(x)[0]
    assert_close(xlamini.jvp(first, (3.0,), (1.0,))[1], 6, 0)
    assert_close(xlamini.linearize(first, 3.0)[1](1.0), 6, 0)
    assert_close(xlamini.vjp(first, 3.0)[1](1.0)[0], 6, 0)
    assert_close(xlamini.jacfwd(first)(3.0), 6, 0)
    assert_close(xlamini.jacrev(first)(3.0), 6, 0)
    assert_close(r[...], 18, 0)
    assert_close(xlamini.jit(xlamini.grad(first))(3.0), 6, 0)
    assert_close(r[...], 21, 0)


def test_vmap_may_read_a_ref_and_write_what_is_not_mapped() -> None:
    r = new_ref(2.0)
    assert_close(xlamini.vmap(lambda x: x * r[...])(RAMP), 2 * RAMP, 0)

    def count(x: Any) -> Any:
        r[...] += 1
        return x

    xlamini.vmap(count)(RAMP)
    assert_close(r[...], 3, 0)


# --- errors


def test_a_ref_keeps_its_type() -> None:
    r = new_ref(RAMP)
    with pytest.raises(ShapeError, match=r"ref of shape \(3,\) cannot take a value of shape \(2,\)"):
        r[...] = np.ones(2, np.float32)
    with pytest.raises(ValueError, match=r"ref of dtype float32 cannot take a value of dtype complex64"):
        r[0] = 1j
    integers = new_ref(np.arange(3, dtype=np.int32))
    with pytest.raises(ValueError, match=r"int32 cannot take .* float32; convert it with \.astype"):
        integers[...] = 0.5


def test_a_ref_has_no_arithmetic() -> None:
    r = new_ref(1.0)
    with pytest.raises(TypeError, match="unsupported operand"):
        r + 1  # type: ignore[operator]
    with pytest.raises(TypeError, match=r"read it with ref\[\.\.\.\]"):
        new_ref(r)
    with pytest.raises(TypeError, match=r"len\(\) of a ref to a scalar"):
        len(r)


def test_a_mapped_value_cannot_go_into_a_ref_from_outside() -> None:
    r = new_ref(0.0)
    with pytest.raises(ValueError, match=r"with vmapped value on an unbatched array reference"):
        xlamini.vmap(lambda x: set_ref(r, ..., x))(RAMP)
    assert_close(r[...], 0, 0)


def test_stages_after_the_trace_take_no_refs() -> None:
    r = new_ref(0.0)
    with pytest.raises(TypeError, match=r"uses a ref of type float32\[\]; the stages of compilation take its value"):
        xlamini.jit(lambda x: set_ref(r, ..., x) or x).lower(1.0)


def test_make_jaxpr_captures_a_ref_that_is_closed_over() -> None:
    r, other = new_ref(jnp.zeros(2)), new_ref(1.0)

    def f(x: Any, given: Any = None) -> Any:
        r[...] += x * other[...]
        if given is not None:
            given[...] *= x
        return x

    program, shape = xlamini.make_jaxpr(f, return_shape=True)(2.0)
    assert shape.shape == () and [type(x) for x in program.consts] == [Ref, Ref]
    assert xlamini.eval_shape(f, 2.0).shape == xlamini.eval_shape(f, 2.0, new_ref(1.0)).shape == ()
    assert len(xlamini.make_jaxpr(f)(2.0, new_ref(1.0)).out_avals) == 1
    assert r[...].tolist() == [0.0, 0.0] and other[...] == 1.0
    on_values = xlamini.make_jaxpr(f, platform="cpu")(2.0)
    types = [v.aval for v in on_values.jaxpr.constvars]
    assert types == [x.aval for x in on_values.consts] == [r[...].aval, other[...].aval]
    run = xlamini.extend.jaxpr_as_fun(program)
    for again in (run, xlamini.jit(run)):
        assert again(2.0) == [2.0]
    assert r[...].tolist() == [4.0, 4.0] and other[...] == 1.0


def test_make_jaxpr_inside_a_trace_reads_the_traces_own_ref() -> None:
    def outer(x: Any) -> Any:
        r = new_ref(x)
        inner = xlamini.make_jaxpr(lambda y: r[...] + y)(jnp.float32(1.0))
        r[...] += len(inner.jaxpr.eqns)
        return r[...]

    assert xlamini.jit(outer)(1.0) == 3.0


def test_a_ref_of_a_number_is_not_weakly_typed() -> None:
    r = new_ref(1.0)
    assert not r[...].weak_type and (r[...] + jnp.ones((), "bfloat16")).dtype == "float32"
    assert not xlamini.jit(lambda x: new_ref(x)[...])(1.0).weak_type
    small = new_ref(0)
    small[...] += jnp.int8(3)
    assert (small[...], small.dtype) == (3, "int32")


def test_a_ref_does_not_leave_its_trace() -> None:
    kept = []
    xlamini.jit(lambda x: kept.append(new_ref(x)))(1.0)
    with pytest.raises(UnexpectedTracerError):
        kept[0][...] + 1


# --- refs in programs


def test_an_array_of_numpy_that_is_written_is_copied() -> None:
    r, a = new_ref(jnp.zeros(3)), np.ones(3, np.float32)
    r[...] = a
    a[...] = 9
    assert type(r[...]) is type(jnp.zeros(3)) and r[...].tolist() == [1, 1, 1]
    scalar = new_ref(1.0)
    scalar[...] = np.float32(2)
    assert repr(scalar) == "Ref(2., dtype=float32)"


INDICES: dict[str, Any] = {
    "mask": np.array([True, False, True, False]), "mask of jnp": jnp.array([True, False, True, False]), "True": True,
    "None and True": (None, True), "bool": np.bool_(True), "array": np.array([0, 3]), "int": np.int64(2),
    "slice": slice(1, 4, 2), "negative": -1, "none": (None, 2), "dots": (..., 1), "empty": (),
}  # fmt: skip


@pytest.mark.parametrize("index", INDICES)
def test_an_index_of_a_ref_argument_is_that_of_its_value(index: str) -> None:
    where, x = INDICES[index], jnp.arange(4.0)

    def use(r: Any) -> Any:
        before = r[where]
        r[where] = 7.0
        r[where] += 1.0
        return before

    r = new_ref(x)
    assert_close(xlamini.jit(use)(r), x[where], 0)
    assert_close(r[...], x.at[where].set(8.0), 0)


@pytest.mark.parametrize(
    "use, error, text",
    [
        (lambda r: r["a"], TypeError, "index 0 is 'a' of type str"),
        (lambda r: r[1.5], TypeError, "index 0 is 1.5 of type float"),
        (lambda r: r[[0, 1]], TypeError, "a list is no index"),
        (lambda r: r.__setitem__(0, 2**40), OverflowError, "does not fit in int32"),
        (lambda r: r.__setitem__(slice(2), jnp.zeros(3, int)), ValueError, r"\(3,\).*\(2,\)|\(2,\).*\(3,\)"),
        (lambda r: addupdate(r, ..., jnp.zeros((2, 4), int)), ValueError, r"\(4,\)"),
    ],
)
def test_wrong_indices_and_values_of_a_ref_argument(use: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        xlamini.jit(lambda r: (use(r), None)[1])(new_ref(jnp.arange(4)))


def test_a_program_of_refs_is_evaluated_on_refs() -> None:
    r, captured = new_ref(jnp.zeros(3)), new_ref(jnp.zeros(3))

    def write(r: Any, x: Any) -> Any:
        r[1] += x
        captured[0] = r[1]
        return r[...]

    program = xlamini.make_jaxpr(write)(r, 1.0)
    again = xlamini.extend.jaxpr_as_fun(program)
    assert again(r, 2.0)[0].tolist() == [0, 2, 0] and captured[0] == 2
    assert xlamini.jit(again)(r, 2.0)[0].tolist() == [0, 4, 0] and captured[0] == 4
    with pytest.raises(TypeError, match=r"takes a ref, got float32\[3\]; pass xlamini.new_ref\(x\)"):
        again(jnp.zeros(3), 2.0)


def test_the_cost_of_a_program_of_refs_is_that_of_the_parts() -> None:
    def add(r: Any) -> None:
        r[0] += 1.0

    cost = xlamini.jit(add).cost(new_ref(jnp.zeros(1000)))
    assert cost.flops == 1 and cost.bytes < 100


def test_exports_take_no_refs() -> None:
    r = new_ref(jnp.zeros(3))
    for f, args in ((lambda r: r[0], (r,)), (lambda: r[0], ())):
        with pytest.raises(TypeError, match="the stages of compilation take its value"):
            xlamini.export.export(xlamini.jit(f))(*args)
