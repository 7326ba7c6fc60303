"""Eager transformations compute at once what does not depend on their arguments; the values are those of JAX 0.10.2."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import grad, jit, lax, numpy as jnp, random, vmap
from xlamini.experimental import io_callback
from xlamini.staging.run.programs import shared

Function = Callable[..., Any]
ONES = np.ones(3, np.float32)

TRANSFORMED: dict[str, Callable[[Function], Any]] = {
    "grad": lambda f: grad(lambda x: f(x).sum())(ONES),
    "vmap": lambda f: vmap(f)(ONES),
    "vmap of an axis": lambda f: vmap(f, axis_name="i")(ONES),
    "jvp": lambda f: xlamini.jvp(f, (ONES,), (ONES,)),
    "vjp": lambda f: xlamini.vjp(f, ONES),
    "linearize": lambda f: xlamini.linearize(f, ONES),
    "linear_transpose": lambda f: xlamini.linear_transpose(f, ONES)(ONES),
    "jacfwd": lambda f: xlamini.jacfwd(f)(ONES),
    "jacobian": lambda f: xlamini.jacobian(f)(ONES),
    "hessian": lambda f: xlamini.hessian(f)(ONES),
    "vmap of grad": lambda f: vmap(grad(f))(ONES),
    "grad of vmap": lambda f: grad(lambda x: vmap(f)(x).sum())(ONES),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_constant_made_inside_is_kept(name: str) -> None:
    kept: list[Any] = []
    TRANSFORMED[name](lambda x: (kept.append(jnp.tril(jnp.ones((2, 2)))), x * 2)[1])
    assert_close(kept[0] + 1, [[2, 1], [2, 2]], 0)
    assert len(kept[0].devices()) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: jnp.ones(2) * 2,
        lambda: lax.iota("int32", 3),
        lambda: jnp.arange(4)[1:3],
        lambda: jnp.zeros(3).at[0].set(1.0),
        lambda: jit(lambda a: a * 2)(jnp.ones(2)),
        lambda: jit(lambda: jnp.ones(2))(),
        lambda: lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(3.0))[0],
        lambda: lax.cond(jnp.ones(()) > 0, lambda: 1.0, lambda: 2.0),
        lambda: lax.fori_loop(0, 3, lambda i, c: c + i, 0),
        lambda: grad(lambda y: y * y)(3.0),
        lambda: vmap(lambda y: y * y)(jnp.ones(2)),
        lambda: xlamini.checkpoint(jnp.sin)(1.0),
        lambda: xlamini.nn.silu(jnp.ones(2)),
        lambda: random.uniform(random.key(0), (2,)),
        lambda: random.key_data(random.split(random.key(0))),
        lambda: jnp.nonzero(jnp.ones(2))[0],
        lambda: next(iter(jnp.arange(3) * 2)),
    ],
)
@pytest.mark.parametrize("transform", [TRANSFORMED["grad"], TRANSFORMED["vmap"]])
def test_what_is_computed_at_once_is_what_is_computed_outside(make: Callable[[], Any], transform: Any) -> None:
    kept: list[Any] = []
    transform(lambda x: (kept.append(make()), x * 2)[1])
    expected = make()
    assert type(kept[0]) is type(expected) and kept[0].aval == expected.aval
    assert_close(kept[0], expected, 0)


def test_a_constant_is_asked_what_only_arrays_know() -> None:
    assert_close(grad(lambda x: x.sum() * len((jnp.ones(2) * 2).devices()))(ONES), ONES, 0)
    assert_close(vmap(lambda x: x * 2 if jnp.ones(2).sum() > 1 else x)(ONES), 2 * ONES, 0)


def test_values_of_the_outer_function_are_its_own() -> None:
    """What depends on the outer argument alone may be kept by the inner function, and used in the outer one."""
    kept: list[Any] = []

    def inner(a: Any) -> Any:
        return grad(lambda b: b * (kept.append(jnp.sin(a)) or kept[-1]))(3.0) + kept[-1]

    assert_close(vmap(inner)(np.arange(3, dtype=np.float32)), 2 * np.sin(np.arange(3)), 1e-6)
    assert_close(grad(inner)(1.0), 2 * np.cos(1.0), 1e-6)
    assert_close(grad(grad(inner))(1.0), -2 * np.sin(1.0), 1e-6)


def test_operations_on_the_arguments_stay_in_one_program() -> None:
    """A program per structure, whatever the numbers computed outside of it are."""

    def slopes(i: int) -> Any:
        return grad(lambda x: (x * (jnp.float32(i) * 2) * jnp.full(3, i + 0.5)).sum())(ONES)

    for i in (3, 4):  # a program is compiled when it comes again
        slopes(i)
    before = len(shared.programs)
    for i in range(3):
        assert_close(slopes(i), [2 * i * (i + 0.5)] * 3, 1e-6)
    assert len(shared.programs) == before


def test_named_axes_are_known_inside_alone() -> None:
    x = np.arange(3, dtype=np.float32)
    assert_close(vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(x), 2 * x, 0)
    assert_close(vmap(lambda x: x + lax.psum(jnp.ones(()), "i"), axis_name="i")(x), x + 3, 0)
    double = jit(lambda factor: lax.axis_index("i") * factor)
    assert_close(vmap(lambda x: x + double(jnp.int32(2)), axis_name="i")(x), 3 * x, 0)


def test_effects_of_constants_come_once_and_in_order(capfd: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        xlamini.debug.print("start")
        xlamini.debug.print("sum {}", x.sum())
        xlamini.debug.print("constant {}", jnp.ones(2) * 2)
        return x.sum()

    grad(f)(ONES)
    xlamini.effects_barrier()
    assert capfd.readouterr().out.split("\n")[:3] == ["start", "sum 3.0", "constant [2. 2.]"]
    seen: list[float] = []

    def count(a: Any) -> Any:
        seen.append(float(a))
        return np.float32(len(seen))

    def counted(x: Any) -> Any:
        number = io_callback(count, xlamini.ShapeDtypeStruct((), "float32"), jnp.float32(3))
        return x * number * number.__array__()

    assert_close(vmap(counted)(ONES), ONES, 0)
    assert seen == [3.0]


def test_a_jitted_function_of_constants_runs_as_it_does_outside() -> None:
    given: list[Any] = []
    consuming = jit(lambda c: c + 1, donate_argnums=0)

    def f(x: Any) -> Any:
        given.append(jnp.ones(3) * 2)
        return (x * consuming(given[0])).sum()

    assert_close(grad(f)(ONES), 3 * ONES, 0)
    assert given[0].is_deleted()


def test_functions_with_rules_get_arrays() -> None:
    kinds: list[type] = []

    def plain(x: Any) -> Any:
        kinds.append(type(x))
        return x * 2

    ruled = xlamini.custom_jvp(plain)
    ruled.defjvp(lambda primals, tangents: (ruled(*primals), tangents[0] * 3))
    assert_close(grad(lambda x: (x * ruled(jnp.ones(3))).sum())(ONES), 2 * ONES, 0)
    assert kinds == [type(jnp.ones(3))]
    held = lambda x: xlamini.custom_jvp(lambda c: plain(c * x))
    assert_close(vmap(lambda x: _with_any_rule(held(x))(jnp.ones(()))[None])(ONES), 2 * ONES[:, None], 0)


def test_constants_of_rules_are_arrays() -> None:
    kept: list[Any] = []

    def factor() -> Any:
        kept.append(jnp.ones(2) * 2)
        return kept[-1].sum()

    forward = xlamini.custom_jvp(lambda x: x * factor())
    forward.defjvp(lambda primals, tangents: (forward(*primals), tangents[0] * factor()))
    backward = xlamini.custom_vjp(lambda x: x * factor())
    backward.defvjp(lambda x: (x * factor(), jnp.sin(x) * factor()), lambda res, ct: (ct * factor() * res,))
    assert_close(grad(lambda x: forward(x).sum())(ONES), 4 * ONES, 0)
    assert_close(vmap(grad(forward))(ONES), 4 * ONES, 0)
    assert_close(grad(lambda x: backward(x).sum())(ONES), 16 * np.sin(ONES), 1e-6)
    assert_close(vmap(grad(backward))(ONES), 16 * np.sin(ONES), 1e-6)
    second = 32 * (np.sin(4.0) + 8 * np.cos(4.0))  # of 16 sin(x²) 2x
    assert_close(grad(grad(lambda x: backward(x * x)))(2.0), second, 1e-5)
    assert kept and all(int(x.sum()) == 4 for x in kept)


def _with_any_rule(fun: Any) -> Any:
    fun.defjvp(lambda primals, tangents: (fun(*primals), tangents[0]))
    return fun


@pytest.mark.parametrize("around", [jit, lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]])
def test_in_a_program_all_is_traced(around: Any) -> None:
    kept: list[Any] = []
    around(lambda x: (kept.append(jnp.ones(2) * 2), x * 2)[1])(ONES)
    with pytest.raises(xlamini.errors.UnexpectedTracerError):
        kept[0] + 1
    around(grad(lambda x: (kept.append(jnp.ones(2) * 2), x.sum())[1]))(ONES)
    with pytest.raises(xlamini.errors.UnexpectedTracerError):
        kept[1] + 1


@pytest.mark.slow
def test_a_kept_constant_is_no_leak() -> None:
    kept: list[Any] = []
    with xlamini.checking_leaks():
        grad(lambda x: (kept.append(jnp.ones(2) * 2), x.sum())[1])(ONES)
        vmap(lambda x: (kept.append(jnp.ones(2) * 2), x)[1])(ONES)
        with pytest.raises(Exception, match="Leaked"):
            vmap(lambda x: (kept.append(x * 2), x)[1])(ONES)
    assert_close(kept[0] + kept[1], [4, 4], 0)
