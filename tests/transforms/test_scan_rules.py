"""The programs that scan's rules make: what is kept for the way back, what is left out, and how they print."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import debug, grad, jit, lax, make_jaxpr, numpy as jnp, vmap
from xlamini.core.program.jaxpr import Equation, Jaxpr, close_over, subjaxprs
from xlamini.core.program.primitive import Cost
from xlamini.interpreters.dce import dce
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.staging.run.programs import shared

W = np.linspace(-0.5, 0.5, 9, dtype=np.float32).reshape(3, 3)
H = np.array([0.1, -0.2, 0.3], np.float32)
XS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def program(fun: Callable[..., Any], *args: Any) -> Jaxpr:
    """The program of `fun` without what it does not need, captured values first among its inputs."""
    jaxpr = close_over(make_jaxpr(fun)(*args).jaxpr)
    return dce(jaxpr, (True,) * len(jaxpr.outvars), True)[0]


def scans(jaxpr: Jaxpr) -> list[Equation]:
    """The scans in the open."""
    return [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan"]


def names(jaxpr: Jaxpr) -> list[str]:
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def stacked(eqn: Equation) -> list[tuple[int, ...]]:
    """The shapes of a scan's stacked outputs."""
    return [v.aval.shape for v in eqn.outvars[eqn.params["num_carry"] :]]


def bytes_between(fun: Callable[..., Any], *args: Any) -> int:
    """The bytes that the gradient's first scan makes for the second one alone."""
    first, second = scans(program(grad(fun, tuple(range(len(args)))), *args))
    return sum(v.aval.nbytes for v in first.outvars if v in second.invars)


# --- residuals


def test_residuals_are_stacked_once() -> None:
    def recurrent(w: Any, h: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (jnp.tanh(w @ h + x), None), h, xs)[0].sum()

    forward, _ = scans(program(grad(recurrent, (0, 1, 2)), W, H, XS))
    assert stacked(forward) == [(4, 3), (4, 3)]  # the carry, and the derivative of tanh
    assert bytes_between(recurrent, W, H, XS) == 2 * 4 * 3 * 4


def test_what_all_steps_share_is_not_stacked() -> None:
    def f(w: Any, h: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (jnp.exp(w) @ h + x, None), h, xs)[0].sum()

    made = program(grad(f, (0, 1)), W, H, XS)
    forward, backward = scans(made)
    assert stacked(forward) == [(4, 3)]
    assert names(made).count("exp") == 1 and "exp" not in names(forward.params["jaxpr"])
    shared = next(eqn.outvars[0] for eqn in made.eqns if eqn.primitive.name == "exp")
    assert shared in forward.invars and shared in backward.invars


def test_what_all_steps_share_is_found_inside_calls() -> None:
    inner = jit(lambda w, h: jnp.exp(w) @ h)

    def f(w: Any, h: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (inner(w, h) + x, None), h, xs)[0].sum()

    assert bytes_between(f, W, H, XS) == 4 * 3 * 4


def test_slices_of_inputs_and_outputs_are_not_stacked_again() -> None:
    def by_inputs(h: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (h * x, None), h, xs)[0].sum()

    assert [stacked(eqn) for eqn in scans(program(grad(by_inputs), H, XS))] == [[]]

    def body(h: Any, x: Any) -> Any:
        e = jnp.exp(h)
        return e * x, e

    def by_outputs(h: Any, xs: Any) -> Any:
        return (lax.scan(body, h, xs)[1] ** 2).sum()

    first, second = scans(program(xlamini.value_and_grad(by_outputs), H, XS))
    assert stacked(first) == [(4, 3)]
    assert first.outvars[-1] in second.invars and first.invars[-1] in second.invars


def test_a_carry_that_is_an_output_too_is_stacked_once() -> None:
    def body(h: Any, x: Any) -> Any:
        new = jnp.exp(h + x)
        return new, new

    first, second = scans(program(grad(lambda h: lax.scan(body, h, XS)[1].sum()), H))
    assert stacked(first) == [(4, 3)]
    assert first.outvars[-1] in second.invars


def test_a_checkpointed_step_keeps_the_carry_alone() -> None:
    def step(w: Any, h: Any, x: Any) -> Any:
        return jnp.tanh(jnp.sin(w @ h) * jnp.exp(x))

    def f(step: Any) -> Any:
        return lambda w, h, xs: lax.scan(lambda h, x: (step(w, h, x), None), h, xs)[0].sum()

    assert bytes_between(f(xlamini.checkpoint(step)), W, H, XS) == 4 * 3 * 4
    assert bytes_between(f(step), W, H, XS) > 3 * 4 * 3 * 4


def test_partial_evaluation_parts_the_loop() -> None:
    def f(w: Any, h: Any, n: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: ((c[0] * jnp.sin(w), c[1] + 1), (c[0] * c[1], c[1] * x)), (h, n), xs)

    jaxpr = program(f, H, H, 1, XS)
    parted = partial_eval(jaxpr, (False, True, False, False))
    assert parted.unknown_out == (True, False, True, False)
    (known,), (unknown,) = scans(parted.known), scans(parted.unknown)
    assert "sin" in names(parted.known) and "sin" not in names(known.params["jaxpr"])
    assert names(unknown.params["jaxpr"]).count("mul") == 2
    assert (known.params["num_carry"], unknown.params["num_carry"]) == (1, 1)


# --- dead code


def test_unused_carries_inputs_and_outputs_vanish() -> None:
    def f(a: Any, b: Any, w: Any, xs: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            a, b = carry
            return (a + x[0], jnp.sin(b) * w), (a * x[0], b, x[1])

        (a, _), (ys, _, _) = lax.scan(body, (a, b), (xs, xs + 1))
        return a, ys

    (eqn,) = scans(program(f, H, H, W[0], XS))
    assert (eqn.params["num_carry"], eqn.params["num_consts"], len(eqn.invars), len(eqn.outvars)) == (1, 0, 2, 2)
    assert names(eqn.params["jaxpr"]) == ["add", "mul"]


def test_carries_that_others_need_stay() -> None:
    def f(a: Any, b: Any, c: Any, xs: Any) -> Any:
        return lax.scan(lambda s, x: ((s[1] + x, s[0] * x, s[2] * 2), None), (a, b, c), xs)[0][0]

    (eqn,) = scans(program(f, H, H, H, XS))
    assert eqn.params["num_carry"] == 2
    assert scans(program(lambda xs: lax.scan(lambda c, x: (c + x, c), H, xs) and xs, XS)) == []


def test_a_gradient_leaves_out_what_it_does_not_need() -> None:
    def f(w: Any, h: Any, xs: Any) -> Any:
        (h, _), _ = lax.scan(lambda c, x: ((jnp.sin(c[0]) * w, c[1] + jnp.cos(c[1])), c[1]), (h, h), xs)
        return h.sum()

    first, second = scans(program(grad(f), H, H, XS))
    assert (first.params["num_carry"], second.params["num_carry"]) == (1, 2)
    assert [v.aval.shape for v in second.invars].count((4, 3)) == 2


# --- effects


def test_effects_happen_in_every_step(capfd: pytest.CaptureFixture[str]) -> None:
    def f(h: Any, xs: Any) -> Any:
        def body(h: Any, x: Any) -> Any:
            debug.print("step {}", x, ordered=True)
            return h * x, None

        return lax.scan(body, h, xs, reverse=True, unroll=2)[0]

    expected = [f"step {x}" for x in (3.0, 2.0, 1.0)]
    for run in (f, jit(f), grad(f), lambda h, xs: lax.scan(lambda c, x: (f(c, xs), None), h, None, length=1)[0]):
        run(1.0, np.arange(1.0, 4.0, dtype=np.float32))
        xlamini.effects_barrier()
        assert capfd.readouterr().out.split("\n")[:-1] == expected


def test_a_loop_with_effects_alone_stays(capfd: pytest.CaptureFixture[str]) -> None:
    def body(i: Any, x: Any) -> Any:
        debug.print("{}", i)
        return i + 1, None

    jit(lambda: lax.scan(body, 0, None, length=2) and None)()
    xlamini.effects_barrier()
    assert sorted(capfd.readouterr().out.split()) == ["0", "1"]


# --- linear maps


@pytest.mark.full
def test_linear_transpose_of_a_loop_with_a_counter() -> None:
    def f(h: Any, xs: Any) -> Any:
        (_, h), ys = lax.scan(lambda c, x: ((c[0] + 1, c[1] * jnp.sin(c[0] * 1.0) + x), c[1] * c[0]), (1, h), xs)
        return h, ys

    turned = xlamini.linear_transpose(f, H, XS)
    ct = (H * 2, XS * 3)
    for found, expected in zip(turned(ct), xlamini.vjp(f, H, XS)[1](ct), strict=True):
        assert_close(found, expected, 1e-5)
    back = xlamini.linear_transpose(lambda h, xs: turned((h, xs)), H, XS)(turned(ct))
    for found, expected in zip(back, f(*turned(ct)), strict=True):
        assert_close(found, expected, 1e-5)


def test_transpose_with_a_carry_that_becomes_linear() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (c * 2.0 + x, c * 3.0), jnp.zeros(3), None, length=3)

    ct = (H, XS[:3])
    (found,) = xlamini.linear_transpose(f, H)(ct)
    assert_close(found, xlamini.vjp(f, H)[1](ct)[0], 1e-5)


def test_cotangents_that_are_zero_stay_symbolic() -> None:
    def f(a: Any, b: Any, xs: Any) -> Any:
        (a, b), _ = lax.scan(lambda c, x: ((c[0] * x, c[1] * x), None), (a, b), xs)
        return a

    made = program(lambda ct: xlamini.linear_transpose(lambda a, b: f(a, b, XS), H, H)(ct), H)
    (eqn,) = scans(made)
    assert eqn.params["num_carry"] == 1


# --- programs


@pytest.mark.slow
def test_a_fresh_function_in_each_turn_compiles_once() -> None:
    xlamini.clear_caches()
    for i in range(5):
        lax.scan(lambda c, x: (jnp.sin(c) * x, c), H * i, XS)
        grad(lambda h: lax.scan(lambda c, x: (jnp.cos(c) * x, c), h, XS)[0].sum())(H * i)
    assert len(shared.programs) == 2


def test_one_loop_is_lowered() -> None:
    run = lambda unroll, length=12: jit(
        lambda h: lax.scan(lambda c, x: (jnp.sin(c), c), h, None, length=length, unroll=unroll)
    ).lower(1.0).as_text()
    assert [run(k).count("stablehlo.while") for k in (1, 3, 5, 6, 12, 20, 0, True)] == [1, 1, 1, 1, 0, 0, 0, 0]
    assert [run(k).count("stablehlo.sine") for k in (1, 3, 5, 12, 0)] == [1, 3, 7, 12, 12]
    assert run(1, 1).count("stablehlo.while") == run(1, 0).count("stablehlo.sine") == 0


def test_cost_is_the_body_times_the_length() -> None:
    (eqn,) = scans(program(lambda h: lax.scan(lambda c, x: (jnp.sin(c), None), h, None, length=7)[0], H))
    (inner,) = eqn.params["jaxpr"].eqns
    of_step = inner.primitive.cost(*[a.aval for a in inner.invars], **inner.params)
    assert eqn.primitive.cost(*[a.aval for a in eqn.invars], **eqn.params) == Cost(*(7 * n for n in of_step))


def test_names_of_axes_are_seen_inside() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (c + lax.psum(c, "i"), lax.axis_index("i")), x, None, length=2)

    found, places = vmap(f, axis_name="i")(np.arange(3.0, dtype=np.float32))
    assert_close(found, np.arange(3.0) + 3 + 12, 1e-6)
    assert_close(places, [[0, 0], [1, 1], [2, 2]], 0)
    assert_close(vmap(lambda _: f(1.0)[0], axis_name="i", axis_size=2)(np.zeros(2)), [9, 9], 0)


def test_printed_as_by_jax(snapshot: Callable[[str, str], None]) -> None:
    """JAX 0.10.2 prints the same, but for `out_sharding` and the derivative of tanh."""

    def loss(w: Any, h: Any, xs: Any) -> Any:
        h, ys = lax.scan(lambda h, x: (jnp.tanh(w @ h + x), h.sum()), h, xs)
        return h.sum() + ys.sum()

    snapshot("jaxpr_scan_grad", str(make_jaxpr(grad(loss, (0, 1, 2)))(np.ones((4, 4)), np.ones(4), np.ones((3, 4)))))
    assert str(make_jaxpr(lambda h, xs: lax.scan(lambda h, x: (h * x, h), h, xs, reverse=True))(H, XS)) == SCAN


SCAN = """\
{ lambda ; a:f32[3] b:f32[4,3]. let
    c:f32[3] d:f32[4,3] = scan[
      jaxpr={ lambda ; e:f32[3] f:f32[3]. let g:f32[3] = mul e f in (g, e) }
      length=4
      num_carry=1
      num_consts=0
      reverse=True
      unroll=1
    ] a b
  in (c, d) }"""


def test_inner_jaxprs_have_no_captured_values() -> None:
    table = jnp.arange(3.0)
    made = program(grad(lambda h: lax.scan(lambda c, x: (c * table * x, None), h, XS)[0].sum()), H)
    assert all(not inner.constvars for eqn in made.eqns for inner in subjaxprs(eqn))
