"""The pictures on the page of benchmarks, drawn from the last results when the site is built."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from docs.builder.results import COUNTS, GROUPS, RESULTS, last_results, of_group, summary


class Results(SphinxDirective):
    """`{results} kernels`: the picture of one group, and the summary."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        from benchmarks.plot import save_plot  # for this page only: it needs matplotlib

        (group,) = self.arguments
        rows, count = of_group(last_results(RESULTS.read_text()), group), COUNTS.get(group, "time")
        if not rows:
            raise self.error(f"no rows {group!r} in {RESULTS}; the groups are {', '.join(GROUPS)}")
        self.env.note_dependency(str(RESULTS))
        save_plot(str(Path(self.env.srcdir, "inside", f"results-{group}.png")), rows, count)
        return self.parse_text_to_nodes(f"![{count} of xlamini by that of JAX](results-{group}.png)\n\n{summary(rows)}")
