"""`debug.replay` and `debug.bisect`: a run step by step with the user's lines, and where two programs part."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.paths import ROOT
from xlamini import debug, grad, jit, lax, numpy as jnp, random, tree, vmap

X = np.array([1.0, 2.0, 3.0], np.float32)


def loss(x: Any, w: Any) -> Any:
    h = x * w

    def body(c: Any, v: Any) -> Any:
        total = c + v
        return total, total * v

    last, rows = lax.scan(body, h.sum(), h)
    return last, rows


def test_steps_in_order() -> None:
    steps = list(debug.replay(loss)(X, 2.0))
    named = [(s.place.variable, s.place.iterations, s.value) for s in steps if s.place.variable in ("h", "total")]
    np.testing.assert_array_equal(named[0][2], 2 * X)
    assert [(name, loops, float(value)) for name, loops, value in named[1:]] == [
        ("total", (0,), 14), ("total", (1,), 18), ("total", (2,), 24)
    ]  # fmt: skip
    conversion, product = steps[:2]
    assert conversion.place.source == "h = x * w" and conversion.place.variable is None
    assert str(product).endswith("(loss): h = x * w\n    h = mul: 3 values from 2 to 6")


BATCH = np.stack([X, X + 1])
CALLS = {
    "eager": (loss, X),
    "jit": (jit(loss), X),
    "vmap": (vmap(loss, (0, None)), BATCH),
    "grad": (grad(lambda x, w: jnp.sin(loss(x, w)[0])), X),
    "vmap of grad": (vmap(grad(lambda x, w: loss(x, w)[1].prod()), (0, None)), BATCH),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_the_function(name: str) -> None:
    f, x = CALLS[name]
    found, expected = tree.leaves(debug.replay(f)(x, 2.0).run()), tree.leaves(f(x, 2.0))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_until() -> None:
    run = debug.replay(loss)(X, 2.0)
    step = run.until(lambda v: v == 24)
    assert step is not None and (step.place.variable, step.place.iterations) == ("total", (2,))
    assert run.until(lambda v: v > 1e6) is None
    np.testing.assert_allclose(run.run()[0], 24)


@pytest.mark.full
def test_conditionals_and_loops_run_what_they_run() -> None:
    def f(x: Any) -> Any:
        y = lax.cond(x > 0, lambda: jnp.sin(x), lambda: jnp.cos(x))
        return lax.while_loop(lambda c: c < 4, lambda c: c * 1.5, y + 1)

    operations = [s.place.primitive for s in debug.replay(f)(0.5)]
    assert "sin" in operations and "cos" not in operations
    np.testing.assert_allclose(debug.replay(f)(0.5).run(), f(0.5))
    assert operations.count("mul") == 3


@pytest.mark.full
def test_breakpoints_on_lines(tmp_path: Path) -> None:
    """pdb stops each time that the user's line computes something, and knows the values by their names."""
    script = tmp_path / "program.py"
    script.write_text(
        "from xlamini import debug, jit, lax\n"
        "def body(c, v):\n"
        "    total = c + v\n"
        "    return total * 2, total\n"
        "def f(x):\n"
        "    scaled = x * 10\n"
        "    return lax.scan(body, scaled, lax.iota(float, 2))\n"
        "debug.replay(jit(f))(1.5).run()\n"
    )
    commands = "break 4\ncontinue\nprint('total is', total)\ncontinue\nprint('total is', total)\nquit\n"
    ran = subprocess.run(
        [sys.executable, "-m", "pdb", script], input=commands, capture_output=True, text=True, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": ""},
        timeout=120, check=False,
    )  # fmt: skip
    assert "-> return total * 2, total" in ran.stdout, ran.stdout + ran.stderr
    assert "total is 15.0" in ran.stdout and "total is 31.0" in ran.stdout


def test_bisect_finds_the_first_operation_that_differs() -> None:
    def f(x: Any, dtype: Any = jnp.float32) -> Any:
        wide = x.astype(dtype)
        y = wide + 1000
        z = y - 1000
        return z * 2

    found = debug.bisect(f, lambda x: f(x, jnp.bfloat16))(X / 7).found
    assert found is not None and (found.place.variable, found.place.primitive) == ("z", "sub")
    assert found.ulps > 50 and "units in the last place apart" in str(found)


def test_bisect_of_loops_names_the_iteration() -> None:
    def f(x: Any, dtype: Any) -> Any:
        return lax.scan(lambda c, _: (c * 1.1, None), x.astype(dtype), None, length=30)[0]

    found = debug.bisect(lambda x: f(x, jnp.float32), lambda x: f(x, jnp.float16), 8)(X).found
    assert found is not None and found.place.primitive == "mul" and 1 < found.place.iterations[0] < 30


@pytest.mark.full
def test_bisect_of_equal_programs() -> None:
    f = lambda key: random.normal(key, (4,)) * 2
    found = debug.bisect(f, f)(random.key(1))
    assert found.found is None and found.compared > 10
    assert repr(found) == f"no difference in {found.compared} operations"


def test_bisect_of_jit_and_eager() -> None:
    """A compiled program fuses a product and a sum, and rounds once where separate operations round twice."""
    f = lambda x: (x * 1.1 + 0.3) * 1e3
    found = debug.bisect(f, jit(f), 0.0)(jnp.linspace(-1, 1, 1000))
    eager, compiled = np.asarray(f(jnp.linspace(-1, 1, 1000))), np.asarray(jit(f)(jnp.linspace(-1, 1, 1000)))
    assert (found.found is None) == bool((eager == compiled).all())
