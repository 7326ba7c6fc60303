"""Collectives are read from the text of HLO as the compilers of GPUs and TPUs write it."""

# ruff: noqa: E501 - lines of the compilers

from __future__ import annotations

from xlamini.runtime.hlo.collectives import HloCollective, collectives_of

TPU = """HloModule jit_step, is_scheduled=true

FileNames
1 "/users/me/train.py"

FunctionNames
1 "jit(step)/dot_general#e5"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=0 end_column=0}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

%all-reduce-scatter (input: bf16[512,512]) -> bf16[128,512] {
  %all-reduce.3 = bf16[512,512]{1,0} all-reduce(%input), channel_id=11, replica_groups={{0,1,2,3}}, to_apply=%add
  ROOT %dynamic-slice.7 = bf16[128,512]{1,0} dynamic-slice(%all-reduce.3, %x, %y), dynamic_slice_sizes={128,512}
}

%start (p: bf16[128,512]) -> bf16[512,512] {
  %all-gather.26 = bf16[512,512]{1,0} all-gather(%p), channel_id=4, replica_groups=mesh['a'=2,'b'=4] {'b'}, metadata={op_name="Arg_1.1"}
}

%done (p: bf16[128,512]) -> bf16[512,512] {
  %all-gather.28 = bf16[512,512]{1,0} all-gather(%p), channel_id=4, replica_groups=mesh['a'=2,'b'=4] {'b'}, metadata={op_name="Arg_1.1"}
}

%condition (s: (s32[], f32[8])) -> pred[] {
  %n = s32[] constant(12)
  ROOT %less = pred[] compare(%i, %n), direction=LT
}

%body (s: (s32[], f32[8])) -> (s32[], f32[8]) {
  %all-to-all = (f32[2,3]{1,0}, f32[2,3]{1,0}) all-to-all(%u, %v), channel_id=8, replica_groups=[4,2]<=[8]
}

ENTRY %main (a: bf16[128,512]) -> bf16[128,512] {
  %s = bf16[512,512]{1,0} fusion(%a), kind=kOutput, calls=%start
  %d = bf16[512,512]{1,0} fusion(%s), kind=kOutput, calls=%done
  %fusion = bf16[128,512]{1,0} fusion(%d), kind=kCustom, calls=%all-reduce-scatter, metadata={op_name="jit(step)/dot_general#e5" stack_frame_id=1}
  %loop = (s32[], f32[8]) while(%t), condition=%condition, body=%body
}
"""

GPU = """HloModule jit_f

ENTRY %main.1 (p: f32[4,8]) -> f32[4,8] {
  %ags = (f32[4,8]{1,0}, f32[16,8]{1,0}) all-gather-start(%p), channel_id=1, replica_groups={{0,1,2,3}}, metadata={op_name="jit(f)/mul#e0" source_file="/users/me/f.py" source_line=3}
  %agd = f32[16,8]{1,0} all-gather-done(%ags)
  %permuted = f32[4,8]{1,0} collective-permute(%p), channel_id=2, source_target_pairs={{0,1},{1,2},{2,0}}
}
"""


def test_a_tpus() -> None:
    found = {c.kind: c for c in collectives_of(TPU)}
    assert found["all-gather"] == HloCollective("all-gather", 512 * 512 * 2, 1, 4, "Arg_1.1", "", "all-gather.26")
    assert found["reduce-scatter"].line == "/users/me/train.py:7"
    assert found["reduce-scatter"].bytes == 512 * 512 * 2
    assert found["all-to-all"] == HloCollective("all-to-all", 48, 12, 2, "", "", "all-to-all")
    assert len(found) == 3


def test_a_gpus() -> None:
    gathered, permuted = collectives_of(GPU)
    assert gathered == HloCollective("all-gather", 16 * 8 * 4, 1, 4, "jit(f)/mul#e0", "/users/me/f.py:3", "ags")
    assert (permuted.kind, permuted.group) == ("collective-permute", 3)


def test_every_dtype_has_a_size() -> None:
    shapes = {"pred[8]": 8, "s4[8]": 8, "u32[]": 4, "bf16[2,3]": 12, "f8e4m3fn[8]": 8, "c64[8]": 64, "c128[2]": 32}
    line = "  %r = {}{{0}} all-reduce(%p), channel_id=1, replica_groups={{{{0,1}}}}, to_apply=%add"
    text = "ENTRY %main (p: f32[]) -> f32[] {{\n{}\n}}\n"
    assert {shape: collectives_of(text.format(line.format(shape))).bytes for shape in shapes} == shapes


def test_the_table_begins_with_the_largest() -> None:
    lines = str(collectives_of(TPU)).splitlines()
    assert lines[0] == "3 collectives, 1.05 MB on each device in a call"
    assert lines[-1].split() == ["all-to-all", "48", "B", "x", "12", "among", "2"]


def test_arguments_are_named() -> None:
    gathered = next(c for c in collectives_of(TPU) if c.kind == "all-gather")
    assert gathered.named(["x", "params['w']"]).op == "the argument \"params['w']\""


def test_none() -> None:
    assert str(collectives_of("ENTRY %main (p: f32[]) -> f32[] {\n}\n")) == "no collectives"


def test_calls_of_calls_are_counted() -> None:
    """Each computation is read once, however many ways lead to it."""
    gather = "%r = f32[2] all-gather(%p), channel_id=1, replica_groups={{0,1}}"
    calls = [f"  %a = f32[2] call(%p), to_apply=%f{i}\n  %b = f32[2] call(%a), to_apply=%f{i}" for i in range(60)]
    bodies = [f"%f{i} (p: f32[2]) -> f32[2] {{\n{body}\n}}" for i, body in enumerate([f"  {gather}", *calls])]
    text = "\n\n".join([*bodies, "ENTRY %main (p: f32[2]) -> f32[2] {\n  %a = f32[2] call(%p), to_apply=%f60\n}"])
    assert [c.times for c in collectives_of(text)] == [2**60]
