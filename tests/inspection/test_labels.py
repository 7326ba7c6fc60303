"""Labels of equations that hold several programs: the loop's condition and body, the branches of a cond."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax

X = np.full(3, 2.0, np.float32)


@xlamini.jit
def norm(x: Any) -> Any:
    return jnp.sqrt((x * x).sum())


def loop(x: Any) -> Any:
    return lax.while_loop(lambda x: (x * x).sum() < 100, lambda x: x * 1.5, x)


def branches(x: Any) -> Any:
    return lax.cond(x[0] > 1, lambda x: x * 2, lambda x: (x * 3) * x, x)


def shared(x: Any) -> Any:
    """A loop whose condition and body call the same function."""
    return lax.while_loop(lambda x: norm(x) < 100, lambda x: jnp.exp(x) * norm(x), x)


def nested(x: Any) -> Any:
    def step(x: Any, y: Any) -> tuple[Any, Any]:
        return lax.cond(y > 0, loop, branches, x), y * 2

    return lax.scan(step, x, X)


def solved(x: Any) -> Any:
    return lax.custom_root(lambda y: y * y - x, x * 1.0, lambda f, y: y - f(y) * 0.1, lambda g, y: y / g(y * 0 + 1))


PROGRAMS = [loop, branches, shared, nested, xlamini.grad(lambda x: branches(x).sum()), solved]
NAMES = ["loop", "branches", "shared", "nested", "grad", "solved"]


def ids(text: str) -> set[str]:
    return set(re.findall(r"#(e[\w.]+)", text))


def labels(report: Any) -> list[str]:
    """Those of the stage that was lowered."""
    columns = report["equations"]
    return [label for label, stage in zip(columns["label"], columns["stage"], strict=True) if stage == report["final"]]


def test_the_condition_and_the_body_of_a_loop() -> None:
    report = xlamini.inspect(loop)(X).json()
    assert {"while#e0", "mul#e0.cond.0", "mul#e0.body.0"} <= set(labels(report))
    hlo = report["stages"][report["targets"][0]["hlo"]]
    [times] = [i for i, line in enumerate(hlo["lines"]) if "multiply(" in line and "broadcast" in line]
    [square] = [i for i, line in enumerate(hlo["lines"]) if "multiply(" in line and "broadcast" not in line]
    names = [[report["equations"]["label"][row] for row in hlo["rows"][i]] for i in (times, square)]
    assert names == [["mul#e0.body.0"], ["mul#e0.cond.0"]]


def test_branches_and_loops_inside_of_each_other() -> None:
    found = set(labels(xlamini.inspect(nested)(X).json()))
    branch = [label for label in found if re.fullmatch(r"cond#e0\.\d+\.branch_0\.\d+", label)]
    loops = [label for label in found if re.fullmatch(r"while#e0\.\d+\.branch_1\.\d+", label)]
    assert (len(branch), len(loops)) == (1, 1)
    inside = [f"#{branch[0].partition('#')[2]}.branch_{i}" for i in (0, 1)]
    assert {f"mul{inside[0]}.0", f"mul{inside[0]}.1", f"mul{inside[1]}.0"} <= found
    assert {f"mul#{loops[0].partition('#')[2]}.{part}.0" for part in ("cond", "body")} <= found


@pytest.mark.parametrize("fun", PROGRAMS, ids=NAMES)
def test_each_label_is_one_equation_and_each_id_of_the_module_is_a_label(fun: Any) -> None:
    report = xlamini.inspect(fun)(X).json()
    found = labels(report)
    assert len(found) == len(set(found))
    lowered = xlamini.jit(fun).lower(X)
    module = lowered.as_text(debug_info=True)
    in_module = {name.rpartition("/")[2] for name in re.findall(r'loc\("([^"]*#e[^"]*)"', module)}
    assert in_module <= set(found)  # lowered without an inspection


@pytest.mark.parametrize("fun", PROGRAMS[:4], ids=NAMES[:4])
def test_ids_in_a_printed_jaxpr_are_those_of_stablehlo(fun: Any) -> None:
    traced = xlamini.jit(fun).trace(X)
    assert ids(traced.lower().as_text(debug_info=True)) == ids(traced.jaxpr.pretty_print(ids=True))
