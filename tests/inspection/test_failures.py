"""What `inspect` reports of a program in which a rule fails: all that came before, and the first error."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.core import Primitive, ShapedArray
from xlamini.core.program.memory import Memory
from xlamini.inspection.schema import problems
from xlamini.inspection.text import SCREENS, text

X = np.linspace(-1, 1, 8, dtype=np.float32)


class Doubles(Primitive):
    name = "mystery"

    def shape_rule(self, x: ShapedArray) -> ShapedArray:
        return x

    def lower(self, ctx: Any, x: Any) -> Any:
        return ctx.op("stablehlo.add", x, x)


def inspected(failing: str, **options: Any) -> dict[str, Any]:
    """The report of a program with a primitive of which one rule fails; each screen says so."""

    def fails(*_: Any, **__: Any) -> Any:
        raise KeyError(f"there is no {failing}")

    rule = {"memory": Memory(workspace=fails)} if failing == "workspace" else {failing: fails}
    mystery = type("Mystery", (Doubles,), {**rule, "expands": failing == "expand"})()

    def step(x: Any) -> Any:
        return mystery.bind(xlamini.grad(lambda x: jnp.sin(x).sum())(x))

    found = xlamini.inspect(step, **options)(X).json()
    assert not problems(found)
    for screen in SCREENS:
        assert f"{found['failure']['stage']} failed: KeyError" in text(found, screen, width=200, against=found)
    return found


@pytest.mark.parametrize("rule", ["lower", "expand"])
def test_a_program_that_is_not_lowered_has_its_rewrites(rule: str) -> None:
    found = inspected(rule, targets=["here", "gpu:nothing"])
    assert found["failure"] == {"stage": "lower", "error": f"KeyError: 'there is no {rule}'"}
    titles = [stage["title"] for stage in found["stages"]]
    assert "<lambda>: transpose" in titles
    assert titles[-1].startswith("step: traced")
    assert found["final"] == len(titles) - 1
    assert found["equations"]["primitive"][-1] == "mystery"
    here, nothing = found["targets"]
    assert here["error"] == found["failure"]["error"]
    assert "gpu:nothing" in nothing["error"]
    assert [step["title"] for step in found["program"]] == ["Python", *titles]


@pytest.mark.parametrize("rule, stage, lacks", [("cost", "cost", "totals"), ("workspace", "memory plan", "memory")])
def test_a_program_whose_cost_is_not_known_has_its_kernels(rule: str, stage: str, lacks: str) -> None:
    found = inspected(rule)
    assert found["failure"] == {"stage": stage, "error": f"KeyError: 'there is no {rule}'"}
    assert found[lacks] is None
    assert found["targets"][0]["error"] is None
    assert found["targets"][0]["kernels"]
    assert found["program"][-1]["title"] == "kernels"
