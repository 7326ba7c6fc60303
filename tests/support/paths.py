"""Paths of the repository and of its test data."""
from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
GOLDEN = TESTS / "golden"
SNAPSHOTS = TESTS / "snapshots"
