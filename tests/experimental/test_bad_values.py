"""Planted bad values, each located to its line (which says `# bad`), iteration, lane, device and role in two runs."""
from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
from xlamini import checked, checkpoint, custom_jvp, custom_vjp, grad, hessian, jit, jvp, lax, numpy as jnp, vmap
from xlamini.experimental.checkify import all_checks, inf_checks, nan_checks
from xlamini.sharding import PartitionSpec as P

pytestmark = pytest.mark.sample(6)


class Said(NamedTuple):
    """What must be said."""

    primitive: str
    category: str = "nan"
    iterations: tuple[int, ...] = ()
    lanes: tuple[int, ...] = ()
    role: str = "primal"
    device: int | None = None
    index: tuple[int, ...] | None = None


SAMPLES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Said]] = {}


def sample(*args: Any, says: Said) -> Callable[[Any], Any]:
    def add(fun: Any) -> Any:
        SAMPLES[fun.__name__] = fun, args, says
        return fun

    return add


@sample(-1.0, says=Said("log"))
def plain(x: Any) -> Any:
    y = jnp.log(x)  # bad
    return jnp.sin(y)


@sample(jnp.ones((3, 4)).at[2, 1].set(-1), says=Said("sqrt", index=(2, 1)))
def element(x: Any) -> Any:
    return jnp.sqrt(x).sum()  # bad


@sample(np.inf, says=Said("sub"))
def difference(x: Any) -> Any:
    return jnp.exp(-(x - x))  # bad


@sample(2.0, says=Said("asin"))
def inside_jit(x: Any) -> Any:
    return jit(lambda y: jnp.arcsin(y) * 2)(x)  # bad


@sample(0.0, says=Said("div"))
def zero_by_zero(x: Any) -> Any:
    return x / (2 * x)  # bad


@sample(jnp.array([1.0, 2.0, -1.0, 3.0]), says=Said("log", iterations=(2,)))
def in_scan(xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + jnp.log(x), c), 0.0, xs)  # bad


@sample(jnp.array([1.0, 2.0, -1.0, 3.0]), says=Said("log", iterations=(2,)))
def in_reversed_scan(xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + jnp.log(x), c), 0.0, xs, reverse=True)  # bad


@sample(jnp.ones((3, 2)).at[1, 1].set(-1), says=Said("log", iterations=(1, 1)))
def in_nested_scan(xs: Any) -> Any:
    def inner(c: Any, x: Any) -> Any:
        return c + jnp.log(x), None  # bad

    return lax.scan(lambda c, row: lax.scan(inner, c, row), 0.0, xs)


@sample(0.5, says=Said("sqrt", iterations=(2,)))
def in_while(x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, jnp.sqrt(s[1]) - 0.5), (0, x))  # bad


@sample(2.0, says=Said("log", iterations=(3,)))
def in_condition(x: Any) -> Any:
    return lax.while_loop(lambda y: jnp.log(y) > -9, lambda y: y - 0.7, x)  # bad


@sample(3.0, says=Said("sqrt", iterations=(4,)))
def in_fori(x: Any) -> Any:
    return lax.fori_loop(0, 8, lambda i, c: c + jnp.sqrt(3.0 - i), x)  # bad


@sample(0.5, says=Said("sqrt", iterations=(2,)))
def in_bounded_while(x: Any) -> Any:
    holds = lambda s: s[0] < 5
    return lax.while_loop(holds, lambda s: (s[0] + 1, jnp.sqrt(s[1]) - 0.5), (0, x), max_steps=9)  # bad


@sample(1.0, says=Said("log"))
def in_branch(x: Any) -> Any:
    return lax.cond(x > 0, lambda y: jnp.log(y - 2), jnp.sin, x)  # bad


@sample(2, -1.0, says=Said("sqrt"))
def in_switch(i: Any, x: Any) -> Any:
    return lax.switch(i, [jnp.sin, jnp.cos, lambda y: jnp.sqrt(y)], x)  # bad


@sample(jnp.array([1.0, 2.0, -1.0]), says=Said("log", lanes=(2,)))
def in_lane(x: Any) -> Any:
    return vmap(lambda y: jnp.log(y) + 1)(x)  # bad


@sample(jnp.ones((2, 3)).at[1, 0].set(-1), says=Said("log", lanes=(1, 0)))
def in_nested_lanes(x: Any) -> Any:
    return vmap(vmap(lambda y: jnp.log(y) + 1))(x)  # bad


@sample(jnp.ones((4, 4)).at[3, 1].set(-1), says=Said("log", lanes=(1,), index=(3,)))
def in_second_axis(x: Any) -> Any:
    return vmap(lambda y: jnp.log(y) + 1, in_axes=1)(x)  # bad


@sample(jnp.ones((3, 2)).at[2, 1].set(-1), says=Said("log", iterations=(1,), lanes=(2,)))
def scan_in_lane(x: Any) -> Any:
    return vmap(lambda xs: lax.scan(lambda c, y: (c + jnp.log(y), None), 0.0, xs)[0])(x)  # bad


@sample(jnp.ones((3, 2)).at[2, 1].set(-1), says=Said("log", iterations=(2,), lanes=(1,)))
def lane_in_scan(x: Any) -> Any:
    return lax.scan(lambda c, row: (c, vmap(jnp.log)(row)), 0.0, x)  # bad


@sample(jnp.array([9.0, 0.5, 0.2]), says=Said("sqrt", iterations=(1,), lanes=(2,)))
def while_in_lane(x: Any) -> Any:
    return vmap(lambda y: lax.while_loop(lambda s: s < 5, lambda s: jnp.sqrt(s) - 0.5, y))(x)  # bad


@sample(jnp.array([-1.0, 1.0, -2.0]), says=Said("log", lanes=(1,)))
def branch_in_lane(x: Any) -> Any:
    return vmap(lambda y: lax.cond(y > 0, lambda z: jnp.log(z - 2), lambda z: jnp.sqrt(-z), y))(x)  # bad


@sample(0.0, says=Said("mul", role="cotangent"))
def masked_gradient(x: Any) -> Any:
    return grad(lambda y: jnp.where(y > 0, jnp.sqrt(y), 0.0))(x)  # bad


@sample(0.0, says=Said("div", "div", role="tangent"))
def slope_of_root(x: Any) -> Any:
    return grad(lambda y: jnp.sqrt(y) * 2)(x)  # bad


@sample(0.0, says=Said("mul", role="tangent"))
def forward_mode(x: Any) -> Any:
    return jvp(lambda y: y * jnp.sqrt(y), (x,), (1.0,))  # bad


@sample(-1.0, says=Said("log"))
def primal_of_gradient(x: Any) -> Any:
    return grad(lambda y: jnp.log(y) ** 2)(x)  # bad


@sample(jnp.array([1.0, 0.0, 4.0]), says=Said("div", "div", iterations=(1,), role="tangent"))
def gradient_of_scan(xs: Any) -> Any:
    return grad(lambda ys: lax.scan(lambda c, y: (c + jnp.sqrt(y), None), 0.0, ys)[0])(xs)  # bad


@sample(jnp.array([1.0, 0.0]), says=Said("div", "div", lanes=(1,), role="tangent"))
def gradient_in_lane(x: Any) -> Any:
    return vmap(grad(lambda y: jnp.sqrt(y)))(x)  # bad


@sample(0.0, says=Said("div", "div", role="tangent"))
def second_derivative(x: Any) -> Any:
    return hessian(lambda y: jnp.sqrt(y) ** 3)(x)  # bad


@sample(0.0, says=Said("div", "div", role="tangent"))
def under_checkpoint(x: Any) -> Any:
    return grad(checkpoint(lambda y: jnp.sin(jnp.sqrt(y))))(x)  # bad


@sample(-1.0, says=Said("log"))
def in_checkpoint(x: Any) -> Any:
    return checkpoint(lambda y: jnp.sin(jnp.log(y)))(x)  # bad


@custom_jvp
def ruled(x: Any) -> Any:
    return jnp.log(x)  # bad


ruled.defjvp(lambda primals, tangents: (ruled(*primals), tangents[0] / (primals[0] - 1)))  # bad


@custom_vjp
def paired(x: Any) -> Any:
    return jnp.log(x)  # bad


paired.defvjp(lambda x: (paired(x), x), lambda x, ct: (ct / (x - 1),))  # bad

SAMPLES["in_custom_jvp"] = ruled, (-1.0,), Said("log")
SAMPLES["in_custom_vjp"] = paired, (-1.0,), Said("log")
SAMPLES["rule_of_custom_jvp"] = grad(ruled), (1.0,), Said("div", "div", role="cotangent")
SAMPLES["rule_of_custom_vjp"] = grad(paired), (1.0,), Said("div", "div", role="cotangent")


@sample(jnp.float16(300), says=Said("mul", "inf"))
def overflow(x: Any) -> Any:
    y = x * x  # bad
    return y.astype(jnp.float32)


@sample(jnp.array([1.0, 60000.0], jnp.float16), says=Said("convert_element_type", "inf", index=(1,)))
def overflow_of_a_sum(x: Any) -> Any:
    return jnp.sum(jnp.stack([x, x]), axis=0)  # bad


@sample(jnp.float16(2), says=Said("mul", "inf", iterations=(3,)))
def overflow_in_loop(x: Any) -> Any:
    return lax.fori_loop(0, 6, lambda i, c: c * c, x)  # bad


@sample(jnp.arange(3.0), jnp.array([0, 5, 1]), says=Said("gather", "index", lanes=(1,)))
def index_in_lane(x: Any, i: Any) -> Any:
    return vmap(lambda j: x[j])(i)  # bad


@sample(jnp.arange(3.0), 7, says=Said("scatter", "index"))
def update(x: Any, i: Any) -> Any:
    return x.at[i].set(1.0)  # bad


@sample(jnp.array([3, 1, 0]), says=Said("div", "div", iterations=(2,)))
def integers(x: Any) -> Any:
    return lax.scan(lambda c, y: (c // y, None), 8, x)[0]  # bad


def _sharded(fun: Any) -> Any:
    mesh = xlamini.make_mesh((8,), ("d",))
    return xlamini.shard_map(fun, mesh=mesh, in_specs=P("d"), out_specs=P("d"))


@sample(jnp.ones(16).at[11].set(-1), says=Said("log", device=5, index=(1,)))
def on_device(x: Any) -> Any:
    return _sharded(lambda y: jnp.log(y))(x)  # bad


@sample(jnp.ones(16).at[11].set(-1), says=Said("log", iterations=(1,), device=5))
def scan_on_device(x: Any) -> Any:
    return _sharded(lambda ys: lax.scan(lambda c, y: (c, jnp.log(y)), 0.0, ys)[1])(x)  # bad


@sample(jnp.ones(16).at[11].set(0), says=Said("div", "div", role="tangent", device=5))
def gradient_on_device(x: Any) -> Any:
    return grad(lambda z: _sharded(lambda y: jnp.sqrt(y))(z).sum())(x)  # bad


_ERRORS = {"nan": nan_checks, "inf": all_checks | inf_checks}


@pytest.mark.sample(43)
@pytest.mark.parametrize("name", SAMPLES)
def test_bad_values_are_located(name: str) -> None:
    fun, args, said = SAMPLES[name]
    with pytest.raises(ValueError) as raised:
        checked(fun, _ERRORS.get(said.category, all_checks))(*args)
    place: Any = raised.value
    place = place.place
    assert "# bad" in linecache.getline(place.file, place.line)
    found = place.primitive, place.category, place.iterations, place.lanes, place.role
    assert found == (said.primitive, said.category, said.iterations, said.lanes, said.role)
    assert [list(at.values()) for at in place.devices] == ([[said.device]] if said.device is not None else [])
    assert said.index is None or place.index == said.index


def test_there_are_forty() -> None:
    assert len(SAMPLES) >= 40


@pytest.mark.parametrize("name", ["plain", "in_scan", "scan_in_lane", "masked_gradient", "on_device"])
def test_debug_nans_locates_them_too(name: str) -> None:
    fun, args, said = SAMPLES[name]
    with xlamini.debug_nans(True), pytest.raises(FloatingPointError, match=r"invalid value \(nan\)") as raised:
        jit(fun)(*args)
    place: Any = raised.value
    place = place.place
    found = place.primitive, place.iterations, place.lanes, place.role
    assert found == (said.primitive, said.iterations, said.lanes, said.role)


CLEAN: dict[str, tuple[Callable[..., Any], Any]] = {
    "branch": (vmap(lambda x: lax.cond(x > 0, jnp.log, lambda y: jnp.sqrt(-y), x)), jnp.array([-1.0, 1.0, -2.0])),
    "no lane": (vmap(lambda x: lax.cond(x > 0, jnp.log, lambda y: jnp.sqrt(-y), x)), jnp.array([-1.0, -1.0])),
    "while": (
        vmap(lambda x: lax.while_loop(lambda s: s > 0, lambda s: s - 1 + 0 * jnp.log(s), x)), jnp.array([3.0, 1.0])
    ),
    "consts": (
        lambda x: vmap(lambda s, c: lax.while_loop(lambda t: t < 5, lambda t: t + jnp.log(c), s))(x, 9 - x),
        jnp.array([0.0, 12.0]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("of", ["value", "gradient"])
def test_lanes_that_take_no_part_never_fail(name: str, of: str) -> None:
    fun, x = CLEAN[name]
    if of == "gradient" and name in ("while", "consts"):
        pytest.skip("a while loop without a bound has no reverse mode")
    run = fun if of == "value" else grad(lambda y: fun(y).sum())
    np.testing.assert_allclose(checked(run, all_checks | inf_checks)(x), run(x), rtol=1e-6)


def test_a_checked_program_is_not_run_twice_if_it_has_effects() -> None:
    seen = []

    def log(x: Any) -> Any:
        xlamini.experimental.io_callback(lambda v: seen.append(float(v)), None, x)
        return jnp.exp(jnp.log(x))

    with pytest.raises(ValueError, match="nan generated by primitive: log"):
        checked(log, nan_checks)(-1.0)
    assert seen == [-1.0]
