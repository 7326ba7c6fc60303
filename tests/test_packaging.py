"""What a distribution says of itself: license, types, version, citation."""
from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import xlamini

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_license_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License\n" in text and "Version 2.0, January 2004" in text and len(text) > 10_000
    assert PROJECT["license"] == "Apache-2.0" and PROJECT["license-files"] == ["LICENSE"]


def test_types_are_declared() -> None:
    assert (ROOT / "xlamini/py.typed").exists() and "Typing :: Typed" in PROJECT["classifiers"]


def test_there_is_one_version() -> None:
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == PROJECT["version"] == xlamini.__version__


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with what a release reads, at version 1.2.3, of which the changes are told."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/release", tmp_path / ".ci/release")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.3\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 1.2.3 (May)\n\n- Faster.\n\n## 1.2.2\n\n- Slow.\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "all")
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


def release(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([folder / ".ci/release", *arguments], capture_output=True, text=True, check=False)


def test_notes_are_the_section_of_the_version(checkout: Path) -> None:
    assert release(checkout, "notes").stdout.strip() == "- Faster."


def test_a_release_is_refused(checkout: Path) -> None:
    def refusal() -> str:
        ran = release(checkout, str(checkout / "out"))
        assert ran.returncode == 1 and not (checkout / "out").exists()
        return ran.stderr

    git(checkout, "tag", "v1.2.3")
    assert "no release: there is a tag v1.2.3" in refusal()
    (checkout / "new.py").write_text("")
    assert "no release: the working tree has changes" in refusal()
    (checkout / "pyproject.toml").write_text('version = "1.3.0"\n')
    assert "no release: CHANGELOG.md has no section '## 1.3.0'" in refusal()
