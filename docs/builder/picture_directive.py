"""The directive `{picture}`: a session of Python as code, and the picture that it draws, light and dark."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from docs.builder.pictures import FENCE, MODES

ROOT = Path(__file__).resolve().parent.parent.parent


class Picture(SphinxDirective):
    """`{picture} WHAT IT SHOWS`, around a session; `docs.builder.pictures` draws it."""

    required_arguments, final_argument_whitespace, has_content = 1, True, True

    def run(self) -> list[nodes.Node]:
        page = Path(self.env.doc2path(self.env.docname))
        text = page.read_text()
        number = [found[1] for found in FENCE.finditer(text)].index(self.arguments[0])
        content = "\n".join(self.content)
        folder = Path("_build", "pictures", self.env.docname, _digest(text), str(number))
        self._draw(page, number, Path(self.env.srcdir) / folder)
        code = nodes.literal_block(content, content, language="pycon")
        return [code, *(self._image(folder / f"{mode}.svg", mode) for mode in MODES)]

    def _draw(self, page: Path, number: int, folder: Path) -> None:
        if all((folder / f"{mode}.svg").exists() for mode in MODES):
            return
        command = [sys.executable, "-m", "docs.builder.pictures", str(page), str(number), str(folder)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise self.error(f"the picture of {page.name} could not be drawn:\n{done.stdout}{done.stderr}")

    def _image(self, path: Path, mode: str) -> nodes.Node:
        return nodes.image(uri=f"/{path}", alt=self.arguments[0], classes=["picture", f"only-{mode}"])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
