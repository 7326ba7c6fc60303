"""Flags: global value, thread's value, environment, and what the C++ dispatch path sees of them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import timeit

import pytest

from xlamini.core.flags.config import (
    Flag,
    config,
    default_matmul_precision,
    disable_jit,
    enable_checks,
    enable_x64,
    flags,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    trace_context_key,
    tracing,
)
from xlamini.core.flags.device_flags import num_cpu_devices
from xlamini.core.flags.environment_variables import ignored, warn_of_names


@pytest.fixture(autouse=True)
def restored():
    before = {name: flag.get_global() for name, flag in flags.items()}
    yield
    for name, value in before.items():
        flags[name].set_global(value)


@pytest.mark.parametrize("name", ["enable_x64", "jax_enable_x64"])
def test_update_and_read_with_and_without_prefix(name):
    config.update(name, True)
    assert config.enable_x64 is config.jax_enable_x64 is config.read(name) is True
    assert enable_x64.value is True
    assert config.values["enable_x64"] is True


def test_context_manager_restores_and_nests():
    with enable_x64(True):
        with enable_x64(False):
            assert not enable_x64.value
        assert enable_x64.value
    assert not enable_x64.value


def test_context_manager_restores_after_an_error():
    with pytest.raises(KeyError), disable_jit():
        raise KeyError
    assert not disable_jit.value


def test_override_hides_a_later_global_value_until_it_ends():
    with numpy_rank_promotion("raise"):
        config.update("numpy_rank_promotion", "warn")
        assert numpy_rank_promotion.value == "raise"
    assert numpy_rank_promotion.value == "warn"


def test_flag_is_a_decorator():
    @default_matmul_precision("float32")
    def read():
        return default_matmul_precision.value

    assert (read(), read(), default_matmul_precision.value) == ("float32", "float32", None)


def test_override_is_of_one_thread_only():
    seen = []
    with enable_x64(True):
        thread = threading.Thread(target=lambda: seen.append(enable_x64.value))
        thread.start()
        thread.join()
    assert seen == [False]


@pytest.mark.parametrize(
    "flag, value, in_key",
    [
        (enable_x64, True, True),
        (disable_jit, True, True),
        (numpy_dtype_promotion, "strict", True),
        (numpy_rank_promotion, "raise", True),
        (default_matmul_precision, "highest", True),

        (enable_checks, True, False),
    ],
)
def test_trace_context_key_holds_what_changes_a_trace(flag, value, in_key):
    before = trace_context_key()
    with flag(value):
        assert (trace_context_key() != before) is in_key
    assert trace_context_key() == before
    hash(before)


def test_a_rewrite_is_the_same_while_tracing_or_not():
    before = trace_context_key()
    tracing.set_local(True)
    assert trace_context_key() == before
    tracing.set_local(False)


@pytest.mark.parametrize(
    "name, value, error, text",
    [
        ("enable_x46", True, AttributeError, "did you mean enable_x64"),
        ("jax_disable_jitt", True, AttributeError, "did you mean disable_jit"),
        ("enable_x64", 1, TypeError, "takes a value of type bool, but was given 1 of type int"),
        ("numpy_rank_promotion", "rais", ValueError, "did you mean raise"),
        ("numpy_rank_promotion", None, TypeError, "'allow' or 'warn' or 'raise'"),
        ("platforms", 3, TypeError, "a value of type str or None"),
        ("num_cpu_devices", True, TypeError, "type int, but was given True of type bool"),
    ],
)
def test_wrong_updates(name, value, error, text):
    with pytest.raises(error, match=text):
        config.update(name, value)


def test_wrong_reads_and_writes():
    with pytest.raises(AttributeError, match="no flag 'enable_y64'"):
        _ = config.enable_y64
    with pytest.raises(AttributeError, match=r"config.update\('enable_x64', True\)"):
        config.enable_x64 = True
    with pytest.raises(TypeError, match="enable_x64 takes a value of type bool"):
        enable_x64("yes")
    with pytest.raises(TypeError, match=r"numpy_rank_promotion\(\) takes the value"):
        numpy_rank_promotion()
    assert not hasattr(config, "__wrapped__")


def read_in_new_process(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", f"from xlamini.core.flags.config import config; {code}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.full
def test_environment_gives_the_first_value():
    result = read_in_new_process(
        "print(config.enable_x64, config.num_cpu_devices, config.numpy_rank_promotion)",
        XLAMINI_ENABLE_X64="True",
        XLAMINI_NUM_CPU_DEVICES="8",
        XLAMINI_NUMPY_RANK_PROMOTION="warn",
    )
    assert result.stdout.split() == ["True", "8", "warn"]


@pytest.mark.parametrize(
    "variable, value, accepted, default",
    [
        ("XLAMINI_ENABLE_X64", "maybe", "1, true, yes or on, or 0, false, no or off", False),
        ("XLAMINI_NUM_CPU_DEVICES", "four", "an integer", -1),
        ("XLAMINI_MEMORY_FRACTION", "half", "a number", None),
        ("XLAMINI_NUMPY_RANK_PROMOTION", "rais", "allow or warn or raise; did you mean raise?", "allow"),
    ],
)
def test_a_wrong_value_in_the_environment_is_ignored_with_a_warning(monkeypatch, variable, value, accepted, default):
    monkeypatch.setenv(variable, value)
    name = variable.removeprefix("XLAMINI_").lower()
    with pytest.warns(UserWarning) as caught:
        assert flags[name]._from_environment(name, default) == default
    assert str(caught[0].message) == (
        f"environment variable {variable}={value!r} is ignored, and {default!r} is used: it takes {accepted}"
    )
    assert ignored.pop() == str(caught[0].message)


@pytest.mark.parametrize(
    "variable, hint",
    [
        ("XLAMINI_PLATFORM", "; did you mean XLAMINI_PLATFORMS"),
        ("XLAMINI_PROCES_ID", "; did you mean XLAMINI_PROCESS_ID"),
        ("XLAMINI_QWERTZ", ""),
    ],
)
def test_a_wrong_name_in_the_environment_is_ignored_with_a_warning(variable, hint):
    with pytest.warns(UserWarning) as caught:
        warn_of_names({"PATH": "", variable: "1", "XLAMINI_ENABLE_X64": "1", "XLAMINI_NUM_PROCESSES": "2"}, flags)
    assert len(caught) == 1
    assert str(caught[0].message).startswith(f"environment variable {variable} is ignored: there is no such flag{hint}")
    assert ignored.pop() == str(caught[0].message)


@pytest.mark.full
def test_the_import_goes_on_after_a_slip_in_the_environment():
    slips = {"XLAMINI_PLATFORM": "cpu", "XLAMINI_NUM_CPU_DEVICES": "four"}
    result = read_in_new_process("print(config.num_cpu_devices)", **slips)
    assert (result.returncode, result.stdout) == (0, "-1\n")
    assert "XLAMINI_PLATFORM is ignored" in result.stderr and "XLAMINI_NUM_CPU_DEVICES='four'" in result.stderr


def test_every_flag_explains_itself():
    for name, flag in flags.items():
        assert isinstance(flag, Flag) and flag.help and name in repr(flag)


def test_reading_is_cheap():
    best = min(timeit.repeat(lambda: num_cpu_devices.value, number=1000, repeat=20)) / 1000
    assert best < 1e-6


def test_contexts_of_tasks_that_overlap_leave_nothing_behind() -> None:
    async def task(value: bool, begin: float, end: float) -> None:
        await asyncio.sleep(begin)
        with enable_x64(value):
            assert enable_x64.value is value
            await asyncio.sleep(end - begin)

    async def tasks() -> None:
        await asyncio.gather(task(True, 0, 0.04), task(False, 0.01, 0.06), task(True, 0.02, 0.03))

    before = enable_x64.value
    with pytest.warns(UserWarning, match="a context of flag enable_x64 ended while one that began later is open") as w:
        asyncio.run(tasks())
    assert {warning.filename for warning in w} == {__file__}
    assert enable_x64.value is before
    with enable_x64(True):
        assert enable_x64.value
    assert enable_x64.value is before


def test_x64_enabled_reads_the_flag() -> None:
    assert config.x64_enabled is False
    with enable_x64(True):
        assert config.x64_enabled is True
    with pytest.raises(AttributeError, match="there is no flag 'x64_enabled'"):
        config.update("x64_enabled", True)
