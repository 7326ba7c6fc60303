"""What turns the pages and the docstrings into a site."""
