"""`python -m xlamini.rules [--markdown]`: the table of primitives and their rules."""

from xlamini.commands.rules import Row as Row
from xlamini.commands.rules import load_vocabulary as load_vocabulary
from xlamini.commands.rules import main as main
from xlamini.commands.rules import rows as rows

if __name__ == "__main__":
    main()
