"""The pictures on the page of benchmarks, drawn from the newest results when the site is built."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from benchmarks.page import GROUPS, group, summary
from benchmarks.records import FOLDER, newest

COUNTS = {"tpu": "estimated cycles", "gpu": "kernels"}
"""What the pictures show that show no time."""
COLORS = 64
"""Of a picture: the bars have two. All the others that matplotlib draws at edges would take three times the bytes."""


class Results(SphinxDirective):
    """`{results} kernels`: the picture of one group, and the summary."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        from PIL import Image  # for this page only: these need matplotlib, which brings Pillow

        from benchmarks.plot import save_plot

        (name,) = self.arguments
        if name not in GROUPS:
            raise self.error(f"there are no results {name!r}; there are {', '.join(GROUPS)}")
        records, count = group(newest(), name), COUNTS.get(name, "time")
        for path in FOLDER.glob("*.jsonl"):
            self.env.note_dependency(str(path))
        drawn = Path(self.env.srcdir, "inside", f"results-{name}.png")
        save_plot(str(drawn), records, count)
        Image.open(drawn).convert("RGB").quantize(COLORS).save(drawn, optimize=True)
        picture = f"![{count} of xlamini by that of JAX](results-{name}.png)"
        return self.parse_text_to_nodes(f"{picture}\n\n{summary(records)}")
