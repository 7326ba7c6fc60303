"""pure_callback, io_callback, debug.callback and debug.print: values, transformations, failures.

What the order of effects is, between programs and in loops, is in tests/runtime/test_effects.py.
"""

from __future__ import annotations

import functools
import gc
import itertools
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import ShapeDtypeStruct, debug, effects_barrier, grad, jit, numpy as jnp, pure_callback, vmap
from xlamini.errors import CallbackError, TracerBoolConversionError
from xlamini.experimental import io_callback

SCALAR = ShapeDtypeStruct((), "float32")
METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")
MODES: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    "jit": jit,
    "jit of jit": lambda f: jit(jit(f)),
    "inline": lambda f: jit(jit(f, inline=True)),
    "vmap": lambda f: lambda *args: vmap(f, axis_size=1)(*(jnp.asarray(x)[None] for x in args))[0],
    "disabled": lambda f: lambda *args: _without_jit(jit(f), *args),
}


def _without_jit(f: Any, *args: Any) -> Any:
    with xlamini.disable_jit():
        return f(*args)


def plus_one(x: Any) -> Any:
    return x + 1


def boom(x: Any) -> Any:
    raise ValueError(f"no luck with {x}")


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    """No failure of one test is reported in another."""
    effects_barrier()
    yield
    effects_barrier()


@pytest.fixture
def seen() -> list[Any]:
    return []


def noting(seen: list[Any]) -> Callable[[Any], None]:
    """A callback that notes the values it gets."""
    return lambda x: seen.append(np.asarray(x).tolist())


# --- values


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", [functools.partial(pure_callback, vmap_method="sequential"), io_callback])
def test_results(mode: str, call: Any) -> None:
    assert MODES[mode](lambda x: call(plus_one, SCALAR, x) * 2)(3.0) == 8


def test_trees_keywords_and_python_numbers() -> None:
    shapes = {"sum": SCALAR, "pair": (ShapeDtypeStruct((2,), "int32"), jnp.ones(3, bool))}

    def host(tree: Any, *, offset: Any) -> Any:
        total = float(tree["a"] + tree["b"][0] + offset)
        return {"sum": total, "pair": [np.arange(2), np.array([True, False, True])]}

    def f(x: Any) -> Any:
        return pure_callback(host, shapes, {"a": x, "b": (1, 2.0)}, offset=4)

    for out in (f(5.0), jit(f)(5.0)):
        assert out["sum"] == 10 and type(out["pair"]) is tuple
        assert [x.tolist() for x in out["pair"]] == [[0, 1], [True, False, True]]
        assert [x.dtype.name for x in out["pair"]] == ["int32", "bool"]


@pytest.mark.parametrize("dtype", "bool int8 uint32 bfloat16 float16 complex64 float8_e4m3fn int4".split())
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_dtypes_and_shapes(dtype: str, shape: tuple[int, ...]) -> None:
    x = jnp.asarray(np.arange(np.prod(shape)).reshape(shape) % 2, dtype)

    def host(given: Any) -> Any:
        assert isinstance(given, xlamini.Array) and given.dtype == x.dtype and given.shape == shape
        return np.asarray(given).T.copy().T

    out = jit(lambda x: pure_callback(host, x, x))(x)
    assert out.dtype == x.dtype and np.asarray(out).tolist() == np.asarray(x).tolist()


def test_transposed_operands_and_results_arrive_as_they_are_written() -> None:
    x = np.arange(6, dtype="float32").reshape(2, 3)
    f = jit(lambda x: pure_callback(lambda y: np.asarray(y).T, ShapeDtypeStruct((2, 3), "float32"), x.T))
    assert np.array_equal(f(x), x)


def test_64_bit_values() -> None:
    with xlamini.enable_x64(True):
        f = jit(lambda x: pure_callback(lambda y: y * jnp.float64(2), ShapeDtypeStruct((), "float64"), x))
        assert f(1e-300) == 2e-300
    # As elsewhere, what NumPy computes in 64 bits is narrowed while 64 bits are off.
    assert pure_callback(lambda x: np.float64(1.5), SCALAR, 1.0) == 1.5


def test_a_callback_gets_arrays_and_may_use_the_library() -> None:
    inner = jit(lambda x: jnp.sin(x).sum())

    def host(x: Any) -> Any:
        assert isinstance(x, xlamini.Array)
        return inner(x) + grad(lambda y: y**3)(2.0) + vmap(jnp.cos)(x)[0]

    x = jnp.arange(3.0)
    expected = np.sin(np.arange(3.0)).sum() + 12 + 1
    assert np.allclose(jit(lambda x: pure_callback(host, SCALAR, x))(x), expected)


def test_no_operands_and_no_results(seen: list[Any]) -> None:
    assert jit(lambda: pure_callback(lambda: 7.0, SCALAR))() == 7
    assert jit(lambda: io_callback(lambda: seen.append("here"), None))() is None
    effects_barrier()
    assert seen == ["here"]


def test_keys_arrive_as_their_words(seen: list[Any]) -> None:
    key = xlamini.random.key(7)
    debug.callback(noting(seen), key)
    jit(lambda k: debug.callback(noting(seen), k))(key)
    assert seen == [[0, 7], [0, 7]]


def test_a_pure_callback_whose_result_is_not_used_is_left_out(seen: list[Any]) -> None:
    def f(x: Any) -> Any:
        pure_callback(lambda y: seen.append(y), None, x)
        pure_callback(lambda y: seen.append(y) or y, SCALAR, x)
        return x

    assert jit(f)(1.0) == 1 and seen == []
    f(1.0)
    assert len(seen) == 2


def test_effects_stay_when_results_are_not_used(seen: list[Any]) -> None:
    def f(x: Any) -> Any:
        io_callback(lambda y: seen.append("io") or y, SCALAR, x)
        debug.callback(lambda: seen.append("debug"))
        return x

    assert jit(lambda x: jit(f)(x) * 0 + 1)(1.0) == 1
    effects_barrier()
    assert sorted(seen) == ["debug", "io"]


def test_a_program_is_compiled_once() -> None:
    traced = []

    @jit
    def f(x: Any) -> Any:
        traced.append(x)
        return pure_callback(plus_one, SCALAR, x)

    x = jnp.float32(0)
    for _ in range(1000):
        x = f(x)
    assert x == 1000 and len(traced) == 1


def test_stages() -> None:
    lowered = jit(lambda x: pure_callback(plus_one, SCALAR, x)).lower(1.0)
    assert "callback" in lowered.as_text()
    assert lowered.compile()(2.0) == 3
    assert xlamini.eval_shape(lambda x: pure_callback(boom, SCALAR, x), 1.0).shape == ()


def test_printed() -> None:
    def f(x: Any) -> Any:
        debug.print("x {}", x)
        y = io_callback(plus_one, SCALAR, x, ordered=True)
        return pure_callback(plus_one, SCALAR, y, vmap_method="sequential")

    assert str(xlamini.make_jaxpr(f)(1.0)) == (
        "{ lambda ; a:f32[]. let\n"
        "    debug_print[fmt=x {} ordered=False] a\n"
        "    b:f32[] = io_callback[callback=plus_one ordered=True] a\n"
        "    c:f32[] = pure_callback[callback=plus_one vmap_method=sequential] b\n"
        "  in (c,) }"
    )
    effects = xlamini.make_jaxpr(f)(1.0).effects
    assert {(e.name, e.ordered) for e in effects} == {("debug", False), ("IO", True)}


# --- vmap


@pytest.mark.full
def test_vmap_methods_call_with_these_shapes(seen: list[Any]) -> None:
    # Recorded from JAX 0.10.2.
    expected = {
        "sequential": [[(2,), (2,)]] * 3,
        "sequential_unrolled": [[(2,), (2,)]] * 3,
        "expand_dims": [[(3, 2), (1, 2)]],
        "broadcast_all": [[(3, 2), (3, 2)]],
        "legacy_vectorized": [[(3, 2), (2,)]],
    }
    x, y = jnp.arange(6.0).reshape(2, 3), jnp.array([10.0, 20.0])

    def host(x: Any, y: Any) -> Any:
        seen.append([x.shape, y.shape])
        return x + y

    for method in METHODS:
        for wrap in (jit, lambda f: f):
            seen.clear()

            def f(x: Any, y: Any, method: str = method) -> Any:
                return pure_callback(host, ShapeDtypeStruct((2,), "float32"), x, y, vmap_method=method)

            out = wrap(vmap(f, (1, None)))(x, y)
            assert np.array_equal(out, np.asarray(x).T + np.asarray(y))
            assert seen == expected[method], method


@pytest.mark.parametrize("method", [m for m in METHODS if m != "legacy_vectorized"])
def test_vmap_of_vmap(method: str) -> None:
    def f(x: Any, y: Any) -> Any:
        return pure_callback(lambda x, y: np.asarray(x) - np.asarray(y), SCALAR, x, y, vmap_method=method)

    x, y = np.arange(3.0, dtype="float32"), np.arange(4.0, dtype="float32") * 10
    assert np.array_equal(vmap(vmap(f, (0, None)), (None, 0))(x, y), x - y[:, None])
    assert np.array_equal(jit(vmap(vmap(f), (None, 0)))(x, np.stack([x, 2 * x])), np.stack([x - x, x - 2 * x]))


def test_vmap_over_nothing() -> None:
    f = vmap(lambda x: pure_callback(plus_one, SCALAR, x, vmap_method="sequential"))
    assert f(jnp.zeros(0)).shape == (0,)


def test_io_callback_goes_through_the_examples(seen: list[Any]) -> None:
    f = vmap(lambda x, y: io_callback(lambda x, y: seen.append((float(x), float(y))) or x + y, SCALAR, x, y), (0, None))
    assert jit(f)(jnp.arange(3.0), 10.0).tolist() == [10, 11, 12]
    assert f(jnp.arange(2.0), 5.0).tolist() == [5, 6]
    assert seen == [(0, 10), (1, 10), (2, 10), (0, 5), (1, 5)]


def test_many_examples_are_one_equation() -> None:
    jaxpr = xlamini.make_jaxpr(vmap(lambda x: debug.print("{}", x)))(jnp.zeros(10_000))
    assert len(jaxpr.eqns) == 1


# --- derivatives


def sine(x: Any) -> Any:
    debug.print("x {}", x)
    return jnp.sin(x)


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_debug_print_under_derivatives_shows_values_once(wrap: Any, capsys: Any) -> None:
    runs: dict[str, Callable[[], Any]] = {
        "grad": lambda: wrap(grad(sine))(2.0),
        "jvp": lambda: wrap(lambda x: xlamini.jvp(sine, (x,), (1.0,)))(2.0),
        "vjp": lambda: wrap(lambda x: xlamini.vjp(sine, x)[1](1.0))(2.0),
        "second": lambda: wrap(grad(grad(sine)))(2.0),
        "grad of vmap": lambda: wrap(grad(lambda x: vmap(sine)(x).sum()))(jnp.array([2.0])),
        "vmap of grad": lambda: wrap(vmap(grad(sine)))(jnp.array([2.0])),
        "hessian": lambda: wrap(xlamini.hessian(sine))(2.0),
    }
    for name, run in runs.items():
        run()
        effects_barrier()
        assert capsys.readouterr().out == "x 2.0\n", name


def test_linearized_functions_print_when_they_are_linearized(capsys: Any) -> None:
    _, push = xlamini.linearize(sine, 2.0)
    assert capsys.readouterr().out == "x 2.0\n"
    push(1.0)
    assert capsys.readouterr().out == ""


def test_stopped_gradients_pass_a_pure_callback_by() -> None:
    def f(x: Any) -> Any:
        return x * pure_callback(plus_one, SCALAR, xlamini.lax.stop_gradient(x))

    assert grad(f)(2.0) == 3 and jit(grad(f))(2.0) == 3


def test_custom_rules_give_callbacks_a_derivative() -> None:
    @xlamini.custom_vjp
    def host_sin(x: Any) -> Any:
        return pure_callback(lambda x: np.sin(np.asarray(x)), x, x, vmap_method="expand_dims")

    def host_cos(x: Any) -> Any:
        return pure_callback(lambda x: np.cos(np.asarray(x)), x, x, vmap_method="expand_dims")

    host_sin.defvjp(lambda x: (host_sin(x), x), lambda x, ct: (ct * host_cos(x),))
    x = jnp.arange(3.0)
    assert np.allclose(jit(vmap(grad(host_sin)))(x), np.cos(x))
    assert np.allclose(grad(lambda x: vmap(host_sin)(x).sum())(x), np.cos(x))


def test_prints_in_a_backward_rule_happen_in_the_backward_pass(capsys: Any) -> None:
    @xlamini.custom_vjp
    def double(x: Any) -> Any:
        return 2 * x

    def forward(x: Any) -> Any:
        debug.print("forward {}", x, ordered=True)
        return 2 * x, x

    def backward(x: Any, ct: Any) -> Any:
        debug.print("backward {} {}", x, ct, ordered=True)
        return (2 * ct,)

    double.defvjp(forward, backward)
    assert jit(grad(lambda x: double(x) * 3))(1.0) == 6
    effects_barrier()
    assert capsys.readouterr().out == "forward 1.0\nbackward 1.0 3.0\n"


def test_an_effect_does_not_happen_because_python_asks_for_a_number(seen: list[Any]) -> None:
    def f(x: Any) -> Any:
        y = io_callback(lambda x: seen.append(1) or x, SCALAR, x)
        return x if y > 0 else -x

    with pytest.raises((TracerBoolConversionError, ValueError)):
        grad(f)(1.0)
    assert seen == []


# --- printing


def test_formats(capsys: Any) -> None:
    def f(x: Any) -> None:
        debug.print("{0} {y} {z} {0:.1f}", x, y=x * 2, z="text")
        debug.print("{a[k]} {b} {{}} {c!r}", a={"k": x}, b=[x, None], c=jnp.ones(2))

    f(1.5)
    jit(f)(1.5)
    effects_barrier()
    once = "1.5 3.0 text 1.5\n1.5 [Array(1.5, dtype=float32), None] {} Array([1., 1.], dtype=float32)\n"
    assert capsys.readouterr().out == once * 2


def test_options_may_be_given_first(capsys: Any, seen: list[Any]) -> None:
    debug.print(ordered=True)("{ordered} {x}", ordered=1, x=2)
    debug.callback(ordered=True)(lambda ordered: seen.append(ordered), ordered=3)
    assert capsys.readouterr().out == "1 2\n" and seen == [3]


def test_numpy_options_are_those_of_the_time_of_tracing(capsys: Any) -> None:
    with np.printoptions(precision=2):
        f = jit(lambda x: debug.print("{}", x))
        f(jnp.array([1 / 3]))
    f(jnp.array([2 / 3]))
    effects_barrier()
    assert capsys.readouterr().out == "[0.33]\n[0.67]\n"


def test_fixed_arguments_of_any_kind(seen: list[Any]) -> None:
    thing = object()
    jit(lambda x: debug.callback(lambda *args, k: seen.append((args, k)), thing, x, "text", k=None))(1.0)
    ((found, x, text), k) = seen[0]
    assert found is thing and x == 1 and text == "text" and k is None


# --- failures

CALLS: dict[str, Callable[[Any], Any]] = {
    "pure_callback": lambda x: pure_callback(boom, SCALAR, x, vmap_method="sequential"),
    "io_callback": lambda x: io_callback(boom, None, x),
    "io_callback ordered": lambda x: io_callback(boom, None, x, ordered=True),
    "debug.callback": lambda x: debug.callback(boom, x),
}
FAILING_MODES = [mode for mode in MODES if mode != "vmap"]


@pytest.mark.parametrize("mode", FAILING_MODES)
@pytest.mark.parametrize("call", CALLS)
def test_a_failure_says_what_where_and_why(mode: str, call: str) -> None:
    with pytest.raises(CallbackError) as raised:
        MODES[mode](CALLS[call])(3.0)
        effects_barrier()
    error, text = raised.value, str(raised.value)
    assert text.startswith(f"{call.split()[0]}: boom raised ValueError: no luck with 3.0\n")
    assert f"{__file__}:" in text and "no luck with {x}" in text  # the line of the call, and the line that raises
    assert type(error.__cause__) is ValueError and str(error.__cause__) == "no luck with 3.0"
    assert [f.name for f in traceback.extract_tb(error.__cause__.__traceback__)] == ["boom"]
    assert Path(traceback.extract_tb(error.__traceback__)[-1].filename) == Path(__file__)


def test_a_failure_of_a_program_still_waiting_for_its_input_comes_at_the_call_or_later() -> None:
    busy = jit(lambda x: (x @ x @ x)[0, 0] * 0)
    f = jit(lambda x: pure_callback(boom, SCALAR, x))
    x = jnp.ones((700, 700))
    for use in (np.asarray, float, repr, lambda y: y.block_until_ready(), lambda y: (y + 1).tolist()):
        with pytest.raises(CallbackError, match="no luck") as raised:
            use(f(busy(x)))
        assert isinstance(raised.value.__cause__, ValueError)


def test_a_reported_failure_is_not_reported_again() -> None:
    with pytest.raises(CallbackError):
        jit(lambda x: debug.callback(boom, x))(1.0)
        effects_barrier()
    effects_barrier()


def test_a_function_that_failed_once_works_afterwards(seen: list[Any]) -> None:
    def host(x: Any) -> Any:
        seen.append(float(x))
        return x if x > 0 else boom(x)

    f = jit(lambda x: pure_callback(host, SCALAR, x))
    with pytest.raises(CallbackError):
        f(-1.0).block_until_ready()
    assert f(2.0) == 2 and seen == [-1, 2]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_interrupts_stay_interrupts(interrupt: Any, mode: str) -> None:
    def host(x: Any) -> Any:
        raise interrupt("now")

    with pytest.raises(interrupt, match="now"):
        MODES[mode](lambda x: pure_callback(host, SCALAR, x))(1.0).block_until_ready()


def test_a_failure_within_a_callback_of_a_callback() -> None:
    inner = jit(lambda x: pure_callback(boom, SCALAR, x))
    with pytest.raises(CallbackError, match="outer raised CallbackError: pure_callback: boom raised") as raised:

        def outer(x: Any) -> Any:
            return inner(x).block_until_ready()

        jit(lambda x: pure_callback(outer, SCALAR, x))(1.0).block_until_ready()
    cause = raised.value.__cause__
    assert isinstance(cause, CallbackError) and isinstance(cause.__cause__, ValueError)


# --- lifetimes and threads


@pytest.mark.full
def test_what_a_function_calls_is_released_with_it() -> None:
    class Host:
        def __call__(self, x: Any) -> Any:
            return x

    def used() -> weakref.ref[Host]:
        host = Host()
        jit(lambda x: (pure_callback(host, SCALAR, x), debug.callback(host, x)))(1.0)
        return weakref.ref(host)

    alive = used()
    effects_barrier()
    gc.collect()
    assert alive() is None


def test_threads_share_a_function() -> None:
    results: dict[int, Any] = {}
    f = jit(lambda x: pure_callback(lambda x: jnp.sin(x).sum(), SCALAR, x) + io_callback(plus_one, SCALAR, x[0]))

    def work(k: int) -> None:
        results[k] = [float(f(jnp.full(3, float(k * i)))) for i in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, i in itertools.product(range(8), range(20)):
        assert np.isclose(results[k][i], 3 * np.sin(k * i) + k * i + 1, atol=1e-5)


def test_a_callback_may_call_the_function_it_is_part_of() -> None:
    def host(n: Any) -> Any:
        return n * factorial(n - 1) if n > 1 else n

    factorial = jit(lambda n: pure_callback(host, SCALAR, n))
    assert factorial(5.0) == 120
