"""The page of a profile: every screen at two widths and in both colours, and a reader's way through it."""
from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import xlamini
from tests.inspection.browser.conftest import PROFILES, press, sample, texts, wait
from xlamini import numpy as jnp
from xlamini.inspection.timing.page.content import problems
from xlamini.inspection.timing.script.profile import ScriptProfile

pytestmark = pytest.mark.slow
Open = Callable[..., Any]
SCREENS = "overview lines kernels timeline flame".split()
SAMPLES = ["small", "large", "hostile", "bare"]


@pytest.fixture
def opened_profile(opened: Open) -> Open:
    """Opens a content, as `opened_profile("small", "screen=lines")`."""

    def open_it(content: str | dict[str, Any], fragment: str = "") -> Any:
        return opened(sample(content, PROFILES) if isinstance(content, str) else content, fragment, None, "profile")

    return open_it


@pytest.fixture
def width(driver: Any) -> Iterator[Callable[[int], None]]:
    """Sets the width of the window in pixels of the page; at the end it is as before."""

    def set_width(pixels: int) -> None:
        size = {"width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": pixels < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    yield set_width
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def go(driver: Any, **changes: Any) -> None:
    driver.execute_script("profiler.set(arguments[0])", changes)


def drawn(driver: Any) -> int:
    """How many pixels of the timeline have a colour, after the next frame; those of a copy, which may be read often."""
    return driver.execute_async_script("""
        const done = arguments[0], it = document.querySelector("canvas"), copy = document.createElement("canvas");
        Object.assign(copy, {width: it.width, height: it.height});
        const context = copy.getContext("2d", {willReadFrequently: true});
        requestAnimationFrame(() => requestAnimationFrame(() => {
          context.drawImage(it, 0, 0);
          const {data} = context.getImageData(0, 0, copy.width, copy.height);
          done(data.filter((x, i) => i % 4 === 3 && x).length);
        }));
    """)


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_keep_the_schema(name: str) -> None:
    assert problems(sample(name, PROFILES)) == []


@pytest.mark.parametrize("pixels", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_screens_open(opened_profile: Open, width: Callable[[int], None], pixels: int, theme: str) -> None:
    width(pixels)
    for name in SAMPLES:
        driver = opened_profile(name)
        driver.execute_script("document.documentElement.dataset.theme = arguments[0]; profiler.show()", theme)
        for screen in SCREENS:
            for pick in (None, "line:0", "kernel:1"):
                go(driver, screen=screen, pick=pick)
                assert texts(driver, "h1")[0], screen
                assert texts(driver, ".body")[0], screen
            assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth"), screen
        assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
        assert driver.execute_script("return globalThis.pwned === undefined && !document.querySelector('.body img')")


def test_a_line_is_chosen_on_all_screens(opened_profile: Open) -> None:
    driver = opened_profile("small", "screen=lines")
    driver.execute_script("document.querySelectorAll('[aria-label=Source] .v-line')[3].click()")
    assert driver.execute_script("return profiler.state.pick") == "line:0"
    assert len(texts(driver, ".v-line.lit")) == 2
    go(driver, screen="kernels")
    assert sorted(text[:8] for text in texts(driver, ".grid-line.lit")) == ["fusion.0", "fusion.2", "fusion.4"]
    go(driver, screen="flame")
    assert texts(driver, '.flame-box.chosen[data-kind="line"]') == ["train.py:4"]
    assert len(texts(driver, '.flame-box.chosen[data-kind="kernel"]')) == 3
    assert "train.py:4" in texts(driver, ".bead")[0]
    assert driver.execute_script("return location.hash") == "#screen=flame&pick=line:0"


def test_a_finding_leads_to_its_line(opened_profile: Open) -> None:
    driver = opened_profile("small")
    assert "31.0 % train.py:6 waits for the device" in texts(driver, ".findings li")[0]
    driver.execute_script("document.querySelector('.findings .link').click()")
    assert driver.execute_script("return [profiler.state.screen, profiler.state.pick]") == ["lines", "line:1"]
    assert "loss = step(p, x)" in texts(driver, '[aria-label="Source"] .v-line.lit')[0]


def test_the_timeline_is_zoomed_and_read(opened_profile: Open) -> None:
    driver = opened_profile("large", "screen=timeline")
    view = "(({from, to}) => [from, to])(profiler.view.view)"
    first = driver.execute_script(f"return {view}")
    assert drawn(driver) > 1000
    driver.execute_script("document.querySelector('canvas').focus()")
    press(driver, "0")
    whole = driver.execute_script("return profiler.view.whole")
    assert driver.execute_script(f"return {view}") == [0, whole]
    assert drawn(driver) > 1000
    press(driver, "+", "+", "\ue014")
    low, high = driver.execute_script(f"return {view}")
    assert high - low == pytest.approx(whole / 1.5**2)
    assert low > 0
    press(driver, "\ue011")
    assert driver.execute_script(f"return {view}") == first
    press(driver, ".", ".")
    name, line = driver.execute_script("return [profiler.choice.kernel.name, profiler.choice.line.title]")
    words = texts(driver, ".run-words")[0]
    assert words.startswith(f"{name} · ")
    assert line in words
    assert len(texts(driver, "body *")) < 400


def test_the_pointer_tells_a_run(opened_profile: Open) -> None:
    driver = opened_profile("small", "screen=timeline")
    drawn(driver)
    script = """
        const {view} = profiler, {canvas} = view, box = canvas.getBoundingClientRect();
        view.see({from: 0, to: view.whole});
        const band = view.drawing.bands.find((it) => it.isDevice), run = band.lane[0];
        const {start, end} = profiler.model.runs, x = ((start[run] + end[run]) / 2 / view.whole) * box.width;
        view.drawing.draw(view.view, null);
        const place = {clientX: box.left + x, clientY: box.top + band.top + 5};
        canvas.dispatchEvent(new PointerEvent("pointermove", {...place, pointerId: 1, bubbles: true}));
        return run;
    """
    assert driver.execute_script(script) == 0
    assert "fusion.0" in texts(driver, ".run-words")[0]
    assert "tanh#e0, add#e1" in texts(driver, ".run-words")[0]
    assert "return jax.numpy.tanh(x @ p)" in texts(driver, ".run-words")[0]


def test_the_pointer_tells_what_the_host_did(opened_profile: Open) -> None:
    driver = opened_profile("small", "screen=timeline")
    drawn(driver)
    script = """
        const {view} = profiler, {canvas} = view, box = canvas.getBoundingClientRect();
        view.see({from: 0, to: view.whole});
        view.drawing.draw(view.view, null);
        const band = view.drawing.bands.find((it) => it.title === "transfers");
        const {start, end} = profiler.model.activities;
        const x = ((start[band.lane[0]] + end[band.lane[0]]) / 2 / view.whole) * box.width;
        const place = {clientX: box.left + x, clientY: box.top + band.top + 5, pointerId: 1, bubbles: true};
        canvas.setPointerCapture = () => {};  // there is no such pointer
        for (const kind of ["pointermove", "pointerdown", "pointerup"])
          canvas.dispatchEvent(new PointerEvent(kind, place));
        return profiler.state.pick;
    """
    assert driver.execute_script(script) == "line:1"
    words = texts(driver, ".run-words")[0]
    assert words.startswith("float32[512,512] to the device · 1 µs at 8 µs · 1 MiB")
    assert "train.py:6  loss = step(p, x)" in words
    go(driver, screen="lines")
    heads = [head.strip() for head in texts(driver, "[aria-label=Lines] [role=columnheader]")]
    assert heads[4:8] == ["waited", "Python", "moving", "moved"]


def test_the_flame_graph_is_zoomed(opened_profile: Open) -> None:
    driver = opened_profile("small", "screen=flame")
    assert texts(driver, '.flame-box[data-kind="function"]') == ["layer"]
    driver.execute_script("""document.querySelector('.flame-box[data-kind="line"]').click()""")
    assert driver.execute_script("return profiler.state.pick") == "line:0"
    boxes = "[...document.querySelectorAll('.flame-box')]"
    widths = f"{boxes}.filter((it) => it.style.width === '100%').map((it) => it.dataset.kind)"
    assert driver.execute_script(f"return {widths}") == ["all", "file", "function", "line"]
    driver.execute_script("document.querySelector('.flame-box').click()")
    assert driver.execute_script(f"return {widths}") == ["all"]


def test_keys(opened_profile: Open) -> None:
    driver = opened_profile("small")
    press(driver, "j")
    first = driver.execute_script("return profiler.state.pick")
    press(driver, "j", "k")
    assert driver.execute_script("return profiler.state.pick") == first
    for key, screen in {"l": "lines", "n": "kernels", "t": "timeline", "f": "flame"}.items():
        press(driver, key)
        assert driver.execute_script("return profiler.state.screen") == screen
    press(driver, "?")
    assert "the line that took next less" in texts(driver, "dialog[open]")[0]
    press(driver, "\ue00c")
    press(driver, "\ue00c")
    assert driver.execute_script("return profiler.state.pick") is None


def test_programs_lines_and_kernels_link_to_inspect(opened_profile: Open) -> None:
    links = """return [...document.querySelectorAll('a[target]')].map((it) => it.getAttribute('href'))"""
    driver = opened_profile("small", "pick=line:0")
    source = "page_files/step.html#screen=source&heat=measured"
    assert driver.execute_script(links) == ["page_files/step.html#screen=summary", source]
    go(driver, screen="kernels", pick="kernel:1")
    assert driver.execute_script(links) == ["page_files/step.html#screen=kernels"]
    assert opened_profile("hostile", "pick=line:0").execute_script(links) == []


def test_a_command_is_copied(opened_profile: Open) -> None:
    driver = opened_profile("small")
    assert texts(driver, ".copyable code") == ["python -m xlamini inspect x", "f"]
    driver.execute_script("document.querySelector('.copyable button').click()")
    assert wait(driver, "document.querySelector('.copyable button').textContent !== 'Copy'")


def test_another_schema_is_an_error_in_words(driver: Any, opened_profile: Open) -> None:
    opened_profile({**copy.deepcopy(sample("small", PROFILES)), "schema": 2})
    wait(driver, "document.querySelector('.missing')")
    assert "has schema 2, and this page reads schema 1" in texts(driver, ".missing")[0]
    assert len(driver.get_log("browser")) == 1


def test_a_profile_of_a_program(opened_profile: Open, tmp_path: Path) -> None:
    def layer(x: Any) -> Any:
        return jnp.sin(x @ x)

    def step(x: Any) -> Any:
        for _ in range(3):
            x = layer(x)
        return x

    jitted = xlamini.jit(step)
    with ScriptProfile() as found:
        for _ in range(3):
            jitted(jnp.ones((64, 64))).block_until_ready()
    found.save(tmp_path / "page.json")
    driver = opened_profile(json.loads((tmp_path / "page.json").read_text("utf-8")))
    for screen in SCREENS:
        go(driver, screen=screen, pick="line:0")
        assert texts(driver, ".body")[0], screen
    assert "return jnp.sin(x @ x)" in "".join(texts(driver, ".dock"))
    go(driver, screen="timeline")
    assert drawn(driver) > 1000
