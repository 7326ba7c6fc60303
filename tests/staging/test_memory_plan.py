"""`jit(f).memory_plan`: closed forms, the compiler's figures, and what it says of the values at the peak."""
from __future__ import annotations

import dataclasses
import json
import linecache
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.support.memory_programs import PROGRAMS, Program, compared
from xlamini import lax
from xlamini.staging.compile.memory_plan import TOO_LARGE, _largest, with_bytes_of

pytestmark = pytest.mark.usefixtures("optimized")

MATRIX = np.ones((32, 32), np.float32)
KIB = 1024
BYTES = 4 * KIB
"""The size of MATRIX."""


def plan_of(fun: Any, *args: Any, **options: Any) -> Any:
    return xlamini.jit(fun, **options).memory_plan(*args)


def test_arguments_results_and_a_stored_product() -> None:
    plan = plan_of(lambda a, b: jnp.tanh(a @ b) @ b, MATRIX, MATRIX)
    assert (plan.arguments, plan.results, plan.temporaries) == (2 * BYTES, BYTES, BYTES)
    assert plan.peak == 4 * BYTES


def test_elementwise_chains_are_not_stored() -> None:
    assert plan_of(lambda a: (jnp.sin(a) * 2.0 + 1.0).sum(), MATRIX).temporaries == 0


def test_an_expensive_value_with_two_readers_is_stored() -> None:
    def program(a: Any) -> Any:
        b = jnp.exp(a)
        return b.sum(0), b.sum(1)

    assert plan_of(program, MATRIX).temporaries == BYTES


def test_an_update_is_in_place() -> None:
    def program(a: Any, i: Any) -> Any:
        b = (a @ a).at[i].add(1.0)
        return lax.dynamic_update_slice(b, a[:2], (i, i)) @ a

    assert BYTES < plan_of(program, MATRIX, 3).temporaries < 1.1 * BYTES  # the index and a row beside


@pytest.mark.full
def test_products_that_wait_for_nothing_are_alive_together() -> None:
    """XLA orders a program for the CPU's threads."""

    def program(x: Any, weights: Any) -> Any:
        y = x
        for w in weights:
            y = y @ w + x @ w
        return y

    args = jnp.ones((256, 256)), [jnp.ones((256, 256))] * 8
    compiled = xlamini.jit(program).lower(*args).compile().memory_analysis().temp_size_in_bytes
    assert compiled > 6 * args[0].nbytes
    assert plan_of(program, *args).temporaries == pytest.approx(compiled, rel=0.25)


def test_a_donated_argument_is_where_the_result_is() -> None:
    kept, donated = (plan_of(lambda a: a + 1, MATRIX, donate_argnums=n) for n in ((), (0,)))
    assert (kept.peak, kept.donation_saves, kept.donated) == (2 * BYTES, BYTES, 0)
    assert (donated.peak, donated.donation_saves, donated.donated) == (BYTES, 0, BYTES)


def test_a_value_kept_for_the_backward_pass_is_named() -> None:
    def loss(w: Any, x: Any) -> Any:
        hidden = jnp.exp(x @ w)
        return (hidden @ w).sum()

    plan = plan_of(xlamini.grad(loss), MATRIX, MATRIX)
    (value,) = [value for value in plan.held if value.kept_for_backward]
    file, _, number = value.line.rpartition(":")
    assert linecache.getline(file, int(number)).strip() == "hidden = jnp.exp(x @ w)"
    assert (value.variable, value.direction, value.bytes) == ("hidden", "forward", BYTES)
    assert plan.kept_for_backward == BYTES
    assert "kept for the backward pass of" in repr(plan) and "xlamini.checkpoint keeps fewer of them" in repr(plan)
    assert json.loads(json.dumps(plan.as_dict()))["held"][0]["bytes"] == BYTES


def test_the_peak_is_inside_of_a_loop() -> None:
    def program(x: Any) -> Any:
        return lax.fori_loop(0, 9, lambda _, c: jnp.tanh(c @ c) @ c, x)

    plan = plan_of(program, MATRIX)
    assert plan.temporaries == 2 * BYTES  # the first product and the second one
    assert "jnp.tanh(c @ c) @ c" in linecache.getline(*_split(plan.at))


def test_the_largest_batch_that_fits() -> None:
    plan = plan_of(lambda w, x: jnp.tanh(x @ w).sum(), MATRIX, np.ones((8, 32), np.float32))
    largest = plan.largest(batch=8, limit=10**6)
    peak = lambda n: plan_of(lambda w, x: jnp.tanh(x @ w).sum(), MATRIX, np.ones((n, 32), np.float32)).peak
    assert peak(largest) <= 10**6 < peak(largest + 1)
    with pytest.raises(ValueError, match="not even a size of 1 fits into 10 bytes; it needs 4"):
        plan.largest(batch=8, limit=10)
    with pytest.raises(ValueError, match="no argument has a leading dimension batch=7"):
        plan.largest(batch=7, limit=10**6)
    with pytest.raises(ValueError, match=r"give target=xlamini.target\('gpu:h200'\), or limit="):
        plan.largest(batch=8)
    with pytest.raises(TypeError, match=r"target must be made by xlamini.target\('gpu:h200'\), got 'gpu:t4'"):
        plan.largest(batch=8, target="gpu:t4")
    small = plan_of(lambda w, x: x * 2.0, MATRIX, np.ones(1, np.float32))
    assert small.largest(batch=1, limit=BYTES + 80) == 10


def test_stages_have_a_plan_without_a_function() -> None:
    lowered = xlamini.jit(lambda x: x @ x).lower(MATRIX)
    assert lowered.memory_plan().peak == lowered.compile().memory_plan().peak == 2 * BYTES
    with pytest.raises(TypeError, match=r"use jit\(f\).memory_plan"):
        lowered.memory_plan().largest(batch=32, limit=10**6)


@pytest.mark.full
def test_what_is_not_known_is_said() -> None:
    def program(x: Any) -> Any:
        return xlamini.pure_callback(np.sin, xlamini.ShapeDtypeStruct(x.shape, x.dtype), x)

    (sentence,) = plan_of(program, MATRIX).left_out
    assert "runs code whose memory is not known" in sentence
    assert "Left out: " in repr(plan_of(program, MATRIX))


def test_a_loop_whose_condition_holds_as_much_as_its_body() -> None:
    norm = xlamini.jit(lambda x: jnp.sqrt((x * x).sum()))
    plan = plan_of(lambda x: lax.while_loop(lambda x: norm(x) < 9, lambda x: jnp.exp(x) * norm(x), x), MATRIX)
    assert plan.peak >= 2 * BYTES


@pytest.mark.full
def test_recomputation_saves_on_accelerators_only() -> None:
    """On the CPU XLA removes the barriers and merges the recomputation with the forward pass."""
    plain, remat = (PROGRAMS[name] for name in ("transformer", "transformer with remat"))
    kept, saved = (xlamini.jit(p.fun).memory_plan(*p.args) for p in (plain, remat))
    assert kept.peak == pytest.approx(saved.peak, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=list(PROGRAMS))
def test_peaks_are_those_of_the_compiler(program: Program) -> None:
    planned, compiled = compared(program)
    assert planned == pytest.approx(compiled, rel=0.25)


def _split(where: str) -> tuple[str, int]:
    file, _, number = where.rpartition(":")
    return file, int(number)


class _Stats:
    argument_size_in_bytes, output_size_in_bytes, alias_size_in_bytes, temp_size_in_bytes = 100, 50, 20, 7


def test_a_compiler_says_the_bytes_of_a_plan() -> None:
    plan = dataclasses.replace(plan_of(lambda a, b: jnp.tanh(a @ b) @ b, MATRIX, MATRIX), platform="tpu")
    asked = with_bytes_of(plan, _Stats())
    assert (asked.arguments, asked.results, asked.donated, asked.temporaries, asked.peak) == (100, 50, 20, 7, 137)
    assert (plan.on_chip, asked.on_chip) == (0, BYTES - 7) and asked.held == plan.held
    assert "are on the chip, as bfloat16 or fused" in repr(asked)
    assert asked.left_out[-1] == "the bytes are those of the compiler for the tpu, what is held is not"


@pytest.mark.parametrize("peak", [lambda n: 1000 + 7 * n, lambda n: -(-n // 64) * 999, lambda n: n**2 // 9])
@pytest.mark.parametrize("refused", [10**4, 10**9])
def test_the_largest_size_is_found_in_few_steps(peak: Any, refused: int) -> None:
    """Of peaks that are linear, in steps or curved, also where the compiler refuses what is much too large."""
    asked = []

    def peak_of(size: int) -> int:
        asked.append(size)
        return peak(size) if peak(size) < refused else TOO_LARGE

    found = _largest(peak_of, 8, 9000)
    assert peak_of(found) <= 9000 < peak_of(found + 1) and len(asked) < 24
    assert _largest(lambda n: n, 8, 8) == 8 and _largest(lambda n: n, 64, 1) == 1
    with pytest.raises(ValueError, match="it needs more than the compiler can place"):
        _largest(lambda n: TOO_LARGE, 8, 1000)
