"""`python -m xlamini doctor --report`: what an issue needs, and nothing that tells whose machine it is."""
from __future__ import annotations

import getpass
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import xlamini
from xlamini.doctor import sharing
from xlamini.doctor.sharing import without_names

ROOT = Path(__file__).parents[2]


@pytest.fixture
def a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's machine, with a home folder and secrets."""
    monkeypatch.setenv("HOME", "/users/ada")
    monkeypatch.setenv("HUB_TOKEN", "hf_abcdef123")
    monkeypatch.setattr(socket, "gethostname", lambda: "engine.example.org")
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")


HIDDEN = {
    "a home folder": ("folder  /users/ada/.cache/xlamini", "folder  ~/.cache/xlamini"),
    "another folder of the user": ("folder  /data/ada/programs", "folder  /data/<user>/programs"),
    "a host": ("connects to engine.example.org:80", "connects to <host>:80"),
    "its short name": ("engine: no answer", "<host>: no answer"),
    "a token": ("flag --key=hf_abcdef123", "flag --key=<hidden>"),
    "credentials": ("https://ada:pass@example.org/x", "https://<hidden>@example.org/x"),
    "an address": ("  JAX_COORDINATOR_ADDRESS  10.0.0.7:99", "  JAX_COORDINATOR_ADDRESS  (set)"),
    "no part of a word": ("Canada adagio engines", "Canada adagio engines"),
}


@pytest.mark.usefixtures("a_machine")
@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_hidden(name: str) -> None:
    text, shown = HIDDEN[name]
    assert without_names(text) == shown
    assert sharing.for_an_issue(text) == f"```text\n{shown}\n```"


@pytest.mark.full
def test_a_report_for_an_issue(tmp_path: Path) -> None:
    home = tmp_path / "home-of-somebody"
    home.mkdir()
    secret = {"MY_PASSWORD": "open-sesame", "JAX_COORDINATOR_ADDRESS": "secret-host:1", "EDITOR": "some-editor"}
    matters = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLAMINI_COMPILATION_CACHE_DIR": f"{home}/programs"}
    environment = {**os.environ, **secret, **matters, "HOME": str(home), "USER": "somebody", "LOGNAME": "somebody"}
    command = [sys.executable, "-m", "xlamini", "doctor", "--report", "--platform", "cpu"]
    ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    text = ran.stdout
    for word in (xlamini.__version__, "jaxlib", "XLA_PYTHON_CLIENT_PREALLOCATE", "cpu", "programs run on"):
        assert word in text
    for word in (str(home), "open-sesame", "secret-host", "some-editor", "EDITOR", "somebody", socket.gethostname()):
        assert word not in text
    assert "~/programs" in text and text.startswith("```text\n")
