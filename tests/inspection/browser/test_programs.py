"""Reports of five programs, made by `xlamini.inspect`, on every screen and for every target."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import xlamini
from tests.inspection.browser.conftest import texts
from tests.inspection.browser.test_screens import SCREENS
from tests.support import inspected_programs as programs

pytestmark = pytest.mark.slow
STEPS: dict[str, tuple[Callable[[], programs.Step], list[str]]] = {
    "mlp": (programs.mlp_step, ["here"]),
    "transformer": (programs.transformer_step, ["here", "tpu:v5e:2x2", "gpu:h200"]),
    "conv": (programs.conv_step, ["here"]),
    "rnn": (programs.rnn_step, ["here"]),
    "sharded": (lambda: programs.sharded_step(xlamini.devices()), ["here"]),
}


@pytest.mark.parametrize("name", STEPS)
def test_every_screen_of_a_program_opens(opened: Callable[..., Any], name: str) -> None:
    step, targets = STEPS[name]
    made = step()
    report = xlamini.inspect(made.fun, targets=targets)(*made.args).json()
    driver = opened(report)
    for target, about in enumerate(report["targets"]):
        row = about["kernels"][0]["rows"][0] if about["error"] is None else 0
        for screen in SCREENS:
            driver.execute_script(f"inspector.set({{screen: '{screen}', target: {target}, pick: 'row:{row}'}})")
            assert texts(driver, "h1")[0], screen
            assert texts(driver, ".body")[0], screen
        driver.execute_script("inspector.set({screen: 'kernels'})")
        shown = texts(driver, ".body")[0]
        names = [kernel["name"] for kernel in about["kernels"]] or ["Not available"]
        assert any(name in shown for name in names)
