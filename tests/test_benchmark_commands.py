"""The commands that record and draw the results of the benchmarks."""

from __future__ import annotations

import pytest

from benchmarks.records import newest

pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

from benchmarks.__main__ import parse_args
from benchmarks.growth import curves


def test_a_smoke_test_is_not_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_args(["--record", "quiet"]).record == "quiet"
    with pytest.raises(SystemExit):
        parse_args(["--record", "quiet", "--quick"])
    assert "--record is for full runs; leave out --quick" in capsys.readouterr().err


def test_the_newest_rows_of_scale_are_curves() -> None:
    panels = curves(newest())
    assert {"trace + lower: an equation|equations", "call: a leaf|leaves"} <= panels.keys()
    assert [size for size, _ in panels["call: a leaf|leaves"]["jax"]] == [10, 100, 1_000, 10_000, 100_000]
