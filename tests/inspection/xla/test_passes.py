"""The program after each pass, from the files of a dump."""
from __future__ import annotations

from xlamini.inspection.xla.passes import BEFORE, PassFile, pass_file, passes_of
from xlamini.inspection.xla.texts import shortened


def program(*instructions: str) -> bytes:
    lines = [f'  {each}, metadata={{op_name="jit(f)/{each.split()[3].partition("(")[0]}#e1"}}' for each in instructions]
    return "\n".join(["HloModule f", "", "ENTRY %main (a: f32[4]) -> f32[4] {", *lines, "}", ""]).encode()


A, B, C = "%a = f32[4]{0} parameter(0)", "%b = f32[4]{0} negate(%a)", "%c = f32[4]{0} negate(%b)"
D = "%d = f32[4]{0} tanh(%a)"


def files(*contents: bytes) -> list[tuple[PassFile, bytes]]:
    names = ["pipeline-start", *(f"pass-{i}" for i in range(1, len(contents)))]
    return [(PassFile(i, "p", name, ""), raw) for i, (name, raw) in enumerate(zip(names, contents, strict=True))]


def test_names_of_files() -> None:
    tpu = "cl_1014260217.0049.Main_fusion.after_tpu_fusion.before_pipeline-end.txt"
    assert pass_file(tpu) == PassFile(49, "Main_fusion", "tpu_fusion", tpu)
    alone = "0061.copy-insertion.after_removing_unnecessary_copies.txt"
    assert pass_file(alone) == PassFile(61, "copy-insertion", "removing_unnecessary_copies", alone)
    assert pass_file("cpu_after_optimizations.txt") is None and pass_file("before_optimizations.txt") is None


def test_the_lines_that_a_pass_changes() -> None:
    first, second, third = passes_of(files(program(A, B, C), program(A, B), program(A, D)))
    assert (first.name, first.text.lines) == (BEFORE, ("  … 2 lines", "ENTRY main {", "  c = f32[4] negate(b)"))
    assert (second.name, second.changed, second.text.lines) == (
        "pass-1",
        True,
        ("  … 1 lines", "ENTRY main {", "  b = f32[4] negate(a)"),
    )
    assert third.text.lines == ("  … 1 lines", "ENTRY main {", "  d = f32[4] tanh(a)")
    assert third.text.labels == ((), (), ("tanh#e1",)) and third.text.count == 2
    assert [each.text.title for each in (second, third)] == ["pass-1 (pass 1)", "pass-2 (pass 2)"]


def test_passes_that_change_nothing() -> None:
    same = program(A, B)
    found = passes_of(files(same, same, same.replace(b"#e1", b"#e7"), program(B, A)))
    assert [(each.name, each.changed, len(each.text.lines)) for each in found] == [
        (BEFORE, True, 1),
        ("pass-1", False, 0),
        ("pass-2", False, 0),
        ("pass-3", True, 1),
    ]
    assert found[-1].text.lines == ("  … 2 lines, in another order",)


def test_a_change_before_the_first_pass_of_a_pipeline_is_the_pipelines() -> None:
    start = PassFile(7, "scheduler", "pipeline-start", "")
    first, second = passes_of([*files(program(A, B)), (start, program(B, A))])
    assert (second.name, second.text.title) == ("scheduler", "scheduler (pass 7)") and first.name == BEFORE


def test_a_program_that_no_pass_changes() -> None:
    (only,) = passes_of(files(program(A, B)))
    assert only.text.lines == ("  … 2 lines",)


def test_lines_are_short() -> None:
    line = "  ROOT %f.1 = f32[8,4]{0,1:T(8,128)S(1)} fusion(%a, /*index=5*/%b), kind=kLoop, calls=%f, backend_config={"
    assert shortened(line) == "  ROOT f.1 = f32[8,4]{0,1:S(1)} fusion(a, b), kind=kLoop, calls=f"
    assert shortened("ENTRY %main (a: f32[4]) -> (f32[4], f32[]) {") == "ENTRY main {"
    assert shortened("}") == "}"


def test_bytes_that_are_no_text() -> None:
    assert passes_of(files(b"\xff\xfe", b"")) and passes_of([]) == ()
