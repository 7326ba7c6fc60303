"""The extension of Sphinx that makes the site from pages and docstrings."""
