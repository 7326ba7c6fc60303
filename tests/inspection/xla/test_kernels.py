"""Kernels, the values between them, memory over time and assembly, read from short texts."""
from __future__ import annotations

import pytest

from tests.inspection.xla.texts import ASSIGNMENT, LIVE_RANGES, loop
from xlamini.inspection.xla.assembly import assembly_of
from xlamini.inspection.xla.buffers import labels_by_name, memory_by_schedule, memory_of
from xlamini.inspection.xla.examine import boundaries_of, exchanges_of
from xlamini.inspection.xla.facts import Roof, XlaKernel
from xlamini.inspection.xla.fusion_choices import FusionChoices
from xlamini.inspection.xla.hlo import Module
from xlamini.inspection.xla.kernels import BOUND, PREDICTED, ModuleKernels, is_library_call, library_flops
from xlamini.inspection.xla.labels import Labelling
from xlamini.runtime.hlo.instructions import instruction
from xlamini.runtime.hlo.translation import text_cost

ROOF = Roof(1e9, 1e9, "a test's")


def kernels() -> dict[str, XlaKernel]:
    return {each.name: each for each in ModuleKernels(*loop(), ROOF, None).read()}


def test_kernels_of_a_loop() -> None:
    found = kernels()
    assert list(found) == ["sin_e0.1", "copy.1", "less", "next", "tanh_fusion", "cos_e2.1"]
    assert [each.runs for each in found.values()] == [1, 1, 20, 20, 20, 1]
    assert (found["tanh_fusion"].flops, found["tanh_fusion"].bytes) == (20 * 32, 20 * 2 * 128)
    assert (found["tanh_fusion"].labels, found["tanh_fusion"].inserted) == (("tanh#e1.1", "mul#e1.0"), False)
    assert (found["copy.1"].labels, found["copy.1"].inserted, found["copy.1"].kind) == (("sin#e0",), True, "copy")
    assert (found["copy.1"].seconds, found["copy.1"].time) == (pytest.approx(256e-9), BOUND)


def test_a_kernel_is_a_module() -> None:
    text = kernels()["tanh_fusion"].hlo
    assert "metadata" not in text and text_cost(text)["flops"] == 32
    assert text.endswith(
        "ENTRY %main {\n  %x = f32[8,4]{1,0} parameter(0)\n"
        "  ROOT %tanh_fusion = f32[8,4]{1,0} fusion(%x), kind=kLoop, calls=%fused_tanh\n}\n"
    )


def test_lines_count_from_the_first_computation() -> None:
    module, _ = loop()
    first = module.lines.index("%fused_tanh (param_0: f32[8,4]) -> f32[8,4] {")
    assert "%tanh_fusion = " in module.lines[first + kernels()["tanh_fusion"].line]


def test_xlas_cycles() -> None:
    text = """HloModule f, is_scheduled=true

ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} negate(%a), backend_config={"window_config":{"estimated_cycles":"1500"}}
  ROOT %c = f32[4]{0} negate(%b), backend_config={"window_config":{"estimated_cycles":"9223372036854775807"}}
}
"""
    module = Module(text)
    b, c = ModuleKernels(module, Labelling(module), ROOF, 1.5e9).read()
    assert (b.seconds, b.time) == (pytest.approx(1e-6), PREDICTED) and c.time == BOUND


def test_a_kernel_that_xla_cannot_parse() -> None:
    lines = ("%a = f32[4] parameter(0)", "ROOT %b = f32[4] novel(%a)")
    module = Module("HloModule f\n\nENTRY %main (a: f32[4]) -> f32[4] {{\n  {}\n  {}\n}}\n".format(*lines))
    reader = ModuleKernels(module, Labelling(module), ROOF, None)
    assert (reader.read()[0].bytes, reader.failures) == (32, ["b"])


def test_values_between_kernels_pass_through_loops() -> None:
    module, _ = loop()
    found = list(kernels().values())
    names = [each.name for each in found]
    shown = {
        (names[b.producer], tuple(sorted(names[c] for c in b.consumers))): b.bytes
        for b in boundaries_of(module, found, None)
    }
    assert shown == {
        ("sin_e0.1", ("copy.1",)): 128,
        ("copy.1", ("cos_e2.1", "tanh_fusion")): 128,
        ("tanh_fusion", ("cos_e2.1", "tanh_fusion")): 20 * 128,
        ("next", ("less", "next")): 20 * 4,
    }


DUMP = """fusion_steps {
  update_priority {
    producer_name: "sin.7"
    consumer_names: "tanh.7"
    us_fused: 1.5
    us_unfused: 2.5
  }
}
fusion_steps {
  producer_ineligible {
    producer_name: "sin.7"
    reason: "Unsupported \\"op\\" for HLO %tanh.7 = f32[8,4] tanh(%x)"
  }
}
fusion_steps {
  fusion {
    fusion_name: "fusion.1"
    producer_name: "mul.7"
    consumer_name: "tanh.7"
  }
}
fusion_steps {
  update_priority {
    producer_name: "fusion.1"
    consumer_names: "cos.7"
    us_fused: 3
    us_unfused: 2
  }
}
"""
BEFORE_FUSION = """  %sin.7 = f32[8,4]{1,0} sine(%a), metadata={op_name="jit(f)/sin#e0"}
  %mul.7 = f32[8,4]{1,0} multiply(%a, %a), metadata={op_name="jit(f)/body/mul#e1.0"}
  %tanh.7 = f32[8,4]{1,0} tanh(%mul.7), metadata={op_name="jit(f)/body/tanh#e1.1"}
"""


def test_why_kernels_are_not_fused() -> None:
    found, choices = kernels(), FusionChoices(DUMP, BEFORE_FUSION)
    one = [found["cos_e2.1"]]
    assert choices.between(found["sin_e0.1"], one) == ('Unsupported "op"', pytest.approx(1e-6))
    reason = "fused it would take 3 us, apart it takes 2 us"
    assert choices.between(found["tanh_fusion"], one) == (reason, pytest.approx(-1e-6))
    assert choices.between(found["next"], one) == (None, None)
    with pytest.raises(ValueError, match="no steps"):
        FusionChoices("another format", BEFORE_FUSION)


def test_memory_by_the_compilers_live_ranges() -> None:
    found = list(kernels().values())
    memory = memory_of(LIVE_RANGES, ASSIGNMENT, found, labels_by_name(*loop()))
    assert [moment.bytes for moment in memory.moments] == [128, 256, 384, 384, 256]
    assert [moment.kernel for moment in memory.moments] == [None, 0, 1, 5, None]
    shown = {each.name: (each.bytes, each.first, each.last, each.label) for each in memory.buffers}
    assert shown["sin_e0.1"] == (128, 1, 2, "sin#e0") and shown["loop{1}"] == (128, 2, 3, "scan#e1")
    assert "scratch" not in shown  # it is in another memory
    with pytest.raises(ValueError, match="no live ranges"):
        memory_of("another format", ASSIGNMENT, found, {}.get)


def test_memory_by_the_schedule() -> None:
    module, labelling = loop()
    memory = memory_by_schedule(module, list(kernels().values()), labels_by_name(module, labelling))
    spans = {each.name: (each.first, each.last) for each in memory.buffers}
    assert spans == {"Arg_0.1": (0, 7), "sin_e0.1": (2, 3), "copy.1": (3, 5), "loop": (5, 7), "cos_e2.1": (7, 7)}
    with pytest.raises(ValueError, match="not in the order"):
        memory_by_schedule(Module("HloModule f\n"), [], {}.get)


def test_assembly_is_in_the_order_of_the_kernels() -> None:
    cos = "//\n// Generated\n.version 9.0\n\n.visible .entry cos_e2_1(\n\t.param .u64 a\n)\n{\n\tret;\n}\n"
    tanh = "target triple\ndefine noalias ptr @tanh_fusion(ptr %0) #0 {\n  ret ptr null\n}\nattributes #0 = {}\n"
    found = assembly_of("PTX", [cos, tanh], list(kernels().values()))
    assert found.lines[0].startswith("define noalias ptr @tanh_fusion") and found.labels[0] == ("tanh#e1.1", "mul#e1.0")
    assert ".visible .entry cos_e2_1(" in found.lines and found.labels[-1] == ("cos#e2",) and found.count == 2
    with pytest.raises(ValueError, match="no function"):
        assembly_of("PTX", ["another format"], [])


def test_who_asked_for_a_collective() -> None:
    text = """HloModule f

ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %r = f32[4]{0} all-reduce(%a), replica_groups={{0,1}}, to_apply=%add, metadata={op_name="jit(f)/psum#e0"}
  %s = f32[4]{0} all-reduce(%r), replica_groups={{0,1}}, to_apply=%add, metadata={op_name="jit(f)/dot_general#e1"}
  ROOT %t = f32[8]{0} all-gather(%s), replica_groups={{0,1}}, dimensions={0}
}
"""
    found = exchanges_of(text, {"t": "tanh#e2"}.get)
    assert [(each.kind, each.label, each.asked) for each in found] == [
        ("all-gather", "tanh#e2", False),
        ("all-reduce", "psum#e0", True),
        ("all-reduce", "dot_general#e1", False),
    ]


CALL = (
    "  %c = {result} custom-call({operands}), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_o01i->b01f, "
    'custom_call_target="{target}", backend_config={{"cudnn_conv_backend_config":{{}}}}'
)
IMAGE, KERNEL, OUTPUT = "f32[8,28,28,3]{3,2,1,0}", "f32[16,3,3,3]{3,2,1,0}", "f32[8,28,28,16]{3,2,1,0}"
CONVOLUTION = 2 * (8 * 28 * 28 * 16) * (3 * 3 * 3)


@pytest.mark.parametrize(
    ("target", "operands", "result"),
    [
        ("__cudnn$convForward", [IMAGE, KERNEL], OUTPUT),
        ("__cudnn$convBiasActivationForward", [IMAGE, KERNEL, "f32[16]{0}"], OUTPUT),
        ("__cudnn$convBackwardFilter", [IMAGE, OUTPUT], KERNEL),
        ("__cudnn$convBackwardInput", [OUTPUT, KERNEL], IMAGE),
    ],
)
def test_convolutions_of_cudnn(target: str, operands: list[str], result: str) -> None:
    names = ", ".join(f"%x{i}" for i in range(len(operands)))
    each = instruction(CALL.format(result=f"({result}, u8[0]{{0}})", operands=names, target=target))
    assert each is not None and is_library_call(each)
    assert library_flops(each, operands) == CONVOLUTION


def test_products_of_cublas() -> None:
    config = '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["0","2"],"x":[]}}}'
    line = f'  %d = (f32[4,5], s8[9]) custom-call(%a, %b), custom_call_target="__cublas$gemm", backend_config={config}'
    each = instruction(line)
    assert each is not None and library_flops(each, ["f32[2,4,3]{2,1,0}", "f32[2,3,5]"]) == 2 * 4 * 5 * 6
    unknown = instruction('  %d = f32[4] custom-call(%a), custom_call_target="__cudnn$fmhaSoftmax"')
    assert unknown is not None and is_library_call(unknown) and library_flops(unknown, ["f32[4]"]) is None
