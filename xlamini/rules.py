"""`python -m xlamini.rules [--markdown]`: the table of primitives, their rules and facets."""

import sys

from xlamini.commands.rules import Row as Row, load_vocabulary as load_vocabulary, main as main, rows as rows
from xlamini.runtime.command_line import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
