"""examples/parallel/train.py: each way to split the training step over eight devices gives one device's losses."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

SCRIPT = ROOT / "examples" / "parallel" / "train.py"


@pytest.mark.slow
def test_each_way_equals_one_device() -> None:
    command = [sys.executable, str(SCRIPT), "--steps", "4"]
    environment = {**os.environ, "XLAMINI_NUM_CPU_DEVICES": "8", "PYTHONPATH": str(SCRIPT.parent.parent.parent)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.count("on 8 devices") == 4
