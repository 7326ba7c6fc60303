"""debug.breakpoint: the prompt, its commands, the values under transformations, and the token."""
from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import debug, lax, numpy as jnp
from xlamini.errors import CallbackError

LIMIT = 5


class Terminal:
    """Text streams: the commands, and what the prompt writes."""

    def __init__(self, *commands: str):
        self.stdin, self.stdout = io.StringIO("".join(f"{c}\n" for c in commands)), io.StringIO()

    @property
    def streams(self) -> dict[str, Any]:
        return {"stdin": self.stdin, "stdout": self.stdout}

    @property
    def answers(self) -> list[str]:
        xlamini.effects_barrier()
        return [part.strip() for part in self.stdout.getvalue().split("(xdb)")]


def stopping(terminal: Terminal, **options: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = {"sine": jnp.sin(x)}
        note = "note"
        debug.breakpoint(**terminal.streams, **options)
        return y["sine"] * len(note)

    return f


def test_the_prompt_shows_the_variables_of_a_compiled_program() -> None:
    terminal = Terminal("p y['sine'] > 0.9", "note, x", "[v + LIMIT for v in (x,)]", "p nothing", "p 1/0", "", "c")
    assert float(xlamini.jit(stopping(terminal))(2.0)) == pytest.approx(4 * np.sin(2))
    assert terminal.answers == [
        "Entering xdb:",
        "Array(True, dtype=bool)",
        "('note', Array(2., dtype=float32))",
        "[Array(7., dtype=float32)]",
        "*** NameError: name 'nothing' is not defined",
        "*** ZeroDivisionError: division by zero",
        "",
        "",
    ]


def test_a_compiled_program_stops_at_each_call() -> None:
    terminal = Terminal("p x", "c", "p x", "c")
    f = xlamini.jit(stopping(terminal))
    f(1), f(2)
    assert [a for a in terminal.answers if a.startswith("Array")] == ["Array(1, dtype=int32)", "Array(2, dtype=int32)"]


def test_frames_of_callers() -> None:
    terminal = Terminal("w", "u", "p z", "a", "d", "pp list(range(3))", "l", "d", "continue")

    @xlamini.jit
    def outer(z: Any) -> Any:
        return stopping(terminal)(z + 1)

    outer(1.0)
    answers = terminal.answers
    assert "stopping.<locals>.f" in answers[1].split("> ")[-2] and "outer" in answers[1]
    assert "->         return stopping(terminal)(z + 1)" in answers[2]
    assert answers[3] == "Array(1., dtype=float32)" and answers[4].startswith("z = Array(1.,")
    assert answers[6] == "[0, 1, 2]"
    assert "->         debug.breakpoint(**terminal.streams, **options)" in answers[7]
    assert answers[8].startswith("At bottommost frame.")


def test_variables_that_are_no_trees_cost_no_levels_of_the_stack() -> None:
    def levels(n: int = 0) -> int:
        try:
            return levels(n + 1)
        except RecursionError:
            return n

    before = levels()
    for _ in range(3):
        endless: Any = OrderedDict(x=1.0)
        endless["itself"] = [[endless]]
        without_order = [[{1: 2.0, "a": 3.0}]]
        terminal = Terminal("u", "p without_order", "p 'itself' in endless", "c")
        xlamini.jit(stopping(terminal))(1.0)
    assert terminal.answers[2:4] == [repr(without_order), "True"]
    assert levels() == before


def test_the_number_of_frames_and_the_frames_of_the_library() -> None:
    few, many = Terminal("u", "bt", "c"), Terminal("bt", "c")
    xlamini.jit(stopping(few, num_frames=1))(1.0)
    xlamini.jit(stopping(many, filter_frames=False))(1.0)
    assert few.answers[1].startswith("At topmost frame.") and few.answers[2].count("-> ") == 1
    assert "xlamini" in many.answers[1] and "tracing.py" in many.answers[1]


def test_under_vmap_grad_and_in_control_flow() -> None:
    numbers = jnp.arange(2.0)
    terminal = Terminal("p x", "c", "p x", "c")
    xlamini.vmap(stopping(terminal))(numbers)
    assert [a for a in terminal.answers if "(" in a] == ["Array(0., dtype=float32)", "Array(1., dtype=float32)"]
    terminal = Terminal("p x", "c")
    assert float(xlamini.grad(stopping(terminal))(2.0)) == pytest.approx(4 * np.cos(2), rel=1e-5)
    assert terminal.answers[1].startswith("Array(2., dtype=float32")
    terminal = Terminal("x", "c")
    xlamini.jit(lambda x: lax.cond(x > 1, stopping(terminal, ordered=True), lambda x: x, x))(3.0)
    assert terminal.answers[1].startswith("Array(3.")
    terminal = Terminal("x", "c", "x", "c")
    lax.scan(lambda c, x: (c + stopping(terminal)(x), None), 0.0, numbers)
    assert [a[:8] for a in terminal.answers if "(" in a] == ["Array(0.", "Array(1."]


def test_outside_of_a_trace_it_stops_at_once() -> None:
    terminal = Terminal("x", "c")
    stopping(terminal)(jnp.float32(3))
    assert terminal.answers[1] == "Array(3., dtype=float32)"


@pytest.mark.parametrize("commands", [("q",), ()])
def test_quitting_stops_the_program(commands: tuple[str, ...]) -> None:
    for run in (stopping(Terminal(*commands)), xlamini.jit(stopping(Terminal(*commands)))):
        with pytest.raises(CallbackError, match=r"debug\.breakpoint: the prompt raised BdbQuit"):
            np.asarray(run(jnp.float32(2)))
            xlamini.effects_barrier()


def with_token(terminal: Terminal, used: bool) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = jnp.sin(x)
        token = debug.breakpoint(token={"y": y}, **terminal.streams)
        return token["y"] if used else y

    return f


def test_a_token_is_returned_and_decides_whether_it_stops() -> None:
    terminal = Terminal("p y", "c")
    assert float(xlamini.jit(with_token(terminal, True))(2.0)) == pytest.approx(np.sin(2))
    assert terminal.answers[1].startswith("Array(0.909")
    terminal = Terminal("p y", "c")
    assert float(xlamini.jit(with_token(terminal, False))(2.0)) == pytest.approx(np.sin(2))
    assert terminal.answers == [""]


def test_a_token_has_derivatives_and_batches() -> None:
    f = with_token(Terminal(*["c"] * 20), True)
    x = jnp.array([0.5, 1.5])
    np.testing.assert_allclose(xlamini.vmap(xlamini.grad(f))(x), np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(xlamini.jacfwd(xlamini.vmap(f))(x), np.diag(np.cos(x)), rtol=1e-6)
    y, slope = xlamini.jvp(f, (2.0,), (1.0,))
    np.testing.assert_allclose((y, slope), (np.sin(2), np.cos(2)), rtol=1e-6)
    pair = xlamini.vmap(lambda x, y: debug.breakpoint(token=(x, y), **Terminal("c", "c").streams), (0, None))(x, 1.0)
    np.testing.assert_allclose(pair[1], [1, 1])


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="backend is 'web', but the only one is 'cli'"):
        debug.breakpoint(backend="web")
    with pytest.raises(TypeError, match="unexpected input; it takes stdin and stdout"):
        debug.breakpoint(input=None)
    with pytest.raises(ValueError, match="num_frames is 0; keep at least 1"):
        debug.breakpoint(num_frames=0)
    with pytest.raises(ValueError, match="ordered and token exclude each other"):
        debug.breakpoint(ordered=True, token=1.0)


def test_tracers_of_traces_that_have_ended_are_shown_as_they_are() -> None:
    kept: list[Any] = []
    xlamini.jit(lambda x: kept.append(x))(1.0)
    terminal = Terminal("p len(kept), type(kept[0]).__name__", "c")

    @xlamini.jit
    def f(x: Any) -> Any:
        old = kept
        debug.breakpoint(**terminal.streams)
        return x + len(old)

    f(1.0)
    assert terminal.answers[1] == "(1, 'Tracer')"
