"""Texts as XLA writes them, with jaxlib 0.10.2: a small program with a loop, and files of dumps."""
from __future__ import annotations

from xlamini.inspection.xla.hlo import Module
from xlamini.inspection.xla.labels import Labelling

LOOP = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8,4]{1,0})->f32[8,4]{1,0}}

FileNames
1 "/users/me/f.py"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=0 end_column=0}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

%fused_tanh (param_0: f32[8,4]) -> f32[8,4] {
  %param_0 = f32[8,4]{1,0} parameter(0)
  %mul.1 = f32[8,4]{1,0} multiply(%param_0, %param_0), metadata={op_name="jit(f)/body/mul#e1.0" stack_frame_id=1}
  ROOT %tanh.1 = f32[8,4]{1,0} tanh(%mul.1), metadata={op_name="jit(f)/body/tanh#e1.1" stack_frame_id=1}
}

%body (state: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %state = (s32[], f32[8,4]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %x = f32[8,4]{1,0} get-tuple-element(%state), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %tanh_fusion = f32[8,4]{1,0} fusion(%x), kind=kLoop, calls=%fused_tanh
  ROOT %state.2 = (s32[], f32[8,4]{1,0}) tuple(%next, %tanh_fusion)
}

%condition (state.1: (s32[], f32[8,4])) -> pred[] {
  %state.1 = (s32[], f32[8,4]{1,0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%state.1), index=0
  %end = s32[] constant(20)
  ROOT %less = pred[] compare(%i.1, %end), direction=LT
}

ENTRY %main (Arg_0.1: f32[8,4]) -> f32[8,4] {
  %Arg_0.1 = f32[8,4]{1,0} parameter(0)
  %zero = s32[] constant(0)
  %sin_e0.1 = f32[8,4]{1,0} sine(%Arg_0.1), metadata={op_name="jit(f)/sin#e0" stack_frame_id=1}
  %copy.1 = f32[8,4]{0,1} copy(%sin_e0.1)
  %init = (s32[], f32[8,4]{1,0}) tuple(%zero, %copy.1)
  %loop = (s32[], f32[8,4]{1,0}) while(%init), condition=%condition, body=%body, \
metadata={op_name="jit(f)/scan#e1" stack_frame_id=1}, backend_config={"known_trip_count":{"n":"20"}}
  %y = f32[8,4]{1,0} get-tuple-element(%loop), index=1
  ROOT %cos_e2.1 = f32[8,4]{1,0} cosine(%y), metadata={op_name="jit(f)/cos#e2" stack_frame_id=1}
}
"""

LIVE_RANGES = """HloLiveRange (max 4):
  InstructionSequence:
    0:Arg_0.1
    1:sin_e0.1
    2:copy.1
    3:cos_e2.1
  BufferLiveRange:
    Arg_0.1{}:0-4
    sin_e0.1{}:1-2
    copy.1{}:2-3
    loop{1}:2-3
    cos_e2.1{}:3-4
    scratch{}:1-3
  Live ranges at 2 (peak):
    sin_e0.1{}: 128 bytes (cumulative: 128 bytes)
"""

ASSIGNMENT = """BufferAssignment:
allocation 0: size 128, parameter 0, shape |f32[8,4]| at ShapeIndex {}:
 value: <1 Arg_0.1 @0> (size=128,offset=0): f32[8,4]{1,0}
allocation 1: size 128, maybe-live-out:
 value: <4 cos_e2.1 @0> (size=128,offset=0): f32[8,4]{1,0}
allocation 2: size 256, preallocated-temp:
 value: <2 sin_e0.1 @0> (size=128,offset=0): f32[8,4]{1,0}
 value: <3 copy.1 @0> (size=128,offset=128): f32[8,4]{0,1}
 value: <5 loop{1} (phi) @0> (size=128,offset=128): f32[8,4]{1,0}
allocation 3: size 4096, color 1, page 0, preallocated-temp:
 value: <6 scratch @0> (size=4096,offset=0): f32[1024]{0}
allocation 4: size 4, thread-local:
 value: <7 lhs @0> (size=4,offset=0): f32[]
"""


def loop() -> tuple[Module, Labelling]:
    module = Module(LOOP)
    return module, Labelling(module)
