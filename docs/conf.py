"""Sphinx's settings for the site. `python -m docs` builds it; see `docs/builder`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import xlamini  # noqa: E402 - found through the line above
from docs.builder import inventories  # noqa: E402

project, author = "xlamini", "The xlamini authors"
version = release = xlamini.__version__
copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "docs.builder.extension",
]
exclude_patterns = ["_build", "builder", "templates"]
myst_heading_anchors = 4  # links such as `platforms.md#flags` are checked
myst_enable_extensions = ["colon_fence", "deflist"]
intersphinx_mapping = inventories.reachable()

autosummary_generate = False  # `docs.builder.reference` writes a page for each module, with a table of its names
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
add_module_names = False
toc_object_entries = False  # the sidebar of every page would hold every name
python_maximum_signature_line_length = 88

suppress_warnings = ["ref.python"]  # a type in a signature, such as `type`, may be the name of a method too

html_theme = "furo"
html_title, html_favicon = "xlamini", "static/icon.svg"
html_static_path, templates_path = ["static"], ["templates"]
html_css_files = ["site.css", "landing.css"]
html_show_sourcelink = False
html_copy_source = False
pygments_style, pygments_dark_style = "default", "native"  # both can be read: see tests/site/test_first_page.py
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
