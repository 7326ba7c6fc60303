"""A reader's way through the page: what is chosen travels, keys and search work, links keep the state."""
from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.inspection import reports
from tests.inspection.browser.conftest import press, sample, texts, wait
from xlamini.inspection.page import framed, page

pytestmark = pytest.mark.slow
Open = Callable[..., Any]


def state(driver: Any, name: str) -> Any:
    return driver.execute_script(f"return inspector.state.{name}")


def click(driver: Any, selector: str, n: int = 0) -> None:
    driver.execute_script("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, n)


def test_a_line_is_chosen_on_all_screens(opened: Open) -> None:
    driver = opened("mlp", "screen=source&target=2")
    click(driver, '[aria-label="Source"] .v-line', 8)
    assert state(driver, "pick") == "line:0:9"
    listed = texts(driver, '[aria-label="Stage"] .v-line.lit .text')
    assert listed and all("dot_general" in text or "transpose" in text for text in listed)
    for screen in ("kernels", "roofline", "values"):
        driver.execute_script(f"inspector.set({{screen: '{screen}'}})")
        assert texts(driver, ".v-line.lit"), screen
    assert "train.py:9" in texts(driver, ".bead")[0]


def test_the_pointer_lights_the_same_equations(opened: Open) -> None:
    driver = opened("mlp", "screen=source")
    line = "document.querySelectorAll('[aria-label=Source] .v-line')[10]"
    driver.execute_script(f"{line}.dispatchEvent(new MouseEvent('mouseover', {{bubbles: true}}))")
    lit = texts(driver, '[aria-label="Stage"] .hot .text')
    assert lit and all(any(name in text for name in ("tanh", "mul", "sub", "reduce_sum")) for text in lit)


def test_keys(opened: Open) -> None:
    driver = opened("mlp", "screen=source")
    press(driver, "j")
    first = state(driver, "pick")
    press(driver, "j", "j", "k")
    assert int(state(driver, "pick")[4:]) == int(first[4:]) + 1
    stage = state(driver, "stage")
    press(driver, "]")
    assert state(driver, "stage") > stage
    press(driver, "[", "[")
    assert state(driver, "stage") < stage
    press(driver, "g")
    assert state(driver, "screen") == "neighbourhood" and texts(driver, ".node.centre")
    press(driver, "s")
    assert state(driver, "screen") == "source"
    press(driver, "?")
    assert "neighbourhood of the equation" in texts(driver, "dialog[open]")[0]
    press(driver, "\ue00c")
    press(driver, "\ue00c")
    assert state(driver, "pick") is None


def test_lists_work_by_keyboard(opened: Open) -> None:
    driver = opened("mlp", "screen=kernels&target=2")
    driver.execute_script("document.querySelector('.v-list').focus()")
    press(driver, "\ue015", "\ue015", "\ue007")  # down, down, Enter
    assert state(driver, "pick").startswith("kernel:2:")
    lines = len(texts(driver, ".v-line"))
    press(driver, "\ue014")
    assert len(texts(driver, ".v-line")) > lines and texts(driver, ".under code")
    press(driver, "\ue012")
    assert len(texts(driver, ".v-line")) == lines


SEARCHES = [("line:19", "integer_pow"), ("primitive:tanh", "tanh"), ("function:loss", "reduce_sum"),
    ("gemm_fusion.0", "gemm_fusion.0"), ("learning rate", "RATE = 0.1")]


@pytest.mark.parametrize(("query", "expected"), SEARCHES)
def test_search(opened: Open, query: str, expected: str) -> None:
    driver = opened("mlp")
    press(driver, "/", *query)
    assert any(expected in text for text in texts(driver, ".hit")), texts(driver, ".hit")
    press(driver, "\ue007")
    assert state(driver, "pick") is not None
    press(driver, "/", "x", "\ue00c")
    assert texts(driver, "dialog[open]") == []


def test_a_link_keeps_the_state(opened: Open) -> None:
    driver = opened("mlp", "screen=source&pick=line:0:9&target=1&stage=2&heat=held")
    kept = driver.execute_script("return {...inspector.state}")
    assert (kept["pick"], kept["target"], kept["stage"], kept["heat"]) == ("line:0:9", 1, 2, "held")
    driver.execute_script("inspector.set({screen: 'memory'})")
    assert "screen=memory" in driver.current_url and "pick=line:0:9" in driver.current_url
    driver.back()
    wait(driver, "inspector.state.screen === 'source'")
    wait(driver, "document.querySelector('h1').textContent === 'Source and IR'")


def test_rewrites_are_aligned_and_played(opened: Open) -> None:
    driver = opened("mlp", "screen=rewrites&stage=2")
    assert texts(driver, ".tally") == ["8 added", "0 removed", "0 changed", "0 moved"]
    click(driver, "#play")
    wait(driver, "inspector.state.stage === 3")
    assert "transpose made" in texts(driver, ".caption")[0]
    click(driver, "#play")
    click(driver, ".pair.added")
    assert "written by" in texts(driver, ".facts")[0]


def test_the_rule_of_an_equation_is_one_click_away(opened: Open) -> None:
    driver = opened("mlp")
    row = next(i for i, text in enumerate(sample("mlp")["equations"]["text"]) if "mul" in text)
    driver.execute_script(f"inspector.set({{pick: 'row:{row}'}})")
    click(driver, ".facts .link", 1)
    assert state(driver, "screen") == "source"
    assert any("def jvp" in text for text in texts(driver, '[aria-label="Source"] .v-line.lit'))


def test_a_second_report_is_compared(opened: Open, tmp_path: Path) -> None:
    driver = opened("mlp", "screen=diff")
    before = tmp_path / "before.json"
    before.write_text(json.dumps(sample("other")))
    driver.find_element("id", "other-file").send_keys(str(before))
    wait(driver, "document.querySelector('.drop.filled')")
    assert "before.json" in texts(driver, ".drop")[0]
    assert any("−20 %" in text for text in texts(driver, ".grid-line"))
    for part in (1, 2):
        click(driver, ".body .switch button", part)
        assert texts(driver, ".body .pair, .body h2")
    page_file = tmp_path / "before.html"
    page_file.write_text(page(sample("other")), "utf-8")
    driver.find_element("id", "other-file").send_keys(str(page_file))
    wait(driver, "document.querySelector('.drop').textContent.includes('before.html')")


def test_what_xla_put_in_is_compared(opened: Open) -> None:
    driver = opened(reports.report(), "screen=diff", reports.changed())
    click(driver, ".body .switch button", 1)
    assert "copyf32[16,8]newnew 0 → 1new 0 B → 1 KiBno line" in texts(driver, "tr")
    assert "Put in by XLA" in texts(driver, "section p")


FOREIGN = [("not json", "neither a page nor the JSON"), ("[1]", "has no schema"), ('{"schema": 9}', "has schema 9")]


@pytest.mark.parametrize(("text", "words"), FOREIGN)
def test_a_foreign_file_is_an_error_in_words(opened: Open, tmp_path: Path, text: str, words: str) -> None:
    driver = opened("bare", "screen=diff")
    file = tmp_path / "foreign.json"
    file.write_text(text)
    driver.find_element("id", "other-file").send_keys(str(file))
    wait(driver, "document.querySelector('[role=alert]')")
    assert words in texts(driver, "[role=alert]")[0]


def test_a_report_embedded_for_comparison(opened: Open) -> None:
    driver = opened("mlp", "screen=diff", sample("other"))
    assert texts(driver, ".drop.filled")


def test_light_and_dark(opened: Open) -> None:
    driver = opened("mlp")
    paper = "getComputedStyle(document.body).backgroundColor"
    colours = []
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        wait(driver, f"document.documentElement.dataset.theme === '{scheme}'")
        colours.append(driver.execute_script(f"return {paper}"))
    assert colours[0] != colours[1]
    for _ in range(3):
        if driver.execute_script("return document.documentElement.dataset.theme") == "light":
            break
        click(driver, "#theme")
    assert driver.execute_script(f"return {paper}") == colours[0]
    driver.execute_script("localStorage.clear()")


def test_a_group_is_folded_by_scope(opened: Open) -> None:
    driver = opened("mlp", "screen=source")
    click(driver, ".check input", 1)
    assert any("model" in text for text in texts(driver, ".fold"))
    click(driver, ".fold")
    assert any("layer0" in text for text in texts(driver, ".fold"))


def test_in_a_frame_of_a_notebook(driver: Any, tmp_path: Path) -> None:
    notebook = tmp_path / "notebook.html"
    frame = framed(page(sample("mlp")))
    notebook.write_text(f"<!doctype html><meta charset=utf-8><body style='color: red'>{frame}", "utf-8")
    driver.get(notebook.as_uri())
    driver.switch_to.frame(0)
    wait(driver, "document.querySelector('h1')")
    click(driver, ".tab", 3)
    assert texts(driver, "h1") == ["Kernels"]
    driver.switch_to.default_content()
    assert driver.execute_script("return getComputedStyle(document.body).color") == "rgb(255, 0, 0)"
    assert driver.get_log("browser") == []


@pytest.mark.parametrize("report", ["mlp", "hostile"])
@pytest.mark.parametrize("pick", ["row:20", "row:21", "kernel:0:0", "kernel:0:1"])
def test_reproducers_are_python(opened: Open, report: str, pick: str) -> None:
    driver = opened(report, f"pick={pick}")
    driver.execute_script("navigator.clipboard.writeText = async text => { globalThis.copied = text }")
    click(driver, ".actions button", 2)
    text = wait(driver, "globalThis.copied")
    kinds = {type(it) for it in ast.parse(text).body}
    assert kinds <= {ast.Import, ast.ImportFrom, ast.Assign, ast.Expr, ast.For}
    assert {it.id for it in ast.walk(ast.parse(text)) if isinstance(it, ast.Name)}.isdisjoint({"globalThis", "onerror"})


def test_graphs_are_downloads(opened: Open) -> None:
    driver = opened("mlp", "screen=neighbourhood&pick=row:20")
    driver.execute_script("globalThis.saved = []; globalThis.make = URL.createObjectURL")
    driver.execute_script("URL.createObjectURL = it => (saved.push(it), make.call(URL, it))")
    for n in range(3):
        click(driver, ".tools .button", n)
    script = "const done = arguments[0]; Promise.all(saved.map(it => it.text())).then(done)"
    dot, explorer, perfetto = driver.execute_async_script(script)
    assert dot.startswith("digraph program {")
    assert len(json.loads(explorer)["graphs"][0]["nodes"]) == 64
    assert {event["ph"] for event in json.loads(perfetto)["traceEvents"]} == {"M", "X"}
