"""Tests of this folder need 8 devices, which tests/conftest.py asks for on a CPU."""
from __future__ import annotations

import xlamini

collect_ignore_glob = ["test_*.py"] if xlamini.device_count() < 8 else []
