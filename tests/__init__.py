"""Tests, and the processes that they start, keep no programs among the user's caches."""
from __future__ import annotations

import os
from pathlib import Path

os.environ["XLAMINI_COMPILATION_CACHE_DIR"] = ""
# For processes that are started without this library's variables.
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).parents[1] / ".cache" / "home")
