"""Programs on several devices that call Python never wait for ever: failures, programs inside callbacks, threads."""
from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import DEVICES, table
from xlamini import (
    NamedSharding,
    P,
    ShapeDtypeStruct,
    debug,
    effects_barrier,
    jit,
    lax,
    numpy as jnp,
    pure_callback,
    shard_map,
)
from xlamini.errors import CallbackError
from xlamini.experimental import io_callback
from xlamini.runtime.execution.collective_callbacks import MAX_SKIPPED

LINE = xlamini.make_mesh((8,), ("x",), axis_types=xlamini.sharding.AxisType.Auto)
X = table(16)


def f32(*shape: int) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, "float32")


def on_line(f: Any, in_specs: Any = P("x"), out_specs: Any = P("x")) -> Any:
    return shard_map(f, mesh=LINE, in_specs=in_specs, out_specs=out_specs)


def spread(value: Any = X) -> Any:
    return xlamini.device_put(value, NamedSharding(LINE, P("x")))


def observed(f: Any, x: Any) -> Any:
    debug.callback(f, x)
    return x


def noting(seen: list[Any]) -> Callable[[Any], None]:
    return lambda x: seen.append(np.asarray(x).tolist())


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)


def raising_at_four(x: Any) -> Any:
    if np.asarray(x)[0] == 4:
        raise ValueError("no luck")
    return np.asarray(x)


@pytest.mark.parametrize(
    "call", [lambda x: pure_callback(raising_at_four, f32(2), x), lambda x: observed(raising_at_four, x)]
)
def test_what_fails_on_one_device_does_not_hold_up_the_others(call: Any) -> None:
    total = jit(on_line(lambda x: lax.psum(call(x), "x"), out_specs=P()))
    for _ in range(2):
        with pytest.raises(CallbackError, match="raising_at_four raised ValueError: no luck") as caught:
            total(X)
        assert isinstance(caught.value.__cause__, ValueError)
        assert total(X + 8).tolist() == [120, 128]
    effects_barrier()


def test_after_a_failure_nothing_more_is_called() -> None:
    seen: list[Any] = []

    def step(c: Any, i: Any) -> Any:
        return io_callback(lambda i, c: seen.append(i) or raising_at_four(c), f32(16), i, c), None

    with pytest.raises(CallbackError):
        jit(lambda x: lax.scan(step, x, jnp.arange(8))[0])(spread(X + 4))
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("over", "dtype"),
    [("shard_map", "float32"), ("a mesh", "float32"), ("a mesh", "bfloat16")],
)
def test_loops_that_wait_for_a_result_end(over: str, dtype: str) -> None:
    def fail(x: Any) -> Any:
        raise ValueError("no luck")

    def grown(x: Any) -> Any:
        total = (lambda c: lax.psum(c.sum(), "x")) if over == "shard_map" else jnp.sum
        return lax.while_loop(lambda c: total(c) < 1000, lambda c: pure_callback(fail, c, c), x)

    run = on_line(grown) if over == "shard_map" else jit(grown)
    with pytest.raises(CallbackError, match="no luck"):
        run(spread(np.zeros(16, dtype)))
    assert jit(jnp.sum)(spread()) == 120


@pytest.mark.full
def test_of_a_long_loop_the_failure_is_said_before_its_end(capfd: pytest.CaptureFixture[str]) -> None:
    def step(c: Any, _: Any) -> Any:
        return io_callback(raising_at_four, f32(16), c), None

    with pytest.raises(CallbackError, match="no luck"):
        jit(lambda x: lax.scan(step, x, None, length=MAX_SKIPPED + 50)[0])(spread(X + 4))
    assert "no luck" in capfd.readouterr().err
    with pytest.raises(CallbackError, match="no luck"):
        along = lambda c, _: (io_callback(raising_at_four, f32(2), c), None)
        on_line(lambda x: lax.psum(lax.scan(along, x, None, length=MAX_SKIPPED + 50)[0], "x"), out_specs=P())(X)


def test_a_wrong_result_and_an_interrupt() -> None:
    with pytest.raises(CallbackError, match=r"returned float32\[3\], but result_shape_dtypes says float32\[2\]"):
        on_line(lambda x: pure_callback(lambda v: np.ones(3, "f"), f32(2), x))(X)

    def stop(x: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on_line(lambda x: pure_callback(stop, f32(2), x))(X)


@pytest.mark.parametrize(
    "compute", [lambda: spread() + 1, lambda: jit(jnp.sum)(spread()), lambda: on_line(lambda x: x)(X)]
)
def test_another_program_on_several_devices_is_refused_inside(compute: Any) -> None:
    compute()  # dispatch knows it
    call = lambda x: pure_callback(lambda v: compute() is None or v, f32(2), x)
    with pytest.raises(CallbackError, match="cannot run another program on several: it would wait for"):
        on_line(call)(X)
    compute()


def test_the_library_may_be_used_inside() -> None:
    other = spread()

    def busy(x: Any) -> Any:
        return jnp.sin(x) @ jnp.ones((2, 2)) + np.asarray(other)[0] + xlamini.device_put(1.0, DEVICES[3]).item()

    found = on_line(lambda x: lax.psum(pure_callback(busy, f32(2), x), "x"), out_specs=P())(X)
    same(found, np.full(2, np.sin(X).sum() + 8, "f"))


@pytest.mark.full
def test_many_programs_from_several_threads() -> None:
    seen: list[Any] = []
    watched = jit(on_line(lambda x: lax.psum(observed(noting(seen), x), "x"), out_specs=P()))
    called = jit(on_line(lambda x: lax.psum(pure_callback(jnp.sin, f32(2), x), "x"), out_specs=P()))
    plain = jit(on_line(lambda x: lax.psum(jnp.sin(x), "x"), out_specs=P()))
    one = jit(lambda x: pure_callback(lambda v: jnp.cos(v) * 2, f32(16), x))
    x, found = spread(), []

    def work() -> None:
        for _ in range(8):
            outs = plain(x), watched(x), called(x), one(x), plain(x), one(X)
        found.append(outs)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len(seen) == 3 * 8 * 8
    same(found[0][2], found[0][0])


@pytest.mark.full
def test_a_process_that_ends_after_callbacks_ends_well() -> None:
    """XLA's threads have kept what the library made for them."""
    program = (
        "import numpy as np, xlamini\n"
        "xlamini.config.update('num_cpu_devices', 8)\n"
        "from xlamini import P, pure_callback, numpy as jnp\n"
        "like = xlamini.ShapeDtypeStruct((2,), 'float32')\n"
        "call = lambda x: pure_callback(lambda v: jnp.tanh(v) + jnp.arange(2), like, x)\n"
        "mesh = xlamini.make_mesh((8,), ('x',), xlamini.sharding.AxisType.Auto)\n"
        "print(xlamini.shard_map(call, mesh=mesh, in_specs=P('x'), out_specs=P('x'))(np.ones(16, 'f')).sum())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) == pytest.approx(16 * np.tanh(1) + 8)
