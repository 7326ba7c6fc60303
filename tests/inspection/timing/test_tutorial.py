"""The two programs of docs/tutorials/slow_step.md: the first has the findings that the page follows, the other none."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[3] / "docs/tutorials/slow_step.md"


def losses_and_report(folder: Path, program: str) -> tuple[list[float], str]:
    (folder / "train.py").write_text(program)
    command = [sys.executable, "-m", "xlamini", "profile", str(folder / "train.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(line.split()[1]) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.full
@pytest.mark.slow
def test_the_findings_lead_to_the_second_program(tmp_path: Path) -> None:
    slow, fast = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    before, report = losses_and_report(tmp_path, slow)
    assert re.search(r"step \(.*train.py:8\) was compiled 40 times: x is float32\[103,256\]", report)
    assert re.search(r"\b200  .*train.py:18 \(<module>\)", report)
    after, report = losses_and_report(tmp_path, fast)
    assert "Nothing stands out." in report
    assert re.search(r"\b[01]  .*train.py:8 \(step\)", report)
    assert len(after) == 200
    np.testing.assert_allclose(after, before, rtol=1e-5)
