"""Lines of HLO text as instructions, as jaxlib 0.10.2 writes them for CPUs, TPUs and GPUs."""
from __future__ import annotations

import pytest

from xlamini.runtime.hlo.computations import ENTRY, computations_of
from xlamini.runtime.hlo.instructions import called_in, instruction, op_name_in, unquoted
from xlamini.runtime.hlo.shapes import bytes_of, elements_of

CPU = (
    "  %ynn_fusion.67 = f32[8,32]{1,0} fusion(%select.1, %constant.37), kind=kCustom, calls=%fused_computation.67, "
    'metadata={op_name="jit(step)/reduce_sum#e271" stack_frame_id=19}, backend_config={"outer_dimension_partitions":[]}'
)
TPU = (
    "  %copy-start.2 = (f32[16,32]{1,0:T(8,128)S(1)}, f32[16,32]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(%Arg_1.1), "
    'backend_config={"flag_configs":[],"window_config":{"estimated_cycles":"1885"},"dma_priority":1}'
)
LOOP = (
    "  ROOT %w = (s32[], /*index=5*/f32[8]{0}) while(%tuple), condition=%above, body=%wide.body.clone, "
    'metadata={op_name="jit(f)/scan#e1" source_file="/users/me/f.py" source_line=7}'
)


def test_a_fusion() -> None:
    found = instruction(CPU, 12)
    assert found is not None
    assert found[:4] == ("ynn_fusion.67", "f32[8,32]{1,0}", "fusion", ("select.1", "constant.37"))
    assert (found.is_root, found.line, found.called) == (False, 12, ("fused_computation.67",))
    assert (found.op_name, found.frame, found.source, found.cycles) == ("jit(step)/reduce_sum#e271", 19, None, None)


def test_a_tpus_copy() -> None:
    found = instruction(TPU)
    assert found is not None
    assert found.type == "(f32[16,32]{1,0:T(8,128)S(1)}, f32[16,32]{1,0:T(8,128)}, u32[]{:S(2)})"
    assert (found.opcode, found.operands, found.cycles) == ("copy-start", ("Arg_1.1",), 1885)


def test_a_loop() -> None:
    found = instruction(LOOP)
    assert found is not None
    assert (found.type, found.operands, found.is_root) == ("(s32[], f32[8]{0})", ("tuple",), True)
    assert (found.called, found.source) == (("above", "wide.body.clone"), ("/users/me/f.py", 7))


@pytest.mark.parametrize(
    ("line", "operands"),
    [
        ("  %t = (f32[2], f32[2]) tuple(%a.1, /*index=5*/%b)", ("a.1", "b")),
        ("  t = f32[2] add(f32[2]{0} %a, f32[2]{0} %b)", ("a", "b")),
        ("  t = (f32[2], (s32[], s32[])) tuple((f32[2], s32[]) %a, f32[2] b)", ("a", "b")),
        ("  %p = f32[2] parameter(0)", ()),
        ("  %c = f32[2,2]{1,0} constant({ { 1, 2 }, { 3, 4 } })", ()),
        ('  %c = u8[4] custom-call(%a), custom_call_target="x(%y, %z)"', ("a",)),
        ("  %i = f32[] iota(), iota_dimension=0", ()),
    ],
)
def test_operands(line: str, operands: tuple[str, ...]) -> None:
    found = instruction(line)
    assert found is not None and found.operands == operands


@pytest.mark.parametrize("line", ["", "}", "HloModule f", '1 "/me/f.py"', "%f (p: f32[]) -> f32[] {"])
def test_lines_without_an_instruction(line: str) -> None:
    assert instruction(line) is None


def test_a_name_in_quotes_is_no_syntax() -> None:
    hostile = r'  %a = f32[] tanh(%b), metadata={op_name="jit(f)/x\", calls=%evil, op_name=\"jit(f)/sin#e9\"/tanh#e0"}'
    found = instruction(hostile)
    assert found is not None and found.called == ()
    assert found.op_name == 'jit(f)/x", calls=%evil, op_name="jit(f)/sin#e9"/tanh#e0'


def test_branches_are_called() -> None:
    assert called_in("conditional(%i, %a, %b), branch_computations={%one, %two}") == ("one", "two")
    assert called_in("conditional(%p, %a, %b), true_computation=%yes, false_computation=%no") == ("yes", "no")
    assert called_in("select-and-scatter(%a), select=%ge, scatter=add.1") == ("ge", "add.1")


def test_escapes() -> None:
    assert unquoted(r'"a\"b\\c\n\303\251"') == 'a"b\\c\né'
    assert unquoted(r'"\377"') == "ÿ"
    assert op_name_in("no metadata") == ""


def test_types() -> None:
    assert bytes_of("(f32[8,4]{1,0:T(8,128)}, pred[3], bf16[2], s32[])") == 128 + 3 + 4 + 4
    nested = "(f32[2]{0:T(8,128)}, (s32[], u32[]), pred[])"
    assert elements_of(nested) == ["f32[2]{0:T(8,128)}", "(s32[], u32[])", "pred[]"]
    assert elements_of("f32[8,4]{1,0}") == ["f32[8,4]{1,0}"] and elements_of("()") == []


def test_computations_know_their_lines() -> None:
    body = "%body (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n"
    text = f"HloModule f\n\n{body}\nENTRY %main () -> f32[] {{\n}}\n"
    assert computations_of(text).starts == {"body": 2, ENTRY: 6}


def test_places_have_the_file_that_the_escapes_stand_for() -> None:
    """XLA writes the bytes of UTF-8 in octal."""
    tables = 'FileNames\n1 "/a/\\303\\251 b.py"\n', "FileLocations\n1 {file_name_id=1 line=7}\n"
    text = "\n".join(["HloModule m\n", *tables, "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n"])
    assert computations_of(text).places == {1: "/a/é b.py:7"}
