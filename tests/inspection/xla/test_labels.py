"""Labels in XLA's op names, and the rules by which other instructions inherit them."""
from __future__ import annotations

import pytest

from tests.inspection.xla.texts import loop
from xlamini.inspection.xla.hlo import Module, label_of, labels_of
from xlamini.inspection.xla.labels import Labelling


@pytest.mark.parametrize(
    ("op_name", "label"),
    [
        ("jit(f)/tanh#e0.2", "tanh#e0.2"),
        ("jit(f)/jit#e8/jit(f)/body/block/add#e0.0.2", "add#e0.0.2"),
        ("jit(f)/branch_0_fun/sin#e5.branch_0.1", "sin#e5.branch_0.1"),
        ("jit(f)/scope/body/mul#e5.branch_1.1.body.0", "mul#e5.branch_1.1.body.0"),
        ("jit(f)/while#e5/cond/tanh#e5.cond", "while#e5"),
        ("jit(f)/sort#e3/comparator", "sort#e3"),
        ("jit(f)/a scope with \"quotes\"\nand lines/tanh#e0", "tanh#e0"),
        ("jit(f)/</script>/tanh#e0", "tanh#e0"),
        ("jit(f)/tanh#e", ""),
        ("jit(f)/tanh#e0x", ""),
        ("Arg_1.1", ""),
        ("", ""),
    ],
)
def test_labels(op_name: str, label: str) -> None:
    assert label_of(op_name) == label
    assert labels_of(op_name) == ((label,) if label else ())


def test_joined_names() -> None:
    assert labels_of("jit(f)/mul#e10;jit(f)/broadcast_in_dim#e9;jit(f)/mul#e10") == ("mul#e10", "broadcast_in_dim#e9")
    assert labels_of("jit(f)/cond/(dot#e5.cond.1:sin#e5.cond.2)") == ("dot#e5.cond.1", "sin#e5.cond.2")
    assert labels_of("jit(f)/;no label;jit(f)/sin#e1") == ("sin#e1",)


@pytest.mark.parametrize(
    ("computation", "name", "own", "labels"),
    [
        ("ENTRY", "sin_e0.1", ("sin#e0",), ("sin#e0",)),
        ("body", "tanh_fusion", ("tanh#e1.1", "mul#e1.0"), ("tanh#e1.1", "mul#e1.0")),  # inside, the result's first
        ("ENTRY", "copy.1", (), ("sin#e0",)),  # of what it moves
        ("body", "next", (), ("scan#e1",)),  # of the loop
        ("condition", "less", (), ("scan#e1",)),
    ],
)
def test_rules(computation: str, name: str, own: tuple[str, ...], labels: tuple[str, ...]) -> None:
    module, labelling = loop()
    around = module.computations[computation]
    each = around.instructions[name]
    assert (labelling.own(around, each), labelling.of(around, each)) == (own, labels)


def test_what_is_made_for_an_equation_has_its_label() -> None:
    text = """HloModule f, is_scheduled=true

ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %zero = f32[] constant(0)
  %all = f32[4]{0} broadcast(%zero), dimensions={}
  %start = (f32[4]{0:S(1)}, f32[4]{0}, u32[]) copy-start(%a)
  %done = f32[4]{0:S(1)} copy-done(%start)
  %add = f32[4]{0} add(%done, %all), metadata={op_name="jit(f)/add#e0"}
  %idle = f32[4]{0} negate(%a)
  ROOT %t = (f32[4]{0}, f32[4]{0}) tuple(%add, %idle)
}
"""
    module = Module(text)
    labelling, entry = Labelling(module), module.computations["ENTRY"]
    found = {name: labelling.of(entry, each) for name, each in entry.instructions.items()}
    assert [found[name] for name in ("all", "start", "done")] == [("add#e0",)] * 3
    assert labelling.coverage() == (5, 4, ("idle",))


def test_lines_have_the_labels_of_their_instructions() -> None:
    module, labelling = loop()
    lines = labelling.of_lines(len(module.lines))
    found = {module.lines[i].split("=")[0].strip(): labels for i, labels in enumerate(lines) if labels}
    assert found["%copy.1"] == ("sin#e0",) and found["ROOT %tanh.1"] == ("tanh#e1.1",)
    assert "%zero" not in found


def test_places_and_times() -> None:
    module, _ = loop()
    entry, body = module.computations["ENTRY"], module.computations["body"]
    assert module.place(entry.instructions["sin_e0.1"]) == "/users/me/f.py:7"
    assert (entry.times, body.times) == (1, 20)
    assert [each.name for _, each in module.ordered()][:4] == ["Arg_0.1", "zero", "sin_e0.1", "copy.1"]
