"""What the site makes of the library and of the results: programs of the reference, pictures of benchmarks."""

from __future__ import annotations

import pytest

from docs.builder.jaxprs import ROWS, session
from docs.builder.names import names_of, public_modules
from docs.builder.results import GROUPS, RESULTS, last_results, of_group, summary


@pytest.mark.parametrize("name", ROWS)
def test_a_program_of_the_reference(name: str) -> None:
    module, _, last = name.rpartition(".")
    assert last in names_of(public_modules()[module])
    lines = session(name, getattr(public_modules()[module], last))
    assert lines[0].startswith(">>> print(xlamini.make_jaxpr(") and lines[1].startswith("{ lambda ; ")
    assert 1 < len(lines) <= 25


def test_other_names_have_none() -> None:
    assert session("xlamini.debug.memos", None) == []


# --- results of benchmarks

TABLES = """## 2026-11-24
| what | xlamini | JAX | xlamini / JAX | target |
|---|---|---|---|---|
| 12 layers: trace | 1 ms [1 ms - 2 ms] | 2 ms | 0.50 | <= 0.15 MISSED |
| eager map | 90 µs [88 µs - 94 µs] | 36 ms | 0.00 | |
| neither | - | 2 ms | - | |

| what | old | new | ratio |
|---|---|---|---|
| two commits | 1 ms | 2 ms | 2.00 |

## 2026-11-21
| what | xlamini | JAX | xlamini / JAX |
|---|---|---|---|
| 12 layers: trace | 3 ms | 2 ms | 1.50 |
| kernel: sort | 3 ms | 2 ms | 1.50 |

| program | target | count | xlamini | JAX | ratio |
|---|---|---|---|---|---|
| sort | v5e | cycles | 2,000 | 1,000 | 2.00 |
"""


def test_the_newest_row_of_each_name_counts() -> None:
    ratios = {row.what: row.ratio("xlamini", "jax") for row in last_results(TABLES)}
    assert ratios == {"12 layers: trace": 0.5, "eager map": pytest.approx(1 / 400), "kernel: sort": 1.5, "sort, v5e": 2}
    assert [row.target for row in last_results(TABLES)] == [0.15, None, None, None]


def test_the_summary_says_what_is_slower() -> None:
    assert summary(last_results(TABLES)) == (
        "2 of 4 are at most 1.02 of JAX. Above it: sort, v5e 2.00; kernel: sort 1.50."
    )


def test_each_picture_has_rows() -> None:
    rows = last_results(RESULTS.read_text())
    assert len(rows) > 300
    assert [group for group in GROUPS if len(of_group(rows, group)) < 10] == []
