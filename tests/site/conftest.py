"""The built site, served as `python -m docs` serves it, in a headless Chromium. Skipped where it has not been built."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.inspection.browser.conftest import Driver, driver  # noqa: F401 - a fixture
from tests.support.paths import ROOT

SITE = ROOT / "docs/_build/html"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the site is served."""
    if not (SITE / "index.html").exists():
        pytest.skip("needs the site: python -m docs --check")
    with ThreadingHTTPServer(("localhost", 0), partial(_Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


@pytest.fixture
def opened(address: str, driver: Driver) -> Iterator[Callable[[str], Driver]]:  # noqa: F811
    """Opens a page by its path; at the end, the browser's console may have no warning and no error."""

    def open_page(path: str) -> Driver:
        driver.get(f"{address}/{path}")
        return driver

    yield open_page
    entries = [entry for entry in driver.get_log("browser") if entry["level"] not in ("INFO", "DEBUG")]
    assert [entry["message"] for entry in entries] == []
