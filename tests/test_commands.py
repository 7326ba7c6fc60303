"""Commands in a shell: a reader that goes early, and variables with slips."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full  # each starts a process

ROOT = Path(__file__).parent.parent
PRINTS = "for i in range(100_000): print('a line that is long enough to fill the pipe', i, flush=True)"


def first_line(*command: str) -> tuple[str, int, str]:
    """What `command | head -n 1` prints, with the command's own exit code and errors."""
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    return line, process.returncode, errors


def test_a_table_ends_quietly_when_nobody_reads_on() -> None:
    line, code, errors = first_line("-m", "xlamini", "rules")
    assert line.startswith("primitive ") and errors == ""
    assert code in (0, 141)


def test_a_command_without_a_reader_has_the_exit_code_of_a_closed_pipe() -> None:
    code = f"from xlamini.runtime.command_line import run_command\ndef main():\n    {PRINTS}\nexit(run_command(main))"
    _, status, errors = first_line("-c", code)
    assert (status, errors) == (141, "")


def test_the_launcher_passes_on_that_nobody_reads(tmp_path: Path) -> None:
    (tmp_path / "prints.py").write_text(PRINTS)
    line, code, errors = first_line("-m", "xlamini.launch", "-n", "1", str(tmp_path / "prints.py"))
    assert line.startswith("[0] a line") and code == 1
    assert "[0] BrokenPipeError" in errors and "Exception in thread" not in errors


def test_the_doctor_reports_variables_with_slips() -> None:
    slips = {"XLAMINI_PLATFROMS": "cpu", "XLAMINI_PREALLOCATE": "maybe"}
    command = [sys.executable, "-m", "xlamini", "doctor", "--platform", "cpu"]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **slips}, cwd=ROOT)
    said = " ".join(run.stdout.split())
    assert run.returncode == 0
    assert "XLAMINI_PLATFROMS is ignored: there is no such flag; did you mean XLAMINI_PLATFORMS" in said
    assert "XLAMINI_PREALLOCATE='maybe' is ignored, and None is used: it takes 1, true, yes or on" in said
    assert said.count("fix: correct the variable, or unset it") == 2
