"""`python -m xlamini.launch -n 4 script.py args...`: several processes on this machine that compute together."""

import sys

from xlamini.commands.launch import main as main
from xlamini.runtime.command_line import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
