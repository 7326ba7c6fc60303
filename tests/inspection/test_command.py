"""`python -m xlamini inspect`: what it passes on, writes and prints, its exit codes, and slips in the command line."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.inspection import reports
from xlamini.commands import inspect as command
from xlamini.commands.argument_text import filled, parse_argument
from xlamini.inspection.limits import check
from xlamini.inspection.text import text
from xlamini.inspection.timing.measure.function import RUNS

Struct = xlamini.ShapeDtypeStruct

PROGRAM = """
import helper

class Model:
    @staticmethod
    def step(x):
        return x

def step(w, x):
    return helper.twice(w @ x)

def make_args():
    return 1.0, 2.0

def make_one():
    return {"w": 3.0}

def bad():
    raise KeyError("gone")

LIMIT = 3
"""


class Stub:
    """A report that is made by hand, with the methods of a real one."""

    def __init__(self, content: dict[str, Any]):
        self.content = content

    def json(self) -> dict[str, Any]:
        return self.content

    def text(self, screen: str, **options: Any) -> str:
        return text(self.content, screen, **options)

    def check(self, **options: Any) -> Any:
        return check(self.content, **options)

    def save(self, path: str, *, against: Any) -> None:
        Path(path).write_text(json.dumps(self.content))


class Shell:
    """The command, in a folder with a program; `calls` are what it asked `xlamini.inspect` for."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]):
        self.folder, self.capsys = folder, capsys
        self.calls: list[tuple[Any, dict[str, Any], tuple[Any, ...]]] = []
        self.report = reports.report()
        self.out = self.err = ""

    def inspect(self, function: Any, **settings: Any) -> Callable[..., Stub]:
        def inspected(*args: Any) -> Stub:
            self.calls.append((function, settings, args))
            return Stub(self.report)

        return inspected

    def __call__(self, *argv: str) -> int:
        code = command.main(["train_for_inspect.py:step", *argv])
        self.out, self.err = self.capsys.readouterr()
        return code

    def wrong(self, *argv: str) -> str:
        """The one line of an error in the command line; nothing was inspected."""
        assert command.main(argv) == 2 and not self.calls
        out, err = self.capsys.readouterr()
        assert out == "" and err.startswith("inspect: ")
        return err.removeprefix("inspect: ").rstrip()


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    (tmp_path / "train_for_inspect.py").write_text(PROGRAM)
    (tmp_path / "helper.py").write_text("def twice(x):\n    return 2 * x\n")
    made = Shell(tmp_path, capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(xlamini, "inspect", made.inspect, raising=False)
    for name in ("helper", "train_for_inspect"):
        monkeypatch.delitem(command.sys.modules, name, raising=False)
    return made


def test_what_is_inspected(shell: Shell) -> None:
    targets = ["--targets", "here, gpu:h200", "--no-source"]
    assert shell("--arg", "f32[128,784]", "--arg", '{"w": "f32[784,10]", "n": 3}', *targets) == 0
    function, settings, (x, tree) = shell.calls[0]
    assert function(np.ones(2), np.ones(2)) == 4  # the file's imports from its own folder work
    assert settings == {"targets": ["here", "gpu:h200"], "source": False, "values": False, "measure": False}
    assert (x.shape, x.dtype, tree["w"].shape, tree["n"]) == ((128, 784), np.float32, (784, 10), 3)
    assert shell.out.startswith("Summary: ") and "tracing and compiling step for here, gpu:h200" in shell.err


def test_arguments_from_a_function(shell: Shell) -> None:
    assert shell("--args-from", "train_for_inspect.py:make_args") == 0
    assert shell("--args-from", "train_for_inspect.py:make_one") == 0
    assert [args for _, _, args in shell.calls] == [(1.0, 2.0), ({"w": 3.0},)]


def test_values_need_arrays(shell: Shell) -> None:
    assert shell("--arg", "f32[3]", "--arg", "[i32[2], 4]", "--values") == 0
    _, settings, (x, (i, four)) = shell.calls[0]
    assert settings["values"] and isinstance(x, xlamini.Array) and len(set(np.asarray(x))) == 3
    assert np.array_equal(i, np.zeros(2)) and i.dtype == np.int32 and four == 4


def test_a_measured_function_is_said_to_run_before_it_does(shell: Shell) -> None:
    shell.report = reports.measured()
    assert shell("--arg", "f32[3]", "--arg", "f32[3]", "--measure", "--check", "time<2ms") == 0
    _, settings, (x, _) = shell.calls[0]
    assert settings["measure"] and isinstance(x, xlamini.Array)
    assert f"then it runs {RUNS}, its effects too" in shell.err and "ok  time <2ms" in shell.out


def test_files_are_written(shell: Shell) -> None:
    assert shell("-o", "step.html", "--json", "step.json") == 0
    assert json.loads((shell.folder / "step.json").read_text()) == shell.report and shell.out == ""
    assert "wrote step.html, " in shell.err and "wrote step.json, " in shell.err


def test_screens_and_the_difference_are_printed(shell: Shell) -> None:
    (shell.folder / "old.json").write_text(json.dumps(reports.report()))
    shell.report = reports.changed()
    assert shell("--text", "kernels", "--text", "roofline", "--diff", "old.json") == 0
    starts = [shell.out.index(f"{screen}: ") for screen in ("Kernels", "Roofline", "Diff")]
    assert starts == sorted(starts) and "flops        here      2.08 K    2.72 K   +31 %" in shell.out


@pytest.mark.parametrize(("checks", "code"), [
    (["kernels<=4"], 1),  # the TPU's compiler is missing, so its kernels are not known
    (["equations<=9"], 0),
    (["equations <= 8"], 1),
    (["equations+1"], 0),
    (["equations<=9", "equations+0"], 1),
    (["equations+0", "equations<=9"], 1),
])  # fmt: skip
def test_checks_decide_the_exit_code(shell: Shell, checks: list[str], code: int) -> None:
    (shell.folder / "old.json").write_text(json.dumps(reports.report()))
    shell.report = reports.changed()
    asked = [word for limit in checks for word in ("--check", limit)]
    assert shell("--diff", "old.json", *asked) == code
    assert ("FAIL" in shell.out) is bool(code) and shell.out.count("equations ") >= len(checks) - 1


def test_a_program_that_does_not_compile_is_a_failure_with_a_report(shell: Shell) -> None:
    shell.report = reports.failed()
    assert shell("--json", "step.json", "--text", "summary") == 1
    assert "as lower failed: TypeError: no rule" in shell.out and (shell.folder / "step.json").exists()


STEP = "train_for_inspect.py:step"


@pytest.mark.sample(1)
@pytest.mark.parametrize(("argv", "message"), [
    (["train.py:step"], "there is no file 'train.py'"),
    (["train_for_inspect.py"], "'train_for_inspect.py' names no function; write FILE:FUNCTION, such as train.py:step"),
    (["train_for_inspect.py:stepp"], "train_for_inspect.py has no 'stepp'; did you mean step?"),
    (["train_for_inspect.py:LIMIT"], "train_for_inspect.py:LIMIT is no function but a int"),
    ([STEP, "--text", "kernel"], "--text: no screen 'kernel' (known: "),
    ([STEP, "-o", "step.txt"], "-o step.txt: the file's name must end in .html"),
    ([STEP, "--json", "no/step.json"], "--json no/step.json: there is no folder no; make it first"),
    ([STEP, "--diff", "none.json"], "[Errno 2] No such file or directory: 'none.json'"),
    ([STEP, "--diff", "helper.py"], "helper.py is not a report of xlamini.inspect: it is no JSON; make one by"),
    ([STEP, "--check", "14GiB"], "--check '14GiB' is no limit; write a quantity and a limit, such as 'peak<14GiB'"),
    ([STEP, "--check", "peek<14GiB"], "check: there is no quantity 'peek' (known: "),
    ([STEP, "--check", "peak<14GIB"], "check: peak='<14GIB' is no limit: 'GIB' is no unit of bytes"),
    ([STEP, "--check", "time<300ms"], "--check 'time…' is about the measured time; give --measure, which runs it"),
    ([STEP, "--check", "flops+5%"], "--check 'flops+5%' compares with an earlier report; give --diff OLD.json"),
    ([STEP, "--arg", "f32"], "argument 'f32': 'f32' has no shape; f32[] is a scalar; write a type such as 'f32[8,4]'"),
    ([STEP, "--arg", "3", "--args-from", STEP], "--arg and --args-from both give the arguments; leave one out"),
    ([STEP, "--args-from", "train_for_inspect.py:bad"], "train_for_inspect.py:bad failed at "),
])  # fmt: skip
def test_slips(shell: Shell, argv: list[str], message: str) -> None:
    assert shell.wrong(*argv).startswith(message)


def test_an_error_of_the_user_is_shown_with_its_line(shell: Shell) -> None:
    said = shell.wrong(STEP, "--args-from", "train_for_inspect.py:bad")
    assert said.splitlines()[0].endswith("train_for_inspect.py:19") and said.splitlines()[1] == "KeyError: 'gone'"
    (shell.folder / "broken.py").write_text("x = 1\ny = x.gone\n")
    said = shell.wrong("broken.py:step")
    assert said.splitlines()[0].endswith("broken.py:2") and said.splitlines()[1].startswith("AttributeError: 'int'")


def test_a_function_that_cannot_be_traced(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlamini, "inspect", lambda f, **_: f, raising=False)
    code = command.main(["train_for_inspect.py:step", "--arg", "3", "--arg", "2"])
    out, err = shell.capsys.readouterr()
    where, what = err.splitlines()[1:]
    assert (code, out) == (2, "") and where.startswith("inspect: step cannot be inspected at ")
    assert where.endswith("train_for_inspect.py:10") and what.startswith("TypeError: unsupported operand")


# --- arguments in words


@pytest.mark.sample(1)
@pytest.mark.parametrize(("written", "argument"), [
    ("f32[128,784]", Struct((128, 784), "float32")),
    ("bfloat16[2, 3]", Struct((2, 3), "bfloat16")),
    ("f32[]", Struct((), "float32")),
    ("bool[1]", Struct((1,), "bool")),
    ("3", 3),
    ("-0.5", -0.5),
    ("1e-3", 1e-3),
    ("true", True),
    ("null", None),
    ('"3"', 3),
    ("[]", []),
    ("()", ()),
    ("(f32[2],)", (Struct((2,), "float32"),)),
    ("[1, [2, (3, 4)]]", [1, [2, (3, 4)]]),
    ('{"w": "f32[784,10]", b: [i32[], 2,], \'c\': {}, 0: 1}',
     {"w": Struct((784, 10), "float32"), "b": [Struct((), "int32"), 2], "c": {}, 0: 1}),
])  # fmt: skip
def test_arguments(written: str, argument: Any) -> None:
    found = parse_argument(written)
    assert repr(found) == repr(argument) and type(found) is type(argument)


def test_a_key() -> None:
    assert xlamini.dtypes.issubdtype(parse_argument("key").dtype, xlamini.dtypes.prng_key)


def test_filled_arguments_have_the_types_that_were_asked_for() -> None:
    found = filled(parse_argument("{a: bf16[2], b: c64[3], c: u8[], d: bool[2], e: 1.5, f: key}"))
    assert [str(found[name].dtype) for name in "abcd"] == ["bfloat16", "complex64", "uint8", "bool"]
    assert found["e"] == 1.5 and np.isfinite(np.asarray(found["b"])).all()


@pytest.mark.sample(1)
@pytest.mark.parametrize(("written", "why"), [
    ("", "it ends too early"),
    ("f32[3", "'f32' has no shape; f32[] is a scalar"),
    ("f23[3]", "there is no dtype 'f23'; did you mean f32"),
    ("f32[a]", "the sizes of f32[a] must be numbers"),
    ("f32[-1]", "the sizes of f32[-1] must be numbers"),
    ("{w f32[3]}", "':' is missing after 'w'"),
    ("{w: f32[3]", "it ends too early"),
    ("[1 2]", "a comma or ']' is missing"),
    ("(1, 2]", "a comma or ')' is missing"),
    ("1, 2", "',' is unexpected"),
    ("keys", "'keys' is unknown; did you mean key"),
    ("f32[3] @", "'@' is unexpected"),
    ('"relu"', "'relu' is unknown"),
])  # fmt: skip
def test_slips_in_arguments(written: str, why: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_argument(written)
    said = str(error.value)
    assert why in said and said.startswith("argument ") and "; write a type such as 'f32[8,4]'" in said
