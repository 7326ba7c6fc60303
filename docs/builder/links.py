"""Every link of the built site that stays inside of it leads to a file and, if it names a place, to that."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


class _Page(HTMLParser):
    """The places of a page, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name == "id":
                self.places.add(value)
            elif value and name in ("href", "src"):
                self.links.add(value)


def broken(root: Path) -> Iterator[str]:
    """Each broken link under `root`, as `page: link`."""
    for path in sorted(root.rglob("*.html")):
        for link in sorted(_page(path).links):
            if not urlsplit(link).scheme and not leads_somewhere(path, link):
                yield f"{path.relative_to(root)}: {link}"


def leads_somewhere(path: Path, link: str) -> bool:
    """Whether a link in the page at `path` leads to a file and, if it names a place, to that."""
    address, place = urldefrag(link)
    target = path.parent / unquote(address.partition("?")[0]) if address else path
    if target.is_dir():
        target = target / "index.html"
    if not target.exists():
        return False
    return not place or target.suffix != ".html" or unquote(place) in _page(target.resolve()).places


@cache
def _page(path: Path) -> _Page:
    return _Page(path.read_text())
