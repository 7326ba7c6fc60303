"""Exports for other viewers: what they contain, how large they may be, and hostile names."""
from __future__ import annotations

import itertools
import json
import re

import pytest

from tests.inspection import reports
from xlamini.inspection import exports


def test_dot_has_the_neighbours_their_edges_and_a_box_for_a_scope() -> None:
    text = exports.dot(reports.report(), "tanh#e1")
    assert 'n10 [label="tanh#e1\\nf32[8,4]\\ntrain.py:5", penwidth=3];' in text
    assert "n9 -> n10;" in text and "n10 -> n11;" in text
    assert 'label="model";' in text and text.count("subgraph") == 1
    assert not re.search(r"\bn[0-8] ", text)  # rows of other stages


def test_dot_has_at_most_sixty_nodes() -> None:
    rows = [reports.equation(1, f"v{i}:f32[] = sin v", 5, [i - 1] if i else [], number=i) for i in range(200)]
    report = {**reports.report(), "equations": reports.table(rows), "final": 1}
    text = exports.dot(report, 100)
    assert text.count("[label=") == 60 and "n100 [" in text and "n71 [" in text and "n0 [" not in text


def test_names_in_dot_are_quoted() -> None:
    report = reports.report()
    report["equations"]["label"][14] = 'a"]; n1 -> n2; "\\'
    assert r'label="a\"]; n1 -> n2; \"\\\nf32[16,4]' in exports.dot(report)


def test_a_report_without_equations_is_an_empty_graph() -> None:
    report = {**reports.report(), "final": None}
    assert exports.dot(report) == "digraph xlamini {\n  node [shape=box];\n}"


def test_model_explorer_has_a_graph_for_each_jaxpr() -> None:
    found = exports.model_explorer(reports.report())
    assert [(g["id"], len(g["nodes"])) for g in found["graphs"]] == [
        ("loss: traced (stage 1)", 4), ("loss: linearize (stage 2)", 5), ("step: transpose (stage 3)", 8),
    ]  # fmt: skip
    node = found["graphs"][2]["nodes"][4]
    assert (node["label"], node["namespace"]) == ("mul", "model")
    assert [edge["sourceNodeId"] for edge in node["incomingEdges"]] == ["12", "11"]
    assert {"key": "line", "value": "train.py:5  h = jnp.tanh(x @ w)"} in node["attrs"]
    assert json.dumps(found, allow_nan=False)


def test_perfetto_lays_phases_and_kernels_one_after_another() -> None:
    events = exports.perfetto(reports.report())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    kernels = "kernels of here: lower bound", "kernels of tpu:v5e:2x2: without times"
    assert names == {0: "compilation", 1: kernels[0], 2: kernels[1]}
    slices = [e for e in events if e["ph"] == "X" and e["pid"] == 1]
    assert [e["name"] for e in slices] == ["dot.1", "fusion.2", "copy.3", "fusion.4"]
    assert slices[1]["ts"] == pytest.approx(0.022, abs=1e-3) and slices[1]["dur"] == pytest.approx(0.016)
    assert slices[1]["args"]["lines"] == "train.py:5, train.py:6"
    phases = {e["name"]: e["dur"] for e in events if e["ph"] == "X" and e["pid"] == 0}
    assert phases["loss: traced"] == pytest.approx(2100) and phases["compile for here"] == pytest.approx(41_000)


def test_slices_do_not_overlap_in_whole_nanoseconds() -> None:
    report = reports.report()
    seconds = [1e-9 * (500.6 + i / 7) for i in range(500)] + [1e-13] * 3
    kernels = [reports.kernel(f"k{i}", "dot", "f32[]", [], seconds=s) for i, s in enumerate(seconds)]
    report["targets"][0]["kernels"] = kernels
    slices = [e for e in exports.perfetto(report)["traceEvents"] if e["ph"] == "X" and e["pid"] == 1]
    assert len(slices) == len(seconds)
    for cut in (int, round):
        spans = [(cut(1000 * e["ts"]), cut(1000 * e["dur"])) for e in slices]
        assert all(start + length <= after for (start, length), (after, _) in itertools.pairwise(spans))
