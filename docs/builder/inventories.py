"""Other projects whose names the site may link to, as far as their inventories can be fetched."""

from __future__ import annotations

from urllib.error import URLError
from urllib.request import urlopen

SITES = {"python": "https://docs.python.org/3/", "numpy": "https://numpy.org/doc/stable/"}
SECONDS = 5


def reachable() -> dict[str, tuple[str, None]]:
    """The value of `intersphinx_mapping`: without a network it is empty, so that the site builds there too."""
    return {name: (address, None) for name, address in SITES.items() if _answers(f"{address}objects.inv")}


def _answers(address: str) -> bool:
    try:
        with urlopen(address, timeout=SECONDS) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False
