"""A headless Chromium that opens pages of reports. Without it, its driver, selenium or Node, the tests are skipped."""
from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from xlamini.inspection.page import page

SAMPLES, PROFILES = (ROOT / "frontend/test" / name for name in ("samples.mjs", "profiles.mjs"))
FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-background-networking --disable-component-update
    --disable-sync --disable-quic --no-first-run --window-size=1280,800""".split()

Driver = Any


@cache
def sample(name: str, maker: Path = SAMPLES) -> dict[str, Any]:
    """A made-up report of `frontend/test/samples.mjs`, or a content of `profiles.mjs`."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node, which makes the sample reports")
    out = subprocess.run([node, str(maker), name], capture_output=True, check=True, text=True)
    return json.loads(out.stdout)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """The browser, for all tests of a process."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    paths = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, path in paths.items() if path is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}")
    options = webdriver.ChromeOptions()
    options.binary_location = paths["chromium"]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(tmp_path_factory.mktemp("downloads"))})
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"]:
        options.add_argument(flag)
    it = webdriver.Chrome(options=options, service=webdriver.ChromeService(paths["chromedriver"]))
    yield it
    it.quit()


@pytest.fixture
def opened(driver: Driver, tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Opens a report, as `opened("mlp", "screen=memory")`; at the end, nothing may be on the browser's console."""

    def open_page(
        report: str | dict[str, Any], fragment: str = "", other: dict[str, Any] | None = None, template: str = "page"
    ) -> Driver:
        file = tmp_path / "report.html"
        file.write_text(page(sample(report) if isinstance(report, str) else report, other, template), "utf-8")
        driver.get("about:blank")
        driver.get(f"{file.as_uri()}#{fragment}")
        wait(driver, "document.querySelector('h1, .missing')")
        return driver

    yield open_page
    assert [entry["message"] for entry in driver.get_log("browser")] == []


def wait(driver: Driver, condition: str) -> Any:
    """Waits until a JavaScript expression is true, and gives its value."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 30, 0.05).until(lambda it: it.execute_script(f"return {condition}"))


def press(driver: Driver, *keys: str) -> None:
    """Types keys as a reader does."""
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(driver).send_keys(*keys).perform()


def texts(driver: Driver, selector: str) -> list[str]:
    """The texts of all elements that a selector finds."""
    script = "return [...document.querySelectorAll(arguments[0])].map(it => it.textContent)"
    return driver.execute_script(script, selector)
