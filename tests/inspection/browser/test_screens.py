"""Every screen of every sample report opens from a file, with nothing on the console and no request to the network."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.inspection import reports
from tests.inspection.browser.conftest import sample, texts, wait

pytestmark = pytest.mark.slow
SCREENS = """summary source rewrites kernels roofline memory sharding targets compilations diff values
    neighbourhood""".split()
REPORTS = ["mlp", "bare", "failed", "hostile"]


@pytest.mark.parametrize("report", REPORTS)
def test_screens_open(opened: Callable[..., Any], report: str) -> None:
    driver = opened(report)
    for screen in SCREENS:
        for pick in ("null", "'row:0'"):
            driver.execute_script(f"inspector.set({{screen: '{screen}', pick: {pick}}})")
            assert texts(driver, "h1")[0], screen
            assert texts(driver, ".body")[0], screen
            assert texts(driver, '[aria-current="page"]') != []
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert driver.execute_script("return globalThis.pwned === undefined && !document.querySelector('.body img')")


@pytest.mark.parametrize("target", range(4))
def test_screens_open_for_each_target(opened: Callable[..., Any], target: int) -> None:
    driver = opened("mlp", f"target={target}")
    for screen in SCREENS:
        driver.execute_script(f"inspector.set({{screen: '{screen}', tab: null}})")
        for n in range(len(texts(driver, ".body .switch button"))):
            driver.execute_script("document.querySelectorAll('.body .switch button')[arguments[0]]?.click()", n)
    if target == 3:
        driver.execute_script("inspector.set({screen: 'kernels'})")
        assert "Not available for this target: no topology is named v9" in texts(driver, ".missing")[0]


def test_missing_parts_say_why(opened: Callable[..., Any]) -> None:
    driver = opened("mlp", "screen=kernels&tab=boundaries")
    assert "gives no reasons" in texts(driver, ".missing")[0]
    driver = opened("bare", "screen=values")
    assert "values=True (--values)" in texts(driver, ".missing")[0]
    driver = opened("failed")
    assert "no lowering rule" in texts(driver, ".missing")[0]


def test_measured_times_have_columns_of_their_own(opened: Callable[..., Any]) -> None:
    driver = opened(reports.measured(), "screen=kernels", reports.slower())
    heads = texts(driver, "[role=columnheader]")
    assert {"time", "measured", "in a pool", "each", "first", "last"} <= set(heads)
    assert "400 µs" in texts(driver, "[role=row]")[1]  # the longest as measured, not as predicted
    driver.execute_script("inspector.set({screen: 'roofline'})")
    assert "Times: measured." in texts(driver, ".bounds")[0]
    driver.execute_script("inspector.set({screen: 'source', heat: 'measured'})")
    assert "Measured 1 ms · put in by XLA 20 µs" in texts(driver, "summary")[0] and "673 µs" in texts(driver, ".heat")
    driver.execute_script("inspector.set({screen: 'diff'})")
    assert any("here: measured" in row and "−33.3 %" in row for row in texts(driver, "tr"))
    assert any("here: between kernels" in row and "−80 %" in row for row in texts(driver, "tr"))
    assert any("here: put in by XLA" in row and "within the spread" in row for row in texts(driver, "tr"))
    assert "train.py:5" in texts(driver, "[role=row]")[1]
    driver = opened(reports.report(), "screen=kernels")
    assert "measured" not in texts(driver, "[role=columnheader]")


def test_hostile_texts_are_shown_as_they_are(opened: Callable[..., Any]) -> None:
    driver = opened("hostile", "screen=source&pick=row:1")
    assert "<script>globalThis.pwned = 1</script>" in texts(driver, ".program-name")[0]
    assert any('"><img src=x' in text for text in texts(driver, ".code .text"))
    assert driver.title.startswith("</script><script>")
    assert driver.execute_script("return document.scripts.length") == 3


def test_a_report_of_another_schema_is_an_error_in_words(driver: Any, opened: Callable[..., Any]) -> None:
    opened({"schema": 2, "name": "later"})
    wait(driver, "document.querySelector('.missing')")
    assert "has schema 2, and this page reads schema 1" in texts(driver, ".missing")[0]
    assert len(driver.get_log("browser")) == 1


def test_nothing_can_be_fetched(opened: Callable[..., Any]) -> None:
    driver = opened("bare")
    script = "const done = arguments[0]; fetch('data:text/plain,x').then(() => done('fetched'), () => done('refused'))"
    assert driver.execute_async_script(script) == "refused"
    assert "connect-src" in driver.get_log("browser")[0]["message"]


def test_without_source_texts_the_lines_are_numbers(opened: Callable[..., Any]) -> None:
    report = dict(sample("mlp"))
    report["sources"] = [{**source, "lines": None} for source in report["sources"]]
    driver = opened(report, "screen=source&pick=line:0:9")
    assert texts(driver, ".notice") == []
    assert "16 equations" in texts(driver, '[aria-label="Source"] .v-line.lit')[0]
    assert texts(driver, '[aria-label="Stage"] .v-line.lit')


def test_the_notice_says_that_source_text_is_inside(opened: Callable[..., Any]) -> None:
    assert texts(opened("mlp"), ".notice") == ["contains source code"]
