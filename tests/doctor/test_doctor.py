"""`python -m xlamini doctor` in broken set-ups: what it says, one fix for each problem, and its exit code."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import xlamini
from tests.support import broken_setups as broken
from xlamini import config, doctor
from xlamini.runtime.devices import hardware

pytestmark = pytest.mark.full  # each starts a process

needs_compiler = pytest.mark.skipif(broken.COMPILER is None, reason="plugins that fail are compiled with gcc")


class Doctor:
    """The doctor, in a set-up."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]):
        self.folder, self.capsys = folder, capsys
        self.code: int = -1
        self.text = ""

    def __call__(self, *arguments: str) -> str:
        """What it says of a set-up."""
        self.code = doctor.main(["--timeout", "20", *arguments])
        self.text = self.capsys.readouterr().out
        return self.text

    def by_path(self, **plugins: Path) -> None:
        config.update("pjrt_plugins", ",".join(f"{name}:{path}" for name, path in plugins.items()))

    def problems(self, platform: str) -> list[str]:
        """The problems of a platform, each with its fix."""
        section = self.text.partition("\nproblems\n")[2].rpartition("\n\n")[0]
        found = re.split(r"^  \d+\. ", section, flags=re.MULTILINE)[1:]
        return [" ".join(text.split()) for text in found if text.startswith(platform)]


@pytest.fixture
def examined(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    before = config.pjrt_plugins
    yield Doctor(tmp_path, capsys)
    config.update("pjrt_plugins", before)


def only(problems: list[str]) -> str:
    """The one problem, which has one fix."""
    assert len(problems) == 1, problems
    assert problems[0].count("fix: ") == 1
    return problems[0]


def test_all_is_well(examined: Doctor) -> None:
    text = examined("--platform", "cpu")
    assert examined.code == 0
    for part in ("versions\n", "jaxlib ", "environment\n", "platforms\n", "cpu   works: 1 device", "pinned_host"):
        assert part in text
    assert text.rstrip().endswith("programs run on: cpu")
    assert max(map(len, text.splitlines())) < 200


def test_the_command() -> None:
    """The exit code of the process, and commands that are not there."""
    command = [sys.executable, "-m", "xlamini"]
    run = subprocess.run([*command, "doctor", "--platform", "abacus"], capture_output=True, text=True)
    assert run.returncode == 1
    assert "  abacus not tried: there is no such platform" in run.stdout
    assert "asked for and not working: abacus" in run.stdout
    run = subprocess.run([*command, "doctr"], capture_output=True, text=True)
    usage = "usage: python -m xlamini {doctor,explain,rules,inspect,run,profile,jax-wheel}"
    assert run.returncode == 2 and usage in run.stderr
    assert "\n  doctor     What works on this machine.\n" in run.stderr
    assert "\n  jax-wheel  Write a wheel called jax" in run.stderr


def test_plugin_that_is_not_installed(examined: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hardware._CHECKS, "rocm", lambda: None)
    broken.with_device(examined.folder, "rocm")
    examined("--platform", "rocm")
    assert examined.code == 1
    assert "its plugin is not installed fix: pip install jax-rocm7-plugin" in only(examined.problems("rocm"))


def test_no_device(examined: Doctor) -> None:
    if hardware.missing("tpu") is None:
        pytest.skip("there is a TPU")
    broken.damaged(examined.folder / "libtpu/libtpu.so")
    examined("--platform", "tpu")
    assert examined.code == 1
    assert "there is no TPU (no /dev/accel0" in only(examined.problems("tpu: there"))
    assert "xlamini.target" in examined.text
    assert "not tried: there is no TPU" in examined() and examined.code == 0


def test_no_driver(examined: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_NVIDIA", ("/dev/null",))
    if hardware.missing("cuda") is None:
        pytest.skip("NVIDIA's driver is installed")
    broken.damaged(examined.folder / "jax_plugins/xla_cuda13/xla_cuda_plugin.so")
    examined("--platform", "cuda")
    assert examined.code == 1
    found = only(examined.problems("cuda: NV"))
    assert "driver is not installed (no libcuda.so.1) fix: install NVIDIA's driver" in found


@needs_compiler
def test_no_cudnn(examined: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hardware._CHECKS, "cuda", lambda: None)
    broken.with_device(examined.folder, "cuda")
    broken.without_cudnn(examined.folder)
    broken.plugin(examined.folder / "jax_plugins/xla_cuda13/xla_cuda_plugin.so")
    text = examined("--platform", "cuda")
    assert examined.code == 1
    found = only(examined.problems("cuda: libraries"))
    assert "cuDNN (missing, needs 91200)" in found and 'fix: pip install "jax-cuda13-plugin[with-cuda]==' in found
    assert "CUDA      CUDA runtime 13000, cuDNN missing" in text
    assert "memory    up to 75% of the device, taken at the start, allocator default" in text


@needs_compiler
def test_version_pair(examined: Doctor) -> None:
    examined.by_path(toy=broken.plugin(examined.folder / "toy.so", minor=1))
    examined("--platform", "toy")
    assert examined.code == 1
    found = only(examined.problems("toy"))
    for part in ("the plugin and jaxlib do not fit", "version 0.1 is older", "--upgrade jaxlib"):
        assert part in found


def test_kernels_of_another_release(examined: Doctor) -> None:
    broken.package(examined.folder, "jax-cuda13-plugin", "0.9.0")
    examined("--platform", "cuda")
    found = only([p for p in examined.problems("cuda") if "solvers" in p])
    assert "jax-cuda13-plugin 0.9.0 does not fit jaxlib" in found and 'fix: pip install "jax-cuda13-plugin' in found


def test_no_kernels(examined: Doctor) -> None:
    broken.package(examined.folder, "jax-cuda12-pjrt", "0.10.2")
    examined("--platform", "cuda")
    found = only([p for p in examined.problems("cuda") if "solvers" in p])
    assert "jax-cuda12-plugin is not installed: no solvers on the GPU" in found
    assert 'fix: pip install "jax-cuda12-plugin[with-cuda]==' in found


def test_two_plugins(examined: Doctor) -> None:
    for number in (12, 13):
        broken.damaged(examined.folder / f"jax_plugins/xla_cuda{number}/xla_cuda_plugin.so")
    examined("--platform", "cpu")
    assert examined.code == 0
    found = only([p for p in examined.problems("cuda") if "cuda12" in p])
    assert "wheel jax-cuda13-pjrt is used, wheel jax-cuda12-pjrt is not" in found
    assert found.endswith("fix: pip uninstall jax-cuda12-pjrt")


def test_bad_path(examined: Doctor) -> None:
    examined.by_path(toy=examined.folder / "nowhere.so")
    examined("--platform", "toy,cpu")
    assert examined.code == 1
    found = only(examined.problems("toy"))
    assert "XLAMINI_PJRT_PLUGINS names" in found and "nowhere.so" in found and "fix: correct the path" in found


def test_variable_without_a_path(examined: Doctor) -> None:
    config.update("pjrt_plugins", "toy=/lib/toy.so")
    examined("--platform", "cpu")
    assert examined.code == 1
    found = only(examined.problems("XLAMINI"))
    assert "takes name:/path.so, several separated by commas, but has 'toy=/lib/toy.so'" in found
    assert found.endswith("or unset XLAMINI_PJRT_PLUGINS")


@pytest.mark.full
@pytest.mark.parametrize(
    "variable", [{"XLAMINI_PLATFORMS": "cpu,"}, {"XLAMINI_PJRT_PLUGINS": "toy"}], ids=lambda given: next(iter(given))
)
def test_variables_that_stop_programs_stop_the_doctor(variable: dict[str, str]) -> None:
    """What it says is what a program does: none runs."""
    environment = {**os.environ, **variable}
    program = [sys.executable, "-c", "import xlamini; xlamini.numpy.ones(3)"]
    assert b"PlatformError" in subprocess.run(program, capture_output=True, env=environment).stderr
    command = [sys.executable, "-m", "xlamini", "doctor"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 1
    assert f"or unset {next(iter(variable))}" in run.stdout
    assert run.stdout.rstrip().endswith("no program runs before the first problem is mended")


@pytest.mark.full
@needs_compiler
def test_plugins_that_do_not_load(examined: Doctor) -> None:
    folder = examined.folder
    examined.by_path(
        ends=broken.plugin(folder / "ends.so", "abort()"),
        leaves=broken.plugin(folder / "leaves.so", "_exit(3)"),
        waits=broken.plugin(folder / "waits.so", "for (;;) sleep(1)"),
        other=broken.no_plugin(folder / "other.so"),
        damaged=broken.damaged(folder / "damaged.so"),
        needy=broken.plugin_that_needs(folder / "needy.so", "nothere"),
    )
    examined("--platform", "ends,leaves,waits,other,damaged,needy", "--timeout", "15")
    assert examined.code == 1
    assert "its process was ended by SIGABRT after step 'import'" in only(examined.problems("ends"))
    assert "its process ended with code 3 after step 'import'" in only(examined.problems("leaves"))
    found = only(examined.problems("waits"))
    assert "it did not answer within 15 s, after step 'import' fix: end other programs" in found
    assert "GetPjrtApi not found" in only(examined.problems("other"))
    assert "the plugin's file is damaged" in only(examined.problems("damaged"))
    assert "fix: reinstall the package that brings damaged" in only(examined.problems("damaged"))
    assert "a library that the plugin needs is missing" in only(examined.problems("needy"))
    assert "libnothere.so" in only(examined.problems("needy"))
    assert "cpu   works" in examined.text


def test_secrets_are_not_shown(examined: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_API_TOKEN", "hidden")
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/tmp/x")
    text = examined("--platform", "cpu")
    assert "hidden" not in text and "--xla_dump_to=/tmp/x" in text


def test_environment_info(capsys: pytest.CaptureFixture[str]) -> None:
    xlamini.print_environment_info()
    printed = capsys.readouterr().out
    assert printed.rstrip() == xlamini.print_environment_info(return_string=True)
    assert "python:" in printed and f"devices:           cpu, {xlamini.device_count()} local devices" in printed
