"""The transformations by hand: jit, and what it keeps; vmap's axes; tracing to look at."""
from __future__ import annotations

import functools
import gc
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import float0, lax
from xlamini.staging.compile.compile_request import CompileRequest
from xlamini.staging.run.eager import program_cache

F32 = np.float32
RAMP = np.arange(6, dtype=F32).reshape(2, 3)


class Counted:
    """A function that counts how often Python runs it."""

    def __init__(self, fun: Any):
        self.fun, self.calls = fun, 0
        self.__name__ = "counted"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self.fun(*args, **kwargs)


# --- jit: signatures


def test_one_trace_for_each_signature() -> None:
    fun = Counted(lambda x: x * 2)
    jitted = xlamini.jit(fun)
    for x in (1.0, 2.0, F32(3), F32(4), np.ones(3, F32), np.zeros(3, F32), 5, 6, np.int32(1)):
        assert_close(jitted(x), x * 2, 0)
    assert fun.calls == 5  # weak float, float32, float32[3], weak int, int32


def test_weak_types_are_signatures_of_their_own() -> None:
    half = np.float16(1)
    jitted = xlamini.jit(lambda x, y: x + y)
    assert jitted(half, 1.0).dtype == np.float16
    assert jitted(half, F32(1)).dtype == np.float32
    assert jitted(half, 1.0).dtype == np.float16


def test_x64_is_part_of_the_signature() -> None:
    jitted = xlamini.jit(lambda x: x + 1)
    assert jitted(1).dtype == np.int32
    with xlamini.enable_x64(True):
        assert jitted(1).dtype == np.int64
    assert jitted(1).dtype == np.int32


def test_static_arguments_reach_python_as_they_are() -> None:
    fun = Counted(lambda x, n, *, up: x * n if up else x - n)
    jitted = xlamini.jit(fun, static_argnums=1, static_argnames="up")
    assert_close(jitted(3.0, 2, up=True), 6, 0)
    assert_close(jitted(3.0, 2, up=False), 1, 0)
    assert_close(jitted(4.0, 2, up=True), 8, 0)
    assert fun.calls == 2
    assert_close(jitted(4.0, 3, up=True), 12, 0)
    assert fun.calls == 3


def test_where_positions_and_names_are_given_the_signature_adds_nothing() -> None:
    def power(x: Any, n: int) -> Any:
        return x**n

    @functools.partial(xlamini.jit, static_argnums=(), static_argnames="n")
    @functools.wraps(power)  # so that its signature is that of `power`, as flax has it
    def scaled(scale: Any, x: Any, **options: Any) -> Any:
        return scale * power(x, **options)

    assert_close(scaled(2.0, RAMP, n=2), 2 * RAMP**2, 0)
    with pytest.raises(xlamini.errors.ConcretizationTypeError):
        xlamini.jit(lambda x, n: x[: int(n)], static_argnums=(), static_argnames="n")(np.ones(3), 2)


def test_static_arguments_by_position_and_by_name_are_the_same_ones() -> None:
    jitted = xlamini.jit(lambda x, n: x * n, static_argnames="n")
    assert_close(jitted(3.0, 2), 6, 0)
    assert_close(jitted(3.0, n=4), 12, 0)


@pytest.mark.parametrize("first, second", [(1, 1.0), (1, True), (0, False)])
def test_equal_static_arguments_of_other_types_are_others(first: Any, second: Any) -> None:
    seen = []
    jitted = xlamini.jit(lambda x, n: (seen.append(n), x)[1], static_argnums=1)
    jitted(1.0, first)
    jitted(1.0, second)
    assert list(map(type, seen)) == [type(first), type(second)]


def test_keyword_arguments_and_pytrees() -> None:
    jitted = xlamini.jit(lambda a, *, b: {"sum": a["x"] + b[1], "rest": (b[0], None)})
    out = jitted({"x": 1.0}, b=[2.0, 3])
    assert set(out) == {"sum", "rest"}
    assert_close(out["sum"], 4, 0)
    assert out["rest"][1] is None


def test_outputs_that_are_inputs_numbers_and_repeated() -> None:
    jitted = xlamini.jit(lambda x: (x, x, x + 1, 3, 2.5, True, np.float16(1)))
    for _ in range(2):
        outs = jitted(RAMP)
        for found, expected in zip(outs, (RAMP, RAMP, RAMP + 1, 3, 2.5, True, 1), strict=True):
            assert_close(found, expected, 0)
    assert [o.weak_type for o in outs[3:]] == [True, True, False, False]


def test_numbers_that_a_nested_transformation_returns_have_the_members_of_arrays() -> None:
    def outer(x: Any) -> Any:
        pair, slope = xlamini.jvp(lambda y: (y, 3.0), (x,), (x,))
        _, (_, aux) = xlamini.grad(lambda y: (y, (y, 2.5)), has_aux=True)(x)
        inline = xlamini.jit(lambda: 4.0, inline=True)()
        assert {v.shape for v in (*pair, *slope, inline)} == {()}
        assert aux == 2.5 and type(aux) is float
        return [pair[1], slope[1], aux, inline, xlamini.jit(lambda y: y + aux)(x)]

    for call in (outer, xlamini.jit(outer)):
        assert [float(v) for v in call(1.0)] == [3, 0, 2.5, 4, 3.5]


def test_no_arguments_and_no_outputs() -> None:
    assert_close(xlamini.jit(lambda: 3.0)(), 3, 0)
    assert xlamini.jit(lambda x: None)(1.0) is None


def test_unused_arguments_are_dropped_or_kept() -> None:
    used, unused = "tensor<2xf32>", "tensor<7xf32>"
    for keep in (False, True):
        lowered = xlamini.jit(lambda x, y: x + 1, keep_unused=keep).lower(np.ones(2, F32), np.ones(7, F32))
        assert used in lowered.as_text()
        assert (unused in lowered.as_text()) == keep
    assert_close(xlamini.jit(lambda x, y: x + 1)(1.0, RAMP), 2, 0)


def test_donated_arguments_are_gone_and_others_are_not() -> None:
    jitted = xlamini.jit(lambda x, y: (x + y, y), donate_argnums=0)
    x, y = xlamini.device_put(RAMP), xlamini.device_put(RAMP)
    out, same = jitted(x, y)
    assert x.is_deleted() and not y.is_deleted()
    assert_close(out, 2 * RAMP, 0)
    assert_close(same, RAMP, 0)


def test_a_donated_argument_returned_as_it_is() -> None:
    x = xlamini.device_put(RAMP)
    out = xlamini.jit(lambda x, y: (x, x * y), donate_argnames="x")(x, 2.0)
    assert_close(out[0], RAMP, 0)
    assert_close(out[1], 2 * RAMP, 0)


def test_donation_within_a_trace_is_left_to_the_outer_jit() -> None:
    inner = xlamini.jit(lambda x: x + 1, donate_argnums=0)
    x = xlamini.device_put(RAMP)
    assert_close(xlamini.jit(lambda x: inner(x) + x)(x), 2 * RAMP + 1, 0)
    assert not x.is_deleted()


# --- jit: captured values


def test_a_captured_array_is_a_hidden_argument() -> None:
    def size(n: int) -> int:
        captured = xlamini.device_put(np.arange(n, dtype=F32))
        return len(xlamini.jit(lambda i: captured * i).lower(1.0).as_text())

    assert abs(size(10) - size(100_000)) < 50


def test_a_captured_ndarray_keeps_the_value_it_had() -> None:
    captured = np.zeros(1 << 16, F32)
    jitted = xlamini.jit(lambda x: captured + x)
    before = jitted(1.0)
    captured[:] = 7
    assert_close(np.asarray(before)[:3], np.ones(3), 0)
    assert_close(np.asarray(jitted(1.0))[:3], np.ones(3), 0)


@pytest.mark.slow
def test_the_first_run_of_an_eager_program_is_like_the_later_ones() -> None:
    """The first may run its operations one by one, the later ones run it compiled."""
    call = xlamini.jit(lambda y, n: (y * n, n))
    for x in (1.0, F32(1), RAMP):
        xlamini.clear_caches()
        runs = [xlamini.jvp(lambda x: (call(x, 3), x, 2.5, lax.sin(x)), (x,), (x,)) for _ in range(3)]
        types = [[(v.dtype, v.weak_type, v.shape) for v in xlamini.tree.leaves(r) if v.dtype != float0] for r in runs]
        assert types[0] == types[1] == types[2]
        assert all(isinstance(v, xlamini.Array | np.ndarray) for v in xlamini.tree.leaves(runs[0]))


def used_under_jit() -> list[weakref.ref]:
    captured = xlamini.device_put(np.ones(3, F32))

    def fun(x: Any) -> Any:
        return captured * x + xlamini.grad(lambda y: y * y)(x)

    jitted = xlamini.jit(fun)
    for _ in range(3):
        jitted(1.0)
    xlamini.jit(lambda x: jitted(x))(1.0)
    return [weakref.ref(fun), weakref.ref(captured)]


def used_eagerly() -> list[weakref.ref]:
    captured = xlamini.device_put(np.ones(3, F32))

    def fun(x: Any) -> Any:
        return lax.mul(captured, x)[0] * x

    for _ in range(3):
        xlamini.grad(fun)(1.0)
        xlamini.vmap(xlamini.jit(fun))(np.ones(2, F32))
        xlamini.grad(lambda x: fun(x) if xlamini.jit(fun)(x) > 0 else x)(1.0)
    return [weakref.ref(fun), weakref.ref(captured)]


@pytest.mark.slow
@pytest.mark.parametrize("use", [used_under_jit, used_eagerly])
def test_caches_die_with_the_function(use: Any) -> None:
    references = use()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_nested_jits_that_capture_tracers() -> None:
    @xlamini.jit
    def outer(x: Any, y: Any) -> Any:
        @xlamini.jit
        def middle(z: Any) -> Any:
            return xlamini.jit(lambda w: w * x + z * y)(z)

        return middle(x) + middle(y)

    for x, y in ((2.0, 3.0), (5.0, 7.0)):
        assert_close(outer(x, y), x * x + x * y + y * x + y * y, 0)


def test_a_jit_that_captured_a_tracer_is_traced_again_elsewhere() -> None:
    box: list[Any] = []
    inner = xlamini.jit(lambda y: y * box[-1])

    def outer(x: Any) -> Any:
        box.append(x)
        return inner(x) + inner(2 * x)

    assert_close(xlamini.jit(outer)(3.0), 27, 0)
    assert_close(xlamini.jit(outer)(np.float32(4)), 48, 0)
    assert_close(xlamini.grad(outer)(3.0), 18, 0)
    assert_close(xlamini.grad(outer)(5.0), 30, 0)


def test_named_axes_are_part_of_a_nested_signature() -> None:
    share = xlamini.jit(lambda x: x / lax.psum(1, "i"))
    for n in (3, 5):
        assert_close(xlamini.vmap(share, axis_name="i")(np.ones(n, F32)), np.full(n, 1 / n), 1e-6)
    with pytest.raises(NameError, match="unbound axis name"):
        share(1.0)


def test_inline_leaves_no_call() -> None:
    inner = xlamini.jit(lambda x: x + 1, inline=True)
    names = [e.primitive.name for e in xlamini.make_jaxpr(lambda x: inner(x) * 2)(1.0).eqns]
    assert names == ["add", "mul"]


@pytest.mark.full
def test_many_threads_trace_at_once() -> None:
    found: dict[int, Any] = {}
    shared = xlamini.jit(lambda x, n: x**n, static_argnums=1)

    def work(i: int) -> None:
        def fun(x: Any) -> Any:
            return shared(x, 1 + i % 3) * xlamini.jit(lambda y: y * x)(x + i)

        found[i] = [xlamini.grad(fun)(2.0), xlamini.vmap(xlamini.grad(fun))(np.full(3, 2, F32))]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i in range(8):
        n = 1 + i % 3
        expected = (n + 2) * 2.0 ** (n + 1) + i * (n + 1) * 2.0**n
        assert_close(found[i][0], expected, 1e-6)
        assert_close(found[i][1], np.full(3, expected), 1e-6)


def test_the_stages() -> None:
    jitted = xlamini.jit(lambda x, n: x * n, static_argnums=1)
    traced = jitted.trace(RAMP, 3)
    assert traced.out_info.shape == (2, 3)
    compiled = traced.lower().compile()
    assert_close(compiled(RAMP + 1), 3 * RAMP + 3, 0)
    with pytest.raises(TypeError, match="compiled for"):
        compiled(np.ones(2, F32))


# --- vmap


def test_axes_of_every_kind() -> None:
    fun = lambda x, y: (x * y, x)
    x, y = RAMP, np.arange(2, dtype=F32)
    for in_axes, a, b in (((0, 0), x, y), ((1, None), x.T, y[0]), ((-1, 0), x.T, y)):
        product, same = xlamini.vmap(fun, in_axes, out_axes=(0, -1))(a, b)
        assert_close(product, x * (y[:, None] if in_axes[1] is not None else y[0]), 0)
        assert_close(same, x.T, 0)


def test_axes_as_trees() -> None:
    fun = lambda d, t: d["a"] * t[0] + d["b"] * t[1]
    d, t = {"a": RAMP, "b": np.arange(3, dtype=F32)}, (2.0, np.array([1, 10], F32))
    out = xlamini.vmap(fun, in_axes=({"a": 0, "b": None}, (None, 0)))(d, t)
    assert_close(out, RAMP * 2 + np.arange(3) * np.array([[1], [10]]), 0)
    nested = xlamini.vmap(lambda x: {"u": x, "v": [x, 1.0]}, out_axes={"u": 1, "v": [0, None]})(RAMP)
    assert_close(nested["u"], RAMP.T, 0)
    assert nested["v"][1].shape == ()


def test_keywords_are_mapped_over_their_first_axis() -> None:
    assert_close(xlamini.vmap(lambda x, y: x * y, in_axes=(None,))(2.0, y=RAMP[0]), 2 * RAMP[0], 0)


def test_axis_size_alone_maps() -> None:
    assert xlamini.vmap(lambda: 3.0, axis_size=4)().shape == (4,)


def test_an_output_that_does_not_depend_on_the_batch_is_repeated() -> None:
    assert_close(xlamini.vmap(lambda x, y: y, in_axes=(0, None))(RAMP, 5.0), [5, 5], 0)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: xlamini.vmap(lambda x: x, in_axes=2)(RAMP), "has axes 0 to 1"),
        (lambda: xlamini.vmap(lambda x: x)(1.0), "no axis to map"),
        (lambda: xlamini.vmap(lambda x, y: x)(RAMP, RAMP.T), "got inconsistent sizes for array axes to be mapped"),
        (lambda: xlamini.vmap(lambda x: x, in_axes=None)(RAMP), "nothing is mapped"),
        (
            lambda: xlamini.vmap(lambda x: {"a": [x]}, out_axes=None)(RAMP),
            r"at vmap out_axes\['a'\]\[0\], got axis spec None but output was batched on axis 0",
        ),
        (lambda: xlamini.vmap(lambda x: x, in_axes=(0, 0))(RAMP), "in_axes has 2 entries"),
    ],
)
def test_axes_that_do_not_fit(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("dtype", [xlamini.numpy.uint32, np.uint32, np.dtype("uint32")])
def test_a_dtype_may_be_shared_by_the_examples(dtype: Any) -> None:
    assert xlamini.vmap(lambda x, dtype: x.astype(dtype), (0, None))(np.ones(2, F32), dtype).dtype == np.uint32


def test_vmap_of_vmap_over_other_axes() -> None:
    x = np.arange(24, dtype=F32).reshape(2, 3, 4)
    out = xlamini.vmap(xlamini.vmap(lambda r, s: r * s[1], in_axes=(1, None)), in_axes=(0, 0), out_axes=2)(x, x[:, 0])
    expected = np.stack([np.stack([x[i, :, j] * x[i, 0, 1] for j in range(4)]) for i in range(2)], 2)
    assert_close(out, expected, 0)


# --- tracing to look at


def test_make_jaxpr_and_eval_shape_compute_nothing() -> None:
    fun = Counted(lambda x: (x * x, x[0, 0]))
    shape = xlamini.ShapeDtypeStruct((1000, 1000), "float32")
    out = xlamini.eval_shape(fun, shape)
    assert [o.shape for o in out] == [(1000, 1000), ()]
    closed, info = xlamini.make_jaxpr(fun, return_shape=True)(shape)
    assert [a.shape for a in closed.out_avals] == [o.shape for o in info]
    assert fun.calls == 2


def test_make_jaxpr_shows_what_was_captured() -> None:
    captured = xlamini.device_put(RAMP)
    closed = xlamini.make_jaxpr(lambda x: captured * x)(1.0)
    assert len(closed.consts) == 1 and closed.consts[0] is captured
    assert len(closed.jaxpr.constvars) == 1


# --- what happens once


@pytest.mark.slow
def test_equal_loops_share_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setattr(program_cache, "CompileRequest", lambda *args: compiled.append(args) or CompileRequest(*args))
    xlamini.clear_caches()

    def power(base: Any) -> Any:
        return lax.scan(lambda carry, x: (carry * base, x), 1.0, RAMP[0])[0]

    assert [power(base) for base in (2.0, 2.0, 3.0)] == [8, 8, 27]  # numbers are part of the program
    assert len(compiled) == 2
    assert [power(lax.add(base, F32(0))) for base in (2.0, 5.0)] == [8, 125]  # arrays are its operands
    assert len(compiled) == 3


def test_a_number_is_one_constant_of_a_program() -> None:
    text = xlamini.jit(lambda x, y: (x * 2, y * 2, x[0, 0] * 2)).lower(RAMP, RAMP[0]).as_text()
    assert text.count("stablehlo.constant dense<2.") == 1


@pytest.mark.full
def test_some_functions_are_loaded_when_first_named() -> None:
    code = """
import pickle, sys, xlamini, xlamini.numpy
assert not [m for m in sys.modules if m.startswith(("xlamini.transforms.custom.", "xlamini.transforms.remat."))]
for name in ("checkpoint", "custom_jvp", "custom_gradient", "pure_callback", "new_ref"):
    assert name in dir(xlamini) and pickle.loads(pickle.dumps(getattr(xlamini, name))) is getattr(xlamini, name)
from xlamini import Ref, ref, remat
assert remat is xlamini.checkpoint and ref.Ref is Ref
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.full
def test_vmap_sums_unmapped_outputs_with_sum_match() -> None:
    """The numbers are JAX's. A ref that is not mapped is no output, and stays an error."""
    x = xlamini.numpy.arange(6.0).reshape(3, 2)

    def f(row: Any) -> Any:
        return row * 2, row.sum(), row > 1, 1.0

    rows, total, count, one = xlamini.vmap(f, out_axes=(0, None, None, None), sum_match=True)(x)
    np.testing.assert_array_equal(rows, x * 2)
    np.testing.assert_array_equal((total, *count, one), (15, 2, 2, 1))
    slope = xlamini.grad(lambda x: xlamini.vmap(lambda r: r * r, out_axes=None, sum_match=True)(x)[0])(x)
    np.testing.assert_array_equal(slope, [[0, 0], [4, 0], [8, 0]])
    ref = xlamini.new_ref(0.0)

    def write(row: Any) -> Any:
        ref[...] = row[0]
        return row

    with pytest.raises(ValueError, match="performing a set/swap operation with vmapped value"):
        xlamini.vmap(write, out_axes=None, sum_match=True)(x)
