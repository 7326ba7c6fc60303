"""The order of effects: in a program, in loops and branches, between programs and threads; and waiting for them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import ShapeDtypeStruct, debug, effects_barrier, grad, jit, lax, numpy as jnp, vmap
from xlamini.experimental import io_callback

SCALAR = ShapeDtypeStruct((), "float32")
WRAPS: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "jit": jit, "jit of jit": lambda f: jit(jit(f))}


@pytest.fixture
def lines(capsys: Any) -> Callable[[], list[str]]:
    """What has been printed since the last question."""

    def read() -> list[str]:
        effects_barrier()
        return capsys.readouterr().out.split("\n")[:-1]

    return read


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    effects_barrier()
    yield
    effects_barrier()


@pytest.fixture(params=WRAPS)
def wrap(request: Any) -> Any:
    return WRAPS[request.param]


def show(text: str, *args: Any) -> None:
    debug.print(text, *args, ordered=True)


def busy(x: Any) -> Any:
    """Something that takes a while, and gives x."""
    m = jnp.ones((300, 300)) * x
    return ((m @ m) * 0).sum() + x


# --- one program


def test_ordered_effects_of_all_kinds_keep_their_order(wrap: Any) -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        debug.callback(lambda x: seen.append(f"a{x:.0f}"), busy(x), ordered=True)
        y = io_callback(lambda x: seen.append(f"b{x:.0f}") or x + 1, SCALAR, x, ordered=True)
        debug.callback(lambda: seen.append("c"), ordered=True)
        return io_callback(lambda y: seen.append(f"d{y:.0f}") or y, SCALAR, y, ordered=True)

    assert wrap(f)(1.0) == 2
    effects_barrier()
    assert seen == ["a1", "b1", "c", "d2"]


def test_unordered_effects_of_one_block_happen_as_they_are_written(wrap: Any, lines: Any) -> None:
    def f(x: Any) -> None:
        for i in range(10):
            debug.print("{} {}", i, busy(x + i) if i % 3 == 0 else x)

    wrap(f)(1.0)
    assert [line.split()[0] for line in lines()] == [str(i) for i in range(10)]


def test_nested_functions_called_twice(wrap: Any, lines: Any) -> None:
    @jit
    def inner(x: Any) -> Any:
        show("inner {}", x)
        return x + 1

    def f(x: Any) -> Any:
        show("before {}", x)
        y = inner(inner(x))
        show("after {}", y)
        return y

    for _ in range(2):
        assert wrap(f)(0.0) == 2
        assert lines() == ["before 0.0", "inner 0.0", "inner 1.0", "after 2.0"]


# --- loops and branches


def test_scan(wrap: Any, lines: Any) -> None:
    def step(c: Any, x: Any) -> Any:
        show("{} {}", c, x)
        return c + x, c

    def f(xs: Any) -> Any:
        show("start")
        total, before = lax.scan(step, 0, xs)
        show("end {}", total)
        return before

    assert wrap(f)(jnp.arange(4)).tolist() == [0, 0, 1, 3]
    assert lines() == ["start", "0 0", "0 1", "1 2", "3 3", "end 6"]
    assert wrap(lambda xs: lax.scan(step, 0, xs, reverse=True, unroll=2))(jnp.arange(3))[0] == 3
    assert lines() == ["0 2", "2 1", "3 0"]


def test_while_loop(wrap: Any, lines: Any) -> None:
    def holds(c: Any) -> Any:
        show("holds {}", c)
        return c < 2

    def step(c: Any) -> Any:
        show("step {}", c)
        return c + 1

    assert wrap(lambda c: lax.while_loop(lambda c: c < 3, step, c))(0) == 3
    assert lines() == ["step 0", "step 1", "step 2"]
    assert wrap(lambda c: lax.while_loop(holds, step, c))(0) == 2
    assert lines() == ["holds 0", "step 0", "holds 1", "step 1", "holds 2"]


def test_cond_and_switch(wrap: Any, lines: Any) -> None:
    def branch(name: str) -> Any:
        return lambda x: (show(name + " {}", x), x + 1)[1]

    def f(x: Any) -> Any:
        show("f {}", x)
        y = lax.cond(x > 0, branch("positive"), branch("negative"), x)
        show("then {}", y)
        return lax.switch(jnp.int32(y), [branch("zero"), lambda x: x, branch("two")], y)

    for x, expected in (
        (1.0, ["f 1.0", "positive 1.0", "then 2.0", "two 2.0"]),
        (-1.0, ["f -1.0", "negative -1.0", "then 0.0", "zero 0.0"]),
        (0.0, ["f 0.0", "negative 0.0", "then 1.0"]),
    ):
        wrap(f)(x)
        assert lines() == expected


def test_loops_in_loops_with_branches(wrap: Any, lines: Any) -> None:
    def inner(c: Any, x: Any) -> Any:
        return lax.cond(x > c, lambda: (show("{} > {}", x, c), x)[1], lambda: (show("{} <= {}", x, c), c)[1]), None

    def outer(c: Any, xs: Any) -> Any:
        show("row {}", xs)
        return lax.scan(inner, c, xs)[0], c

    wrap(lambda xs: lax.scan(outer, 0, xs))(jnp.array([[1, 0], [3, 2]]))
    assert lines() == ["row [1 0]", "1 > 0", "0 <= 1", "row [3 2]", "3 > 1", "2 <= 3"]


def test_io_callbacks_in_loops_read_a_stream(wrap: Any) -> None:
    def f(source: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            x = io_callback(lambda: np.float32(next(source)), SCALAR, ordered=True)
            return c * 10 + x, x

        return lax.scan(step, 0.0, None, length=4)

    total, xs = wrap(lambda: f(iter([1, 2, 3, 4])))()
    assert total == 1234 and xs.tolist() == [1, 2, 3, 4]


# --- transformations


@pytest.mark.parametrize("ordered", [False, True])
def test_vmap_prints_each_example_in_order(wrap: Any, lines: Any, ordered: bool) -> None:
    # As JAX 0.10.2 does.
    def f(x: Any, y: Any) -> None:
        debug.print("{} {}", x, y, ordered=ordered)

    wrap(vmap(f, (0, None)))(jnp.arange(3), 7)
    assert lines() == ["0 7", "1 7", "2 7"]
    wrap(vmap(vmap(f, (0, None)), (None, 0)))(jnp.arange(2), jnp.arange(3))
    assert lines() == ["0 0", "1 0", "0 1", "1 1", "0 2", "1 2"]


def test_what_does_not_depend_on_the_example_is_printed_once(wrap: Any, lines: Any) -> None:
    wrap(vmap(lambda x: (debug.print("here"), x)[1]))(jnp.arange(3))
    assert lines() == ["here"]


def test_vmap_of_scan(wrap: Any, lines: Any) -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: ((show("{}", c), c + 1)[1], None), x, None, length=2)[0]

    assert wrap(vmap(f))(jnp.array([0, 10])).tolist() == [2, 12]
    assert lines() == ["0", "10", "1", "11"]


def test_vmap_of_while_loop_shows_steps_of_examples_that_are_done(wrap: Any, lines: Any) -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c < 3, lambda c: (debug.print("{}", c), c + 1)[1], x)

    assert wrap(vmap(f))(jnp.array([1, 2])).tolist() == [3, 3]
    assert lines() == ["1", "2", "2", "3"]  # the same as recorded from JAX 0.10.2


def test_grad_of_scan_prints_in_the_forward_pass(wrap: Any, lines: Any) -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: ((show("{:.3f}", c), jnp.sin(c))[1], None), x, None, length=3)[0]

    wrap(grad(f))(1.0)
    assert lines() == ["1.000", "0.841", "0.746"]


def test_grad_of_cond(wrap: Any, lines: Any) -> None:
    def f(x: Any) -> Any:
        return lax.cond(x > 0, lambda x: (show("sin {}", x), jnp.sin(x))[1], lambda x: (show("cos {}", x), -x)[1], x)

    assert np.isclose(wrap(grad(f))(1.0), np.cos(1))
    assert lines() == ["sin 1.0"]
    assert wrap(grad(f))(-1.0) == -1
    assert lines() == ["cos -1.0"]


# --- several programs


def test_ordered_programs_keep_their_order(lines: Any) -> None:
    slow = jit(lambda x: show("slow {}", busy(x)))
    fast = jit(lambda x: show("fast {}", x))
    for i in range(20):
        slow(busy(float(i)))
        fast(float(i))
    assert lines() == [f"{name} {i}.0" for i in range(20) for name in ("slow", "fast")]


def test_an_ordered_callback_may_run_ordered_programs() -> None:
    seen: list[Any] = []
    inner = jit(lambda x: io_callback(lambda x: seen.append(float(x)), None, x, ordered=True))

    def host(x: Any) -> None:
        seen.append("in")
        inner(x + 100)
        seen.append("out")

    outer = jit(lambda x: io_callback(host, None, x, ordered=True))
    for i in range(3):
        outer(busy(float(i)))
        inner(float(i))
    effects_barrier()
    assert seen == ["in", 100, "out", 0, "in", 101, "out", 1, "in", 102, "out", 2]


def test_ordered_effects_of_each_thread_keep_their_order() -> None:
    seen: dict[int, list[int]] = {}
    note = jit(lambda k, i: io_callback(lambda k, i: seen[int(k)].append(int(i)), None, k, i, ordered=True))

    def work(k: int) -> None:
        seen[k] = []
        for i in range(50):
            note(k, i)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    effects_barrier()
    assert seen == {k: list(range(50)) for k in range(4)}


# --- in a process of its own

BEGIN = """
    import faulthandler
    faulthandler.dump_traceback_later(60, exit=True)
    import threading, numpy as np, xlamini
    from xlamini import ShapeDtypeStruct, debug, jit, pure_callback
    from xlamini import numpy as jnp
    from xlamini.experimental import io_callback

    SCALAR = ShapeDtypeStruct((), "float32")
    heavy = jit(lambda x: (x @ x @ x) / 500.0**2)
    big = jnp.ones((500, 500))
"""

PROGRAMS = {
    "callbacks that compute, of programs that wait for their inputs": (
        """
        def host(x):
            y = jnp.ones((100, 100)) * x
            return (heavy(big)[0, 0] * 0 + (y @ y).sum() * 0 + x)
        f = jit(lambda x: pure_callback(host, SCALAR, x[0, 0]))
        outs = [f(heavy(big)) for _ in range(80)]
        print(sum(map(float, outs)))
        """,
        "80.0\n",
    ),
    "callbacks that compute, of one program, from many threads": (
        """
        def host(x):
            y = jnp.ones((100, 100)) * x
            return (y @ y).sum() * 0 + x
        f = jit(lambda x: sum(pure_callback(host, SCALAR, (x @ (x + i))[0, 0] * 0 + i) for i in range(8)))
        def work():
            for _ in range(5):
                assert f(big) == 28
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print("done")
        """,
        "done\n",
    ),
    "effects that nobody waits for": (
        """
        f = jit(lambda x: debug.print("{}", x[0, 0]))
        for _ in range(3):
            f(heavy(big))
        """,
        "1.0\n1.0\n1.0\n",
    ),
    "a pure callback that nobody waits for": (
        """
        f = jit(lambda x: pure_callback(lambda x: x, SCALAR, x[0, 0]))
        y = f(heavy(big))
        """,
        "",
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("name", PROGRAMS)
def test_ends(name: str) -> None:
    program, expected = PROGRAMS[name]
    code = textwrap.dedent(BEGIN) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_a_barrier_without_effects() -> None:
    assert effects_barrier() is None
    assert xlamini.effects_barrier is effects_barrier


UNFINISHED = """
import numpy, xlamini
xlamini.config.update("disable_most_optimizations", False)
weights = [numpy.ones((n, n + 1), numpy.float32) / n for n in range(64, 224)]

@xlamini.jit
def product(x):
    for w in weights:
        x = xlamini.numpy.tanh(x @ w)
    return x

product(numpy.ones((64, 64), numpy.float32))
"""


@pytest.mark.slow
def test_a_process_may_exit_while_a_program_runs() -> None:
    """It waits for the program: XLA's objects, which are destroyed at the end, would be missing while it runs."""
    done = subprocess.run([sys.executable, "-c", UNFINISHED], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
