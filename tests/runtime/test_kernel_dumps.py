"""The readers of what compilers write about kernels, on short texts as libtpu, XLA and ptxas write them."""
from __future__ import annotations

import pytest

from xlamini.runtime.kernels.bundles import Loop, TpuCode, shown_bundles, tpu_code
from xlamini.runtime.kernels.ptx import Registers, architecture, gpu_code, has_entry
from xlamini.runtime.kernels.ptxas import read_registers

BUNDLES = """= control target key start
LB: loop body
= control target key end

     0   :  { %s4238_s0 = inlined_call_operand.hbm [shape: bf16[16384,128], index: 0] } /* entry bundle */
   0x1   :  { %8 = vsyncpa [#allocation4], 0 } /* Start region 1 */
   0x2 LB: > { %s3036_s23 = sadd.s32 4294967295, %s2758_s22 /* iteration index, stage = 1 */ }
   0x3   : > { %p32_p0 = scmp.ge.s32.totalorder %s31_s25, 16 }
   0x4   :  {}
   0x5 LB: >> { %4319 = vst [vmem:[#allocation38_spill] sm:$0xff] %v27 }
   0x6   : >> { %s368_s8 = sadd.s32 1, %s2762_s8  ;;  %p9 = scmp.ge.s32.totalorder %s368_s8, 16 /* loop exit test */ }
   0x7   : > { %v953_vm1 = vweird.f32 (%p320_p9), %v4460_v1 }
   0x8   : >> { %v1002_v22 = vand.u32 2147483648, %v1 }
   0x9 PF: > { %s4487_s9 = sld [smem:[#allocation13_spill]] }
   0xa   : > { %p19_p9 = scmp.ge.s32.totalorder %s22_s22, 130 /* loop exit test */ }
   0xb   :  { %1244 = vsyncpa [#allocation4], 1 } /* exit bundle */
"""
UTILIZATION = """== CAPACTIY:
MATMUL, MATPUSH, XLU, VALU, VPOP, EUP, VLOAD, VLOAD:FILL, VSTORE, VSTORE:SPILL, SALU
    4     4     3     4     2     1     3     3     1     1     2
== UTILIZATION:
0 0 0 0 0 0 0 0 0 0 1
1 0 2 4 0 1 0 3 0 1 2
1 0 0 3 0 0 0 1 0 1 0
"""
BUFFERS = """  #allocation1 [shape = 's32[1]{0}', space=sflag, size = 0x4, scoped, tag = 'scoped memory']
    #allocation3 [shape = 'u8[65536]{0}', space=vmem, size = 0x10000, offset = 0x0, scoped, tag = 'input window']
    #allocation38_spill [shape = 'u8[4096]{0}', space=vmem, size = 0x1000, scoped, tag = 'spill']
"""
PTX = """.version 9.0
.target sm_90a
.visible .entry flash(
	.param .u64 .ptr .align 16 flash_param_0
)
.reqntid 128, 1, 1
{
	.reg .b32 	%r<4724>;
	ld.param.b64 	%rd101, [flash_param_0];
	mov.u32 	%r261, %ctaid.x;
	@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
	cp.async.cg.shared.global [ %r196 + 0 ], [ %rd37 + 0 ], 0x10, %r197;
	cp.async.commit_group;
	bar.sync 	0;
	wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%r5}, %rd2, %rd3, 1, 1, 1, 0, 1;
	shfl.sync.bfly.b32 	%r6, %r5, 2, 31, -1;
	ex2.approx.ftz.f32 	%r7, %r6;
	st.global.b32 	[%rd4], %r7;
	ret;
}
"""
LAUNCHES = "001: kCustomKernel [sink] flash grid: [8, 16, 1] threads: [128, 1, 1]  shared_memory: 229376 bytes\n"
ASSEMBLED = """ptxas info    : Compiling entry function 'flash' for 'sm_90a'
ptxas info    : Function properties for flash
    56 bytes stack frame, 56 bytes spill stores, 48 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 56 bytes cumulative stack size
"""


def code() -> TpuCode:
    return tpu_code(BUNDLES, UTILIZATION, BUFFERS)


def test_bundles_are_counted_by_loop() -> None:
    assert code().loops == (Loop(0, 3, 1), Loop(1, 6, 130), Loop(2, 3, 16))
    assert code().bundles == (3, 6, 3)
    assert shown_bundles(code().bundles) == "3/6/3"


def test_cycles_are_the_bundles_that_run() -> None:
    assert code().cycles == 3 + 130 * (6 + 16 * 3)


def test_a_loop_without_a_constant_end_counts_once() -> None:
    assert tpu_code(BUNDLES.replace(", 16 /* loop", ", %s9 /* loop"), "").cycles == 3 + 130 * (6 + 3)


def test_loops_side_by_side_have_trips_of_their_own() -> None:
    loops = (Loop(0, 1, 1), Loop(1, 2, 10), Loop(2, 3, 4), Loop(2, 5, 6), Loop(1, 7, 2))
    assert TpuCode(loops, {}, None).cycles == 1 + 10 * (2 + 4 * 3 + 6 * 5) + 2 * 7


def test_units_and_spills_are_sums() -> None:
    assert code().units["VALU"] == 7
    assert code().units["SALU"] == 3
    assert code().spills == 4 + 2


def test_vmem_is_the_sum_of_its_buffers() -> None:
    assert code().vmem == 0x11000
    assert tpu_code(BUNDLES, UTILIZATION).vmem is None


def test_a_text_of_another_format_is_empty() -> None:
    found = tpu_code("no bundles", "no table", "no buffers")
    assert (found.bundles, found.units, found.spills, found.vmem) == ((0,), {}, 0, None)


def test_instructions_of_ptx_are_counted() -> None:
    found = gpu_code(PTX, LAUNCHES)
    once = {"wgmma", "cp.async", "ld.global", "st.global", "shfl", "bar.sync", "ex2"}
    assert {name for name, count in found.counts.items() if count} == once
    assert set(found.counts.values()) == {0, 1}
    assert found.instructions == 11


def test_launches_say_threads_and_shared_memory() -> None:
    found = gpu_code(PTX, LAUNCHES)
    assert (found.threads, found.shared, found.spills) == (128, 229376, None)


@pytest.mark.parametrize(("line", "threads"), [(".reqntid 64, 2, 1", 128), (".maxntid 256", 256), ("", None)])
def test_threads_are_in_the_ptx_too(line: str, threads: int | None) -> None:
    found = gpu_code(PTX.replace(".reqntid 128, 1, 1", line))
    assert (found.threads, found.shared) == (threads, None)


def test_ptx_says_what_it_is_for() -> None:
    assert has_entry(PTX)
    assert not has_entry(".version 9.0\n.target sm_90a\n")
    assert architecture(PTX) == "sm_90a"
    assert architecture("") is None


def test_the_assembler_names_registers_and_spills() -> None:
    assert read_registers(ASSEMBLED) == Registers(255, 56, 48)
    assert gpu_code(PTX, LAUNCHES, read_registers(ASSEMBLED)).spills == 104
    assert read_registers("ptxas info    : Used 23 registers, used 1 barriers") == Registers(23, 0, 0)
    assert read_registers("ptxas fatal   : Unsupported .version 9.0") is None
