"""Calls as events: each call is told while somebody listens, and C++ dispatch has them back afterwards."""
from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp
from xlamini.core.events import CALLED, is_heard
from xlamini.staging.compile.program import Program
from xlamini.staging.run.jit.call_events import calls_heard


def test_each_call_is_told_with_its_program() -> None:
    step = xlamini.jit(lambda x: x * 2 + 1)
    compiled = xlamini.jit(lambda x: x - 3).lower(jnp.ones(3)).compile()
    x, seen = jnp.ones(3), Counter[str]()

    def listen(event: Any) -> None:
        seen[event.program.name] += 1

    step(x)
    with calls_heard(listen):
        for _ in range(5):
            x = step(x)
        for _ in range(2):
            compiled(x)
        with pytest.raises(TypeError):
            step("no array")
    step(x)
    assert not is_heard(CALLED)
    assert seen == {"<lambda>": 7}
    np.testing.assert_array_equal(x, [63.0] * 3)


def test_calls_go_back_to_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    step, in_python, x = xlamini.jit(lambda x: x + 1), [], jnp.ones(3)
    run = Program.__call__
    monkeypatch.setattr(Program, "__call__", lambda self, *args: in_python.append(self.name) or run(self, *args))
    with calls_heard(lambda event: None):
        for _ in range(3):
            x = step(x)
    assert in_python == ["<lambda>"] * 3
    for _ in range(4):
        x = step(x)
    assert in_python == ["<lambda>"] * 4
    np.testing.assert_array_equal(x, [8.0] * 3)
