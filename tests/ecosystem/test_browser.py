"""The page of `examples/browser`: digits drawn in a real browser are read by a network that xlamini trained.

It needs the environment of the ecosystem, which has jax2onnx, Node, selenium and Chromium; else it is skipped.
"""
from __future__ import annotations

import functools
import http.server
import importlib.util
import shutil
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini.numpy as jnp
from tests.ecosystem import environment
from tests.support.paths import ROOT

GALLERY = ROOT / "examples" / "gallery"
DIGITS: dict[int, list[list[tuple[int, int]]]] = {
    0: [[(150, 60), (105, 90), (95, 150), (105, 205), (150, 230), (190, 205), (200, 150), (190, 90), (150, 60)]],
    1: [[(115, 95), (155, 55), (155, 235)]],
    2: [[(95, 100), (120, 62), (165, 58), (195, 90), (180, 135), (135, 185), (95, 232), (210, 232)]],
    4: [[(165, 55), (95, 165), (215, 165)], [(175, 105), (175, 240)]],
    7: [[(95, 60), (205, 60), (165, 140), (135, 240)]],
}
"""Strokes on a square of 288 points, as somebody draws them."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page, served from its own folder."""
    if not environment.python().exists():
        pytest.skip("no environment: python -m tests.ecosystem.environment makes it")
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    folder = tmp_path_factory.mktemp("page")
    np.savez(folder / "weights.npz", *_weights())
    script = ROOT / "examples" / "browser" / "write_page.py"
    command = [environment.python(), script, folder, "--weights", folder / "weights.npz"]
    subprocess.run(command, check=True, env=environment.variables(), timeout=300)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def _weights() -> list[np.ndarray]:
    """Weights and biases of a network that is trained for a while."""
    pytest.importorskip("sklearn")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(GALLERY))
        spec: Any = importlib.util.spec_from_file_location("deformed_digits", GALLERY / "deformed_digits.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        (images, labels), _ = module.load()
        params, _ = module.train(jnp.asarray(images), jnp.asarray(labels), 800)
    return [np.asarray(array) for layer in params for array in layer]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    paths = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    if None in paths.values():
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = paths["chromium"]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    profile = f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", profile):
        options.add_argument(flag)
    it = webdriver.Chrome(options=options, service=webdriver.ChromeService(paths["chromedriver"]))
    yield it
    it.quit()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "theme"), [(500, "light"), (1100, "dark")])
def test_drawn_digits_are_read(page: str, browser: Any, width: int, theme: str) -> None:
    browser.set_window_size(width, 900)
    preferred = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preferred]})
    browser.get(page)
    _wait(browser, "Draw in the square.")
    read = {digit: _drawn(browser, strokes) for digit, strokes in DIGITS.items()}
    assert read == {digit: f"This is a {digit}." for digit in DIGITS}
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert any("digits.onnx" in name for name in loaded) and all(name.startswith(page) for name in loaded)
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def _drawn(browser: Any, strokes: list[list[tuple[int, int]]]) -> str:
    """What the page says of strokes that a pen draws, whose points are relative to the middle of the square."""
    from selenium.webdriver.common.action_chains import ActionChains

    browser.find_element("id", "clear").click()
    _wait(browser, "Draw in the square.")
    pad = browser.find_element("id", "pad")
    side = pad.size["width"]
    for stroke in strokes:
        points = [(round((x / 288 - 0.5) * side), round((y / 288 - 0.5) * side)) for x, y in stroke]
        actions = ActionChains(browser, duration=5).move_to_element_with_offset(pad, *points[0]).click_and_hold()
        for x, y in points[1:]:
            actions.move_to_element_with_offset(pad, x, y)
        actions.release().perform()
    return _wait(browser, "This is a ")


def _wait(browser: Any, start: str) -> str:
    from selenium.webdriver.support.ui import WebDriverWait

    def text(it: Any) -> str | None:
        found = it.find_element("id", "state").text
        return found if found.startswith(start) else None

    return WebDriverWait(browser, 30, 0.05).until(text)
