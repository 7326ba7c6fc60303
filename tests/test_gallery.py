"""The programs of the gallery, in a short run: their numbers lie where they should, and their pictures are drawn."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.paths import ROOT

GALLERY = ROOT / "examples" / "gallery"
PROGRAMS = sorted(p.stem for p in GALLERY.glob("*.py") if p.stem != "frame")


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    """A program of the gallery by name; its folder is on the path, as it is when a script runs."""
    monkeypatch.syspath_prepend(GALLERY)

    def load(name: str) -> ModuleType:
        spec: Any = importlib.util.spec_from_file_location(f"gallery_{name}", GALLERY / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.mark.full
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_quick_run_gives_the_numbers_expected_and_a_picture(name: str, load, tmp_path: Path) -> None:
    frame, program = load("frame"), load(name)
    numbers, draw = program.run(True)
    assert not frame.outside(numbers, program.EXPECTED_QUICK)
    frame.save(draw, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_numbers_out_of_range_are_named(load) -> None:
    outside = load("frame").outside
    assert outside({"a": 1.0, "b": float("nan")}, {"a": (0, 2), "b": (0, 2)}) == [
        "b is nan, expected between (0, 2)"
    ]
    assert "expected were ['a', 'b']" in outside({"a": 1.0}, {"a": (0, 2), "b": (0, 2)})[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_short_and_has_a_place_in_the_docs(name: str) -> None:
    source = (GALLERY / f"{name}.py").read_text()
    assert 60 <= len(source.splitlines()) <= 200
    assert f"examples/gallery/{name}.py" in (ROOT / "docs" / "gallery" / "index.md").read_text()


def test_every_program_says_what_a_long_run_should_give(load) -> None:
    programs: list[ModuleType] = [load(name) for name in PROGRAMS]
    assert all(program.EXPECTED.keys() == program.EXPECTED_QUICK.keys() for program in programs)


def test_every_legend_is_told_its_place() -> None:
    """Where it is not, matplotlib searches for the emptiest corner, and on a busy machine warns that this took long."""
    folders = [ROOT / name for name in ("benchmarks", "docs", "examples", "xlamini")]
    lines = [line for folder in folders for file in folder.rglob("*.py") for line in file.read_text().splitlines()]
    legends = [line for line in lines if ".legend(" in line]
    assert legends and not [line for line in legends if "loc=" not in line]
