"""The pictures of `inspect` on the first page, light and dark, of the six lines beside them.

    python -m docs.builder.inspect_pictures    # writes docs/inspect-light.webp and docs/inspect-dark.webp

It needs Chromium and Pillow. Run it when the lines on the page change, or the page of `inspect`.
"""

from __future__ import annotations

import runpy
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

import xlamini
from docs.builder.sessions import parts
from xlamini import numpy as jnp
from xlamini.inspection.page import page

DOCS = Path(__file__).resolve().parent.parent
SCHEMES = {"light": 1, "dark": 0}
"""Chromium's numbers of what a reader prefers."""
WIDTH, HEIGHT, SCALE = 1010, 600, 1.5
LINE = 4
"""The line that is chosen."""
FLAGS = f"""--headless=new --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --virtual-time-budget=4000
    --window-size={WIDTH},{HEIGHT} --force-device-scale-factor={SCALE}""".split()


def main() -> None:
    """Inspect the lines of docs/index.md, and write both pictures."""
    with tempfile.TemporaryDirectory() as folder:
        report = _report(Path(folder, "six_lines.py"))
        shown = Path(folder, "report.html")
        shown.write_text(page(report, None), "utf-8")
        stage = [each["title"] for each in report["stages"]].index("loss: unused equations dropped")
        address = f"{shown.as_uri()}#screen=source&heat=flops&stage={stage}&pick=line:0:{LINE}"
        for name, number in SCHEMES.items():
            _draw(address, number, Path(folder, name), DOCS / f"inspect-{name}.webp")


def _report(file: Path) -> dict[str, Any]:
    session = (DOCS / "index.md").read_text().partition("```{beside}")[2].partition("\n```")[0]
    file.write_text(parts(session)[0])
    slopes = runpy.run_path(str(file))["slopes"]
    report = xlamini.inspect(slopes)(jnp.ones(8)).json()
    for source in report["sources"]:
        source["file"] = file.name  # the folder is gone when somebody sees the picture
    return report


def _draw(address: str, scheme: int, folder: Path, picture: Path) -> None:
    drawn = folder.with_suffix(".png")
    own = [f"--user-data-dir={folder}", f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={drawn}"]
    subprocess.run(["chromium", *FLAGS, *own, address], check=True, capture_output=True)
    few_colors = Image.open(drawn).convert("RGB").quantize(64)  # which is half the bytes
    few_colors.convert("RGB").save(picture, lossless=True, quality=100, method=6)


if __name__ == "__main__":
    main()
