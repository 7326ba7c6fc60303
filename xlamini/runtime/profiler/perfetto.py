"""Perfetto links: Perfetto's page in the browser fetches the trace from a server on this machine."""
from __future__ import annotations

import functools
import http.server
import sys
from pathlib import Path
from typing import Any

PAGE, PORT = "https://ui.perfetto.dev", 9001  # the one port that the page may fetch from


class _Once(http.server.SimpleHTTPRequestHandler):
    """A request handler that serves one folder to Perfetto's page."""

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", PAGE)
        super().end_headers()

    def do_GET(self) -> None:
        super().do_GET()
        self.server.last = self.path  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: Any) -> None:
        """No log of requests."""


def show(file: Path, port: int = PORT) -> None:
    """Print the link, and serve the file until it has been fetched."""
    handler = functools.partial(_Once, directory=str(file.parent))
    with http.server.HTTPServer(("127.0.0.1", port), handler) as server:
        server.last = None  # type: ignore[attr-defined]
        address = f"http://127.0.0.1:{server.server_port}/{file.name}"
        print(f"Open the trace: {PAGE}/#!/?url={address}", file=sys.stderr, flush=True)
        while server.last != f"/{file.name}":  # type: ignore[attr-defined]
            server.handle_request()
