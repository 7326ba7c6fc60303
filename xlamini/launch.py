"""`python -m xlamini.launch -n 4 script.py args...`: launch a multi-process (SPMD) program on this machine."""

import sys

from xlamini.commands.launch import main as main
from xlamini.runtime.command_line import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
