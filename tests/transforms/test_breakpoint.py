"""debug.breakpoint: commands from a file, under transformations, and what it does to the program."""
from __future__ import annotations

import io
from typing import Any

import pytest

import xlamini
from xlamini import debug, grad, jit, lax, numpy as jnp, vmap
from xlamini.errors import CallbackError


def session(transform: Any, commands: str, *args: Any, body: Any = None) -> tuple[Any, list[str]]:
    """The result of a transformed function with a breakpoint, and the lines that were printed."""
    given, printed, scale = io.StringIO(commands), io.StringIO(), 3.0

    def f(x: Any) -> Any:
        y, parts = scale * x, {"a": (x + 1, "text")}
        debug.breakpoint(stdin=given, stdout=printed)
        return y + len(parts)

    out = transform(body(given, printed) if body else f)(*args)
    xlamini.effects_barrier()
    return out, [line.removeprefix("(debug) ") for line in printed.getvalue().split("\n")]


def test_values_and_expressions() -> None:
    out, lines = session(jit, "p x\ny * 2\npp parts\np jnp.sin(x) > 0\np scale\np nope\nc\n", 2.0)
    assert out == 7.0 and lines[0].endswith("f()") and lines[1] == "-> debug.breakpoint(stdin=given, stdout=printed)"
    assert lines[2:5] == ["2.0", "12.0", "{'a': (Array(3., dtype=float32), 'text')}"]
    assert lines[5:8] == ["True", "3.0", "*** NameError: name 'nope' is not defined"]


def test_the_stack_and_the_lines() -> None:
    _, lines = session(jit, "u\np commands[:1]\nd\nw\nl\n", 2.0)
    text = "\n".join(lines)
    assert lines[2].endswith("session()") and lines[4] == "u" and lines[5].endswith("f()")
    stack = [line for line in lines[7:] if line.endswith("()") and ".py(" in line]
    assert stack[-1].startswith("> ") and stack[-1].endswith("f()") and stack[-2].endswith("session()")
    assert "->         debug.breakpoint(stdin=given, stdout=printed)" in text and "tracing.py" not in text


def test_under_transformations() -> None:
    out, lines = session(vmap, "p x\nc\np x\nc\n", jnp.array([1.0, 2.0]))
    assert out.tolist() == [4.0, 7.0] and [x for x in lines if x in ("1.0", "2.0")] == ["1.0", "2.0"]
    slope, lines = session(lambda f: jit(grad(f)), "p y\n", 2.0)
    assert slope == 3.0 and "6.0" in lines
    assert session(lambda f: f, "p y\n", 2.0)[1][2] == "6.0"


def test_in_a_branch_that_is_taken() -> None:
    def body(given: Any, printed: Any) -> Any:
        def f(x: Any) -> Any:
            z = 1 / x
            lax.cond(jnp.isfinite(z), lambda: None, lambda: debug.breakpoint(stdin=given, stdout=printed))
            return z

        return f

    _, lines = session(jit, "u\np z\n", 0.0, body=body)
    assert "inf" in lines
    assert session(jit, "p z\n", 2.0, body=body)[1] == [""]


def test_quit_and_errors() -> None:
    with pytest.raises(CallbackError, match=r"quit at debug\.breakpoint"):
        session(jit, "q\n", 2.0)
    with pytest.raises(ValueError, match="backend must be None or 'cli', got 'web'"):
        debug.breakpoint(backend="web")


def test_the_number_of_frames() -> None:
    given, printed = io.StringIO("u\nw\n"), io.StringIO()
    jit(lambda x: debug.breakpoint(stdin=given, stdout=printed, num_frames=1, ordered=True))(1.0)
    xlamini.effects_barrier()
    assert printed.getvalue().count("<lambda>()") == 3 and "test_the_number_of_frames()" not in printed.getvalue()
