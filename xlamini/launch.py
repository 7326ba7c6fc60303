"""`python -m xlamini.launch -n 4 script.py args...`: several processes on this machine that compute together."""

import sys

from xlamini.commands.launch import main as main

if __name__ == "__main__":
    sys.exit(main())
