"""The first page on a phone and on a laptop, light and dark: nothing is missing, nothing is cut, nothing complains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from tests.inspection.browser.conftest import Driver, texts
from tests.site.test_site import PHONE, Open

pytestmark = pytest.mark.slow
LAPTOP = {"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": False}
Screen = dict[str, Any]
SCREENS: dict[str, Screen] = {"phone": PHONE, "laptop": LAPTOP}
CUT = """return [...document.querySelectorAll("article *")]
    .filter(it => it.clientWidth && it.scrollWidth > it.clientWidth + 1).map(it => it.outerHTML)"""
SHOWN = """return [...document.querySelectorAll(".picture-of-inspect img")]
    .filter(it => it.offsetWidth).map(it => [it.src.split("/").pop(), it.complete && it.naturalWidth > 0])"""

FAINT = """
    const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
    const linear = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const behind = (it) => {
        const color = it ? numbers(getComputedStyle(it).backgroundColor) : [255, 255, 255];
        return color[3] === 0 ? behind(it.parentElement) : color;
    };
    const contrast = (it) => {
        const both = [light(numbers(getComputedStyle(it).color)), light(behind(it))];
        return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
    };
    const written = (it) => [...it.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    return [...document.querySelectorAll("article *")]
        .filter((it) => written(it) && it.offsetWidth && contrast(it) < 4.5)
        .map((it) => [it.textContent, contrast(it)]);
"""
"""The texts of the page that WCAG's level AA calls too faint for small letters, with their contrasts."""


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest, driver: Driver) -> Iterator[str]:
    """What the reader's system prefers."""
    feature = {"name": "prefers-color-scheme", "value": request.param}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    yield request.param
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.fixture(params=SCREENS)
def screen(request: pytest.FixtureRequest, driver: Driver) -> Iterator[Screen]:
    """Its width and height."""
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SCREENS[request.param])
    yield SCREENS[request.param]
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture
def page(opened: Open, driver: Driver, screen: Screen, scheme: str) -> Driver:
    """The first page, as somebody sees it who has never chosen a mode."""
    opened("index.html")
    driver.execute_script("localStorage.clear()")
    return opened("index.html")


def test_nothing_is_cut(page: Driver, screen: Screen) -> None:
    assert page.execute_script("return document.documentElement.scrollWidth") <= screen["width"]
    assert page.execute_script(CUT) == []


def test_the_picture_is_that_of_the_mode(page: Driver, scheme: str) -> None:
    assert page.execute_script(SHOWN) == [[f"inspect-{scheme}.webp", True]]
    assert page.execute_script("return [...document.images].every(it => it.complete && it.naturalWidth > 0)")


def test_the_program_is_beside_its_code_where_there_is_room(page: Driver, screen: Screen) -> None:
    code, program = page.execute_script(
        "return [...document.querySelectorAll('.beside pre')].map(it => it.getBoundingClientRect().toJSON())"
    )
    if screen is LAPTOP:
        assert program["left"] >= code["right"] and program["bottom"] >= code["bottom"]
        assert page.execute_script("return document.querySelector('.evidence').getBoundingClientRect().bottom") <= 900
    else:
        assert program["left"] == code["left"] and program["top"] >= code["bottom"]


def test_text_can_be_read(page: Driver) -> None:
    assert page.execute_script(FAINT) == []


def test_the_doors_are_open(opened: Open) -> None:
    driver = opened("index.html")
    assert len(texts(driver, ".doors li")) == 10
    doors = driver.execute_script("return [...document.querySelectorAll('.doors a, .landing a')].map(it => it.href)")
    assert {urlopen(door).status for door in doors} == {200}
