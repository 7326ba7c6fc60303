"""Limits: what they mean, which of them are broken, whose line moved, and errors in how they are written."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.inspection import reports
from xlamini.errors import ReportFormatError
from xlamini.inspection.limits import check, parse_limit


@pytest.mark.parametrize(("limits", "holds"), [
    ({"peak": "<=2KiB"}, True),
    ({"peak": "<2048"}, False),
    ({"peak": "<2.1KB"}, True),
    ({"peak": "==2048B"}, True),
    ({"temporaries": ">1KiB"}, False),
    ({"temporaries": ">=1 KiB"}, True),
    ({"flops": "<2.1K"}, True),
    ({"flops": "<1e3"}, False),
    ({"bytes": "<4KB"}, True),
    ({"kernels": "<=4"}, True),
    ({"kernels": "<4"}, False),
    ({"collectives": "==0"}, True),
    ({"equations": "<=8"}, True),
    ({"equations": "==9"}, False),
    ({"seconds": "<1us"}, True),
    ({"seconds": "<50ns"}, False),
    ({"peak": "<1GiB", "kernels": "<4"}, False),
    ({"kernels": ">=4,<=4"}, True),
    ({"kernels": "<=4, <4"}, False),
])  # fmt: skip
def test_limit(limits: dict[str, str], holds: bool) -> None:
    assert bool(check(reports.report(), targets=["here"], **limits)) is holds


@pytest.mark.parametrize(("limits", "holds"), [
    ({"flops": "+30%"}, False),  # 2080 -> 2720 is 30.8 % more
    ({"flops": "+31%"}, True),
    ({"flops": "+640"}, True),
    ({"flops": "+639"}, False),
    ({"bytes": "-20%"}, True),
    ({"bytes": "-25%"}, False),
    ({"kernels": "-1"}, True),
    ({"kernels": "-2"}, False),
    ({"collectives": "+0"}, True),
    ({"peak": "+0"}, False),
    ({"peak": "+256B"}, True),
    ({"peak": "+12.5%"}, True),
    ({"equations": "+1"}, True),
])  # fmt: skip
def test_limit_beside_an_earlier_report(limits: dict[str, str], holds: bool) -> None:
    assert bool(check(reports.changed(), reports.report(), targets=["here"], **limits)) is holds


@pytest.mark.parametrize(("limit", "holds"), [
    ("<0.8ms", False),
    ("<0.89ms", False),  # the lower quartile of the calls
    ("<=0.91ms", True),
    ("<0.95ms", True),  # the median is more
    (">1.1ms", True),
    (">1.2ms", False),
    ("==1.1ms", True),
    ("==1.3ms", False),
])  # fmt: skip
def test_a_measured_time_breaks_a_limit_beyond_the_spread_only(limit: str, holds: bool) -> None:
    found = check(reports.measured(), time=limit)
    assert [o.target for o in found.outcomes] == ["here"] and bool(found) is holds


@pytest.mark.parametrize(("limit", "holds"), [
    ("+16%", False),  # 0.9 to 1.2 ms before, 1.4 to 1.7 ms after: 16.7 % at least
    ("+17%", True),
    ("+0.2ms", True),
    ("+0.1ms", False),
    ("-10%", False),
])  # fmt: skip
def test_a_measured_time_beside_an_earlier_one(limit: str, holds: bool) -> None:
    assert bool(check(reports.slower(), reports.measured(), time=limit)) is holds
    assert check(reports.measured(), reports.measured(), time="+0")
    assert check(reports.measured(), reports.slower(), time=limit)


def test_a_broken_limit_on_time_says_the_spread_and_the_line() -> None:
    found = check(reports.slower(), reports.measured(), time="+5%")
    assert (
        "time +5% is broken for here: it is 1.5 ms (half of the calls took 1.4 ms to 1.7 ms), and was 1 ms (+50 %)"
    ) in repr(found)
    mover = found.outcomes[0].mover
    assert mover is not None and mover.place.line == 5


def test_limits_on_time_need_a_measurement() -> None:
    with pytest.raises(ValueError, match=r"time is the measured time of a call; inspect with measure=True"):
        check(reports.report(), time="<1s")
    found = check(reports.measured(), reports.report(), time="+5%")
    assert not found and "the earlier report has no time for here; inspect it with measure=True" in repr(found)
    assert found.broken[0].mover is None
    found = check(reports.measured(), time="<1s", targets=["here", "tpu:v5e:2x2"])
    assert [bool(o.why) for o in found.outcomes] == [False, True]
    assert check(reports.measured(), targets=["here"], seconds="<86ns")  # the predicted time, as without measurement


def test_what_is_not_known_breaks_a_limit_and_says_why() -> None:
    found = check(reports.report(), peak="<1TiB")
    assert [(o.target, bool(o.why)) for o in found.outcomes] == [("here", False), ("tpu:v5e:2x2", True)]
    assert "not known: its compiler is missing: pip install libtpu" in repr(found) and not found


@pytest.mark.parametrize("quantity", ["peak", "temporaries", "flops", "bytes", "kernels", "collectives", "seconds"])
def test_no_quantity_of_a_failed_compilation_passes(quantity: str) -> None:
    found = check(reports.failed(), **{quantity: ">=0"})
    assert not found and "lower failed: TypeError: no rule" in repr(found)


def test_a_report_without_targets_breaks_limits_on_targets_only() -> None:
    report = {**reports.report(), "targets": []}
    assert not check(report, kernels=">=0") and check(report, equations="<=8")


def test_a_target_that_the_earlier_report_lacks_breaks_relative_limits_only() -> None:
    before = reports.report()
    before["targets"][0]["name"] = "elsewhere"
    assert check(reports.report(), before, targets=["here"], flops="<3K")
    found = check(reports.report(), before, targets=["here"], flops="+5%")
    assert not found and "the earlier report has no flops for here" in repr(found)


def test_the_line_that_moved_most_in_the_direction_of_the_whole() -> None:
    found = check(reports.changed(), reports.report(), targets=["here"], flops="+5%", bytes="+5%", kernels="+0")
    flops, moved, kernels = (outcome.mover for outcome in found.outcomes)
    assert flops is not None and (flops.place.line, flops.before, flops.after) == (7, 0, 672)
    assert moved is not None and (moved.place.line, moved.gain) == (6, -384)  # bytes as a whole fell
    assert kernels is None  # the lost kernel, a copy, had no line


def test_no_line_moved_where_nothing_did() -> None:
    assert check(reports.report(), reports.report(), targets=["here"], flops="+0").outcomes[0].mover is None


def test_without_an_earlier_report_the_line_with_the_most() -> None:
    mover = check(reports.report(), targets=["here"], flops="<1").outcomes[0].mover
    assert mover is not None and (mover.place.line, mover.before, mover.after) == (5, None, 1920)


def test_lines_match_by_number_where_a_report_has_no_source() -> None:
    before = reports.report()
    before["sources"][0]["lines"] = None
    after = reports.report()
    after["equations"]["flops"][12] += 1000  # line 6
    after["targets"][0]["cost"]["flops"] += 1000
    mover = check(after, before, targets=["here"], flops="+5%").outcomes[0].mover
    assert mover is not None and (mover.place.line, mover.gain) == (6, 1000)


def test_table(snapshot: Any) -> None:
    found = check(reports.changed(), reports.report(), peak="<2GiB", flops="+5%", kernels="-1", equations="<=9")
    snapshot("inspect_check", repr(found))


def test_as_dict_is_json() -> None:
    found = check(reports.changed(), reports.report(), targets=["here"], flops="+5%").as_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert not found["ok"] and found["outcomes"][0]["line"]["line"] == 7


def test_an_earlier_report_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "main.json"
    file.write_text(json.dumps(reports.report()))
    assert check(reports.report(), file, targets=["here"], flops="+0")
    file.write_text("<html>")
    with pytest.raises(ReportFormatError, match=r"main\.json is not a report of xlamini\.inspect: it is no JSON"):
        check(reports.report(), str(file), flops="+0")


def test_parts_of_a_limit() -> None:
    assert parse_limit("peak", "<14GiB").number == 14 * 2**30
    assert parse_limit("seconds", "<=2.5ms").number == pytest.approx(0.0025)
    assert parse_limit("flops", " -10 % ").percent == -10


@pytest.mark.parametrize(("limits", "message"), [
    ({}, "check: there is no limit; give one such as peak='<14GiB'"),
    ({"peek": "<1"}, r"check: there is no quantity 'peek' \(known: peak, .*\); did you mean peak\?"),
    ({"peak": "14GiB"}, r"check: peak='14GiB' is no limit: it must begin with .*; write '<14GiB', '<=', .*'\+5%'"),
    ({"peak": "<14Gib"}, "peak='<14Gib' is no limit: 'Gib' is no unit of bytes, which are B, KB.*; did you mean GiB"),
    ({"flops": "<3ms"}, "'ms' is no unit of count, which are K, M, G, T, P"),
    ({"flops": "<5%"}, r"% goes with \+ or - only"),
    ({"flops": "<"}, "'' is no number"),
    ({"flops": "+-5%"}, "'-5' is no number"),
    ({"kernels": 12}, "kernels=12 is no limit"),
    ({"flops": "+5%"}, r"check: flops='\+5%' compares with an earlier report; give against="),
    ({"peak": "<1", "targets": ["hare"]}, r"target: the report has no 'hare', .*; did you mean here\?"),
])  # fmt: skip
def test_malformed(limits: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(reports.report(), **limits)
