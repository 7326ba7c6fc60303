"""The site in a browser: a quiet console, a search that finds names, pages that fit a phone, a dark mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.inspection.browser.conftest import Driver, texts, wait

pytestmark = pytest.mark.slow
PAGES = """index start/install start/ten-minutes start/from-jax start/from-numpy start/from-pytorch coming-from-jax
    debugging parallel reference/index reference/flags reference/errors reference/api/xlamini/derivatives
    reference/api/xlamini.numpy reference/api/xlamini.scipy.special inside/contributing
    inside/gradient inside/caches inside/adding inside/benchmarks architecture tutorials/index
    tutorials/derivatives tutorials/from_jaxpr_to_kernel gallery/index _modules/xlamini/numpy/sorting
    genindex""".split()
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}

Open = Callable[[str], Driver]


@pytest.fixture
def phone(driver: Driver) -> Iterator[None]:
    """The screen of a phone."""
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    yield
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens(opened: Open, page: str) -> None:
    driver = opened(f"{page}.html")
    assert texts(driver, "h1")[0]
    assert driver.execute_script("return [...document.images].every(it => it.complete && it.naturalWidth > 0)")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_no_wider_than_a_phone(opened: Open, phone: None, page: str) -> None:
    driver = opened(f"{page}.html")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize(("words", "found"), [
    ("vmap", "xlamini.vmap"),
    ("ShapeError", "xlamini.errors.ShapeError"),
    ("debug_nans", "Flags and environment variables"),
])
def test_search_finds(opened: Open, words: str, found: str) -> None:
    driver = opened(f"search.html?q={words}")
    results = "[...document.querySelectorAll('#search-results li a')]"  # they come in one by one
    wait(driver, f"{results}.some(it => it.textContent.includes({found!r}))")


def test_the_dark_mode_is_dark(opened: Open) -> None:
    driver = opened("index.html")
    darkness = {}
    for _ in range(3):
        driver.execute_script("document.querySelector('.theme-toggle').click()")
        color = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        darkness[driver.execute_script("return document.body.dataset.theme")] = sum(
            int(part) for part in color[color.index("(") + 1 : -1].split(",")[:3]
        )
    assert darkness["dark"] < 200 and darkness["light"] > 700


def test_code_has_a_button_that_copies(opened: Open) -> None:
    driver = opened("start/ten-minutes.html")
    wait(driver, "document.querySelectorAll('button.copybtn').length > 5")


def test_a_name_leads_to_its_source(opened: Open) -> None:
    driver = opened("reference/api/xlamini.numpy/indexing-sorting-searching-sets.html")
    driver.execute_script("document.getElementById('xlamini.numpy.sort').querySelector('a:has(.viewcode-link)').click()")
    wait(driver, "location.pathname.startsWith('/_modules/xlamini/numpy/sorting')")
    assert "def sort" in texts(driver, "#sort")[0]
