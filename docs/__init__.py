"""The documentation: pages in Markdown, built into a site by `python -m docs`."""
