"""Bodies of loops, branches and nested calls take refs: the reads and writes stay inside, as equations on parts."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.core.program.jaxpr import jaxprs_in
from xlamini.core.program.ref_types import AbstractRef
from xlamini.interpreters.discharge import discharge, written
from xlamini.ref import Ref, addupdate, new_ref

START = np.arange(1, 7, dtype=np.float32).reshape(3, 2)

Step = Callable[[Any, Any], Any]
"""What happens in one iteration: it is given the ref and the number of the iteration, and returns a number."""


def read(r: Any, i: Any) -> Any:
    return r[i, 0] * 2


def write(r: Any, i: Any) -> Any:
    r[i, 1] = r[0, 0] + 3
    return r[i, 1]


def whole(r: Any, i: Any) -> Any:
    r[...] = r[...] * 2 + i
    return r[...].sum()


def add(r: Any, i: Any) -> Any:
    r.addupdate(r[i, :], 0)
    return i * 1.0


def part(r: Any, i: Any) -> Any:
    r.at[i][1] = r.at[i][0] - 1
    return r.T[0, i]


STEPS: dict[str, Step] = {"read": read, "write": write, "whole": whole, "add": add, "part": part}


def by_scan(step: Step, r: Any) -> Any:
    return lax.scan(lambda c, i: (c + step(r, i), step(r, i)), 0.0, jnp.arange(3))


def by_scan_without_carry(step: Step, r: Any) -> Any:
    return lax.scan(lambda c, i: (c, step(r, i)), None, jnp.arange(3), reverse=True)[1]


def by_fori(step: Step, r: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, c: c + step(r, i), 0.0)


def by_fori_of_traced_bounds(step: Step, r: Any) -> Any:
    return lax.fori_loop(0, jnp.int32(r[0, 0]) + 1, lambda i, c: c + step(r, i % 3), 0.0)


def by_while(step: Step, r: Any) -> Any:
    def body(state: Any) -> Any:
        i, c = state
        return i + 1, c + step(r, i)

    return lax.while_loop(lambda state: (state[0] < 3) & (r[0, 0] < 1000), body, (0, 0.0))[1]


def by_bounded_while(step: Step, r: Any) -> Any:
    def body(state: Any) -> Any:
        i, c = state
        return i + 1, c + step(r, i)

    return lax.while_loop(lambda state: state[0] < 2, body, (0, 0.0), max_steps=5)[1]


def by_cond(step: Step, r: Any) -> Any:
    first = lax.cond(r[0, 0] > 0, lambda: step(r, 1), lambda: 0.0)
    return first + lax.cond(r[0, 0] < 0, lambda i: step(r, i), lambda i: r[i, 0], 2)


def by_switch(step: Step, r: Any) -> Any:
    branches = [lambda i: i * 1.0, lambda i: step(r, i) * 1.0, lambda i: step(r, i - 1) + step(r, 0)]
    return sum(lax.switch(jnp.int32(r[0, 0]) + k, branches, 2) for k in range(2))


def by_jit(step: Step, r: Any) -> Any:
    closing = xlamini.jit(lambda i: step(r, i))
    taking = xlamini.jit(lambda ref, i: step(ref, i))
    return closing(1) + taking(r, 2) + closing(0)


def by_nested(step: Step, r: Any) -> Any:
    """A call in a branch in a scan in a loop."""
    call = xlamini.jit(lambda ref, i: step(ref, i) * 1.0)

    def row(c: Any, i: Any) -> Any:
        y = lax.cond(i > 0, lambda: call(r, i), lambda: r[0, 1])
        return c + y, r[i, 0]

    return lax.fori_loop(0, 2, lambda k, c: c + lax.scan(row, 0.0, jnp.arange(3))[0], 0.0)


WAYS = {
    fun.__name__: fun
    for fun in (
        by_scan, by_scan_without_carry, by_fori, by_fori_of_traced_bounds, by_while, by_bounded_while, by_cond,
        by_switch, by_jit, by_nested,
    )
}  # fmt: skip


class InNumpy:
    """An array of NumPy with the methods of a ref."""

    def __init__(self, value: np.ndarray):
        self.value = value

    T = property(lambda self: InNumpy(self.value.T))
    at = property(lambda self: _Parts(self))

    def __getitem__(self, index: Any) -> Any:
        return self.value[index]

    def __setitem__(self, index: Any, new: Any) -> None:
        self.value[index] = new

    def addupdate(self, x: Any, index: Any) -> None:
        self.value[index] += x


class _Parts:
    def __init__(self, of: InNumpy):
        self.of = of

    def __getitem__(self, index: Any) -> InNumpy:
        return InNumpy(self.of.value[index])


def outcome(run: Callable[..., Any], way: str, step: str) -> tuple[Any, np.ndarray]:
    ref = new_ref(jnp.asarray(START))
    out = run(functools.partial(WAYS[way], STEPS[step]))(ref)
    return xlamini.tree.map(np.asarray, out), np.asarray(ref[...])


def in_numpy(way: str, step: str) -> tuple[Any, np.ndarray]:
    ref = InNumpy(START.copy())
    out = in_python(functools.partial(WAYS[way], STEPS[step]))(ref)
    return out, ref.value


def in_python(f: Callable[..., Any]) -> Callable[..., Any]:
    """Each iteration by Python, on a ref that holds a value."""

    def run(ref: Any) -> Any:
        with xlamini.disable_jit():
            return f(ref)

    return run


def check_equal(found: Any, expected: Any) -> None:
    xlamini.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6), found, expected)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("way", WAYS)
def test_values_are_those_of_numpy(way: str, step: str) -> None:
    expected = in_numpy(way, step)
    check_equal(outcome(lambda f: f, way, step), expected)
    check_equal(outcome(xlamini.jit, way, step), expected)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("way", WAYS)
def test_no_body_takes_the_value(way: str, step: str) -> None:
    """The outer program neither reads nor writes the ref for an inner one, which has it among its inputs."""
    ref = new_ref(jnp.asarray(START))
    program = xlamini.make_jaxpr(functools.partial(WAYS[way], STEPS[step]))(ref)
    assert "[...]" not in str(program) or step == "whole"
    inner = [jaxpr for eqn in program.eqns for jaxpr in jaxprs_in(eqn.params)]
    assert any(type(aval) is AbstractRef for jaxpr in inner for aval in jaxpr.in_avals)
    assert {effect.name for effect in program.effects} == ({"read"} if step == "read" else {"read", "write"})
    assert written(program.jaxpr) == ([] if step == "read" else program.jaxpr.invars)
    assert not discharge(program.jaxpr).effects
    assert ref[...].tolist() == START.tolist()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("way", WAYS)
def test_batches(way: str, step: str) -> None:
    def of_value(x: Any) -> Any:
        ref = new_ref(x)
        out = xlamini.jit(functools.partial(WAYS[way], STEPS[step]))(ref)
        return out, ref[...]

    xs = jnp.stack([START, START + 1])
    found = xlamini.vmap(of_value)(xs)
    for i, x in enumerate(xs):
        check_equal(xlamini.tree.map(lambda leaf, i=i: leaf[i], found), of_value(x))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("way", [w for w in WAYS if w not in ("by_while", "by_fori_of_traced_bounds")])
def test_slopes(way: str, step: str) -> None:
    def loss(x: Any, wrap: Callable[..., Any]) -> Any:
        ref = new_ref(x)
        out = wrap(functools.partial(WAYS[way], STEPS[step]))(ref)
        return sum(jnp.sum(leaf) for leaf in xlamini.tree.leaves(out)) + (ref[...] ** 2).sum()

    x = jnp.asarray(START) + 0.25
    expected = xlamini.grad(lambda x: loss(x, in_python))(x)
    check_equal(xlamini.grad(lambda x: loss(x, xlamini.jit))(x), expected)
    check_equal(xlamini.grad(lambda x: loss(x, lambda f: f))(x), expected)


def test_the_text_of_a_loop() -> None:
    def total(r: Any) -> None:
        lax.fori_loop(0, 3, lambda i, _: addupdate(r, i, r[0]), None)

    assert str(xlamini.make_jaxpr(total)(new_ref(jnp.zeros(4)))) == (
        "{ lambda ; a:Ref{f32[4]}. let\n"
        "    _:i32[] = scan[\n"
        "      jaxpr={ lambda ; b:Ref{f32[4]} c:i32[]. let\n"
        "          d:i32[] = add c 1:i32[]\n"
        "          e:f32[] <- b[0]\n"
        "          b[c] += e\n"
        "        in (d,) }\n"
        "      length=3\n"
        "      num_carry=1\n"
        "      num_consts=1\n"
        "      reverse=False\n"
        "      unroll=1\n"
        "    ] a 0:i32[]\n"
        "  in () }"
    )


def test_the_text_of_a_branch() -> None:
    def swap(r: Any, x: Any) -> None:
        lax.cond(x > 0, lambda: r.__setitem__(1, r[0]), lambda: None)

    assert str(xlamini.make_jaxpr(swap)(new_ref(jnp.zeros(4)), 1.0)) == (
        "{ lambda ; a:Ref{f32[4]} b:f32[]. let\n"
        "    c:bool[] = gt b 0.0:f32[]\n"
        "    d:i32[] = convert_element_type[new_dtype=int32 weak_type=False] c\n"
        "    cond[\n"
        "      branches=(\n"
        "        { lambda ; e:Ref{f32[4]}. let  in () }\n"
        "        { lambda ; f:Ref{f32[4]}. let g:f32[] <- f[0]; f[1] <- g in () }\n"
        "      )\n"
        "    ] d a\n"
        "  in () }"
    )


def test_a_loop_carries_what_it_writes_and_no_more() -> None:
    def accumulate(a: Any, b: Any) -> None:
        lax.scan(lambda c, i: (c, addupdate(a, slice(0, 2), b[2:4])), None, jnp.arange(3))

    refs = new_ref(jnp.zeros(4)), new_ref(jnp.ones(4))
    loop = xlamini.make_jaxpr(accumulate, platform="cpu")(*refs).eqns[-1]
    assert loop.params["num_carry"] == 1 and loop.params["num_consts"] == 1
    names = [eqn.primitive.name for eqn in loop.params["jaxpr"].eqns]
    assert sorted(names) == ["add", "dynamic_update_slice", "slice", "slice"]


def test_the_ref_stays_in_its_place() -> None:
    ref = new_ref(jnp.zeros(1000))

    @xlamini.jit
    def fill(ref: Any, xs: Any) -> None:
        lax.scan(lambda c, x: (c, addupdate(ref, 0, x)), None, xs)

    fill(ref, jnp.arange(4.0))
    place = ref.unsafe_buffer_pointer()
    for _ in range(2):
        fill(ref, jnp.arange(4.0))
    assert ref.unsafe_buffer_pointer() == place and ref[0] == 18


def test_a_ref_made_inside_beside_one_that_is_given() -> None:
    def both(given: Any, x: Any) -> Any:
        own = new_ref(jnp.zeros(3))

        @xlamini.jit
        def step(ref: Any, i: Any) -> None:
            own[i] += x
            ref[i] += own[0]

        lax.fori_loop(0, 3, lambda i, c: step(given, i), None)
        return own[...]

    for run in (both, xlamini.jit(both)):
        ref = new_ref(jnp.zeros(3))
        assert run(ref, 2.0).tolist() == [2, 2, 2] and ref[...].tolist() == [2, 2, 2]


def test_transformations_that_take_no_refs_thread_them_inside_of_loops() -> None:
    def run(ref: Any, x: Any) -> Any:
        def body(c: Any, i: Any) -> Any:
            ref[...] += xlamini.vmap(lambda y: y * ref[i])(jnp.arange(3.0))
            slope = xlamini.grad(lambda y: lax.fori_loop(0, 2, lambda k, z: z * ref[k] + write_to(ref, z), y))(x)
            return c + slope, None

        return lax.scan(body, 0.0, jnp.arange(2))[0]

    def write_to(ref: Any, z: Any) -> Any:
        ref[2] += 1.0
        return ref[2] * z

    found = []
    for wrap in (in_python, lambda f: f, xlamini.jit):
        ref = new_ref(jnp.ones(3))
        out = wrap(functools.partial(run, x=1.0))(ref)
        found.append((out, ref[...]))
    check_equal(found[1], found[0])
    check_equal(found[2], found[0])


def test_a_condition_writes_no_ref() -> None:
    def loop(r: Any) -> Any:
        def holds(i: Any) -> Any:
            r[0] = 1.0
            return i < 3

        return lax.while_loop(holds, lambda i: i + 1, 0)

    for run in (loop, xlamini.jit(loop)):
        with pytest.raises(TypeError, match="a condition only reads; write it in body_fun"):
            run(new_ref(jnp.zeros(3)))


def test_a_ref_is_closed_over_or_given_but_not_both() -> None:
    def run(ref: Any) -> None:
        xlamini.jit(lambda given: given.__setitem__(0, ref[1]))(ref)

    with pytest.raises(ValueError, match="both closed over"):
        xlamini.jit(run)(new_ref(jnp.zeros(3)))


def test_a_program_with_loops_on_refs_is_evaluated_on_refs() -> None:
    program = xlamini.make_jaxpr(functools.partial(by_nested, write))(new_ref(jnp.asarray(START)))
    again = xlamini.extend.jaxpr_as_fun(program)
    expected = outcome(in_python, "by_nested", "write")
    for run in (again, xlamini.jit(again)):
        ref = new_ref(jnp.asarray(START))
        check_equal((run(ref)[0], ref[...]), expected)
    outer = xlamini.make_jaxpr(again)(new_ref(jnp.asarray(START)))
    assert "[...]" not in str(outer) and isinstance(ref, Ref)


def test_costs_are_those_of_the_parts() -> None:
    def add_rows(r: Any) -> None:
        lax.fori_loop(0, 10, lambda i, _: addupdate(r, (i, slice(None)), jnp.ones(4)), None)

    cost = xlamini.jit(add_rows).cost(new_ref(jnp.zeros((1000, 4))))
    assert 40 <= cost.flops < 200 and cost.bytes < 2000


def test_under_checks_and_lints() -> None:
    ref = new_ref(jnp.asarray(START))
    with xlamini.enable_checks(True):
        check_equal(xlamini.jit(functools.partial(by_nested, part))(ref), outcome(in_python, "by_nested", "part")[0])
    assert xlamini.lint(functools.partial(by_scan, add))(ref) is not None
