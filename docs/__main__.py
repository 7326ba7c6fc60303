"""Build the site and serve it: `python -m docs`. With `--check`, build it from scratch, check it, and end.

    python -m docs                  # http://localhost:8000, from docs/_build/html
    python -m docs --port 8080
    python -m docs --check          # warnings are errors; links inside the site, its size

It needs the extra `docs`: pip install -e '.[docs]'.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from sphinx.cmd.build import build_main

from docs.builder.links import broken, leads_somewhere
from xlamini import errors
from xlamini.core.errors.error_page import address

HERE = Path(__file__).parent
SITE = HERE / "_build" / "html"
LARGEST = 30 * 10**6
"""Bytes of the whole site."""


def main() -> int:
    """Read the command line, build, then check or serve."""
    parser = argparse.ArgumentParser(prog="python -m docs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="build from scratch, check links and size, and end")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    if given.check:
        shutil.rmtree(SITE.parent, ignore_errors=True)
    options = ["-q", "-W", "--keep-going", "-j", "auto", "-d", str(SITE.parent / "doctrees")]
    status = build_main([*options, str(HERE), str(SITE)])
    if status == 0 and given.check:
        return check()
    return status or serve(given.port)


def check() -> int:
    """The exit status: 1 if a link or the address that an error names leads nowhere, or the site is too large."""
    problems = [f"broken link in {link}" for link in broken(SITE)]
    places = [address(getattr(errors, name)) for name in errors.__all__]
    lost = [place for place in places if not leads_somewhere(SITE / "index.html", place)]
    problems += [f"errors name {place}, which is not there" for place in lost]
    size = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file())
    if size > LARGEST:
        problems.append(f"the site has {size / 1e6:.1f} MB, and may have {LARGEST / 1e6:.0f}")
    print(*problems, f"{len([*SITE.rglob('*.html')])} pages, {size / 1e6:.1f} MB", sep="\n")
    return bool(problems)


def serve(port: int) -> int:
    """Serve the site until Ctrl-C."""
    with ThreadingHTTPServer(("localhost", port), partial(SimpleHTTPRequestHandler, directory=SITE)) as server:
        print(f"http://localhost:{port}")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
