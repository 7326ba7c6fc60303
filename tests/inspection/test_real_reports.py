"""Reports that `xlamini.inspect` makes: they keep the schema, show on every screen, and go through the command."""
from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.commands import inspect as command
from xlamini.inspection.diff import diff
from xlamini.inspection.schema import problems, read_report
from xlamini.inspection.text import SCREENS, text

pytestmark = pytest.mark.full  # each compiles programs with XLA's dumps

Struct = xlamini.ShapeDtypeStruct


def loss(w: Any, x: Any) -> Any:
    hidden = jnp.tanh(x @ w)
    return jnp.mean(hidden * hidden)


def rnn(w: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        c = jnp.tanh(w @ c + x)
        return c, c

    return lax.scan(step, jnp.zeros(8), xs)[1].sum()


def branches(x: Any) -> Any:
    return lax.cond(x.sum() > 0, jnp.sin, lambda x: 2 * x, x)


def trips(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "gradient": (xlamini.grad(loss), (Struct((8, 4), "float32"), Struct((16, 8), "float32"))),
    "scan": (xlamini.grad(rnn), (Struct((8, 8), "float32"), Struct((5, 8), "float32"))),
    "cond": (branches, (Struct((4,), "float32"),)),
    "while": (trips, (Struct((3,), "float32"),)),
    "failure": (lambda x: x + 1, (Struct((1 << 20, 1 << 20, 256), "float32"),)),  # too large to lower
}


@functools.cache
def content(name: str) -> dict[str, Any]:
    function, args = PROGRAMS[name]
    return xlamini.inspect(function)(*args).json()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_report_keeps_the_schema(name: str) -> None:
    assert problems(content(name)) == []
    assert problems(json.loads(json.dumps(content(name), allow_nan=False))) == []
    assert (content(name)["failure"] is not None) is (name == "failure")


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_screen_shows(name: str) -> None:
    for screen in SCREENS:
        lines = text(content(name), screen, width=80, against=content("gradient")).splitlines()
        assert len(lines) > 1 and max(map(len, lines)) <= 80
    for stage in range(len(content(name)["stages"])):
        assert text(content(name), "rewrites", stage=stage)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_report_does_not_differ_from_itself(name: str) -> None:
    found = diff(content(name), content(name))
    assert not found["lines"] and not any(found["equations"][part] for part in ("changed", "lost", "new"))
    assert not any(kernels[part] for kernels in found["kernels"] for part in ("changed", "lost", "new"))


def test_a_report_is_compared_with_reports_files_and_json(tmp_path: Path) -> None:
    report = xlamini.inspect(loss)(*PROGRAMS["gradient"][1])
    report.save(tmp_path / "old.json")
    for against in (report, report.json(), tmp_path / "old.json", str(tmp_path / "old.json")):
        assert "No line of yours costs more or less than before." in report.text("diff", against=against)
        assert report.check(flops="+0", against=against, targets=["here"])
        assert report.diff(against)["lines"] == []
        report.save(tmp_path / "both.html", against=against)


def test_a_run_with_a_target_that_is_not_there() -> None:
    report = xlamini.inspect(loss, targets=["here", "heer"], values=True)(jnp.ones((8, 4)), jnp.ones((16, 8)))
    assert problems(report.json()) == [] and "not available for heer: " in report.text()
    assert "All values are finite." in report.text("values")


def test_the_lines_of_a_report_have_its_costs() -> None:
    found = text(content("gradient"), "source")
    assert "hidden = jnp.tanh(x @ w)" in found and "return jnp.mean(hidden * hidden)" in found


PROGRAM = """
import xlamini.numpy as jnp

def step(w, x):
    return jnp.tanh(x @ w["w"]).sum(){more}
"""


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command.sys, "path", [*command.sys.path])
    Path("first_step.py").write_text(PROGRAM.format(more=""))
    Path("later_step.py").write_text(PROGRAM.format(more=" + jnp.sin(x).sum()"))
    types = ["--arg", "{w: f32[32,8]}", "--arg", "f32[16,32]"]
    assert command.main(["first_step.py:step", *types, "--json", "old.json", "-o", "step.html"]) == 0
    assert read_report("old.json")["name"] == "step" and "<html" in Path("step.html").read_text()
    limits = ["--check", "flops+5%", "--check", "peak<1GiB"]
    assert command.main(["later_step.py:step", *types, "--diff", "old.json", *limits]) == 1
    printed = capsys.readouterr().out
    assert "later_step.py:5" in printed and "FAIL  flops +5%" in printed and "ok    peak <1GiB" in printed
    assert command.main(["later_step.py:step", *types, "--check", "peak<1GiB", "-o", "alone.html"]) == 0
    assert command.main(["later_step.py:step", *types, "--diff", "old.json", "-o", "both.html"]) == 0
    assert len(Path("both.html").read_text()) - len(Path("alone.html").read_text()) > 1000  # the earlier report


def test_a_function_that_cannot_be_traced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "untraceable_step.py"
    file.write_text("def step(x):\n    if x > 0:\n        return x\n    return -x\n")
    assert command.main([f"{file}:step", "--arg", "f32[]"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[1].startswith("inspect: step cannot be inspected at ") and said[1].endswith("untraceable_step.py:2")
    assert said[2].startswith("TracerBoolConversionError: ")
