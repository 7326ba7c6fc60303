"""Primitives of users as classes. Expected values are closed forms, or what JAX 0.10.2 gives for the program.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.experimental import hijax
from xlamini.experimental.hijax import ShapedArray, VJPHiPrimitive, Zero

# --- a primitive on arrays


class SinTimesY(VJPHiPrimitive):
    def __init__(self, x_aval: Any, y_aval: Any):
        self.in_avals, self.out_aval, self.params = (x_aval, y_aval), x_aval, {}
        super().__init__()

    def expand(self, x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    def vjp_fwd(self, nzs_in: Any, x: Any, y: Any) -> Any:
        return self(x, y), (jnp.cos(x), jnp.sin(x), y)

    def vjp_bwd_retval(self, res: Any, ct: Any) -> Any:
        cos_x, sin_x, y = res
        return cos_x * ct * y, sin_x * ct

    def jvp(self, primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, map(hijax.instantiate_zeros, tangents)
        return self(x, y), jnp.cos(x) * dx * y + jnp.sin(x) * dy

    def batch_dim_rule(self, axis_data: Any, dims: Any) -> Any:
        return dims[1] if dims[0] is None else dims[0]


def sin_times_y(x: Any, y: Any) -> Any:
    return SinTimesY(xlamini.typeof(x), xlamini.typeof(y))(x, y)


def plain(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y


X, Y, M = np.arange(3, dtype=np.float32), np.arange(3, dtype=np.float32) + 1, np.ones((2, 3), np.float32)
USES: dict[str, Callable[[Any], Any]] = {
    "call": lambda f: f(X, Y),
    "jit": lambda f: xlamini.jit(f)(2.0, 3.0),
    "jvp": lambda f: xlamini.jvp(f, (2.0, 3.0), (1.0, 0.0)),
    "jvp in one": lambda f: xlamini.jvp(lambda x: f(x, 3.0), (2.0,), (1.0,)),
    "grad": lambda f: xlamini.grad(f, (0, 1))(2.0, 3.0),
    "grad of grad": lambda f: xlamini.grad(xlamini.grad(f))(2.0, 3.0),
    "jit of grad": lambda f: xlamini.jit(xlamini.grad(f))(2.0, 3.0),
    "grad of jit": lambda f: xlamini.grad(xlamini.jit(f))(2.0, 3.0),
    "vjp": lambda f: xlamini.vjp(f, 2.0, 3.0)[1](1.0),
    "linearize": lambda f: xlamini.linearize(f, 1.0, 2.0)[1](1.0, 1.0),
    "vmap": lambda f: xlamini.vmap(f)(X, Y),
    "vmap of one": lambda f: xlamini.vmap(f, (0, None))(X, 2.0),
    "vmap of vmap": lambda f: xlamini.vmap(xlamini.vmap(f), (None, 0))(X, M),
    "vmap of grad": lambda f: xlamini.vmap(xlamini.grad(f))(X, Y),
    "vmap of vjp": lambda f: xlamini.vmap(xlamini.vjp(f, 2.0, 3.0)[1])(X),
    "grad of vmap": lambda f: xlamini.grad(lambda x, y: xlamini.vmap(f, (0, None))(x, y).sum(), (0, 1))(X, 2.0),
    "grad of vmaps": lambda f: xlamini.grad(lambda x, y: xlamini.vmap(xlamini.vmap(f), (None, 0))(x, y).sum())(X, M),
    "jvp of vmap": lambda f: xlamini.jvp(xlamini.vmap(f), (X, Y), (X, Y)),
    "scan": lambda f: xlamini.grad(lambda x: lax.scan(lambda c, y: (f(c, y), c), x, Y)[0])(2.0),
    "cond": lambda f: xlamini.grad(lambda x: lax.cond(x > 0, lambda x: f(x, 2.0), lambda x: x, x))(2.0),
    "checkpoint": lambda f: xlamini.grad(xlamini.checkpoint(f))(2.0, 3.0),
    "hessian": lambda f: xlamini.hessian(f)(2.0, 3.0),
    "jacrev": lambda f: xlamini.jacrev(xlamini.vmap(f))(X, Y),
}


@pytest.mark.parametrize("use", USES)
def test_a_primitive_is_a_function_under_all_transformations(use: str) -> None:
    found, expected = USES[use](sin_times_y), USES[use](plain)
    assert xlamini.tree.structure(found) == xlamini.tree.structure(expected)
    xlamini.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, expected)


def test_it_is_one_equation() -> None:
    assert "= SinTimesY a b" in str(xlamini.make_jaxpr(sin_times_y)(1.0, 2.0))
    one, other = SinTimesY(*map(xlamini.typeof, (1.0, 2.0))), SinTimesY(*map(xlamini.typeof, (3.0, 2.0)))
    assert one == other and hash(one) == hash(other) and one != SinTimesY(*map(xlamini.typeof, (X, Y)))


class Unary(VJPHiPrimitive):
    """Of one array, to one of its type; a subclass writes the rules."""

    def __init__(self, x_aval: Any, **params: Any):
        self.in_avals, self.out_aval, self.params = (x_aval,), x_aval, params
        super().__init__()

    @classmethod
    def apply(cls, x: Any, **params: Any) -> Any:
        return cls(xlamini.typeof(x), **params)(x)


class Clipped(Unary):
    bound: float

    def expand(self, x: Any) -> Any:
        return x

    def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
        return self(x), None

    def vjp_bwd(self, res: Any, ct: Any, accumulator: Any) -> None:  # type: ignore[override]
        accumulator.accum(jnp.clip(ct, -self.bound, self.bound))
        accumulator.accum(None)


def test_params_are_attributes_and_cotangents_go_into_accumulators() -> None:
    assert xlamini.grad(lambda x: 5 * Clipped.apply(x, bound=2.0))(1.0) == 2.0


class Scaled(hijax.HiPrim):
    """x y, whose rule notes the accumulators that it is given."""

    given: list[str]

    def __init__(self, x_aval: Any, y_aval: Any):
        self.in_avals, self.out_aval, self.params = (x_aval, y_aval), x_aval, {}
        super().__init__()

    def expand(self, x: Any, y: Any) -> Any:
        return x * y

    def vjp_fwd(self, nzs_in: Any, x: Any, y: Any) -> Any:
        return self(x, y), (x, y)

    def vjp_bwd(self, res: Any, ct: Any, x_acc: Any, y_acc: Any) -> None:  # type: ignore[override]
        Scaled.given = [type(a).__name__ for a in (x_acc, y_acc)]
        x_acc.accum(ct * res[1])
        y_acc.accum(ct * res[0])


@pytest.mark.parametrize(
    ("argnums", "gradients", "classes"),
    [
        (0, 3.0, ["ValAccum", "NullAccum"]), (1, 2.0, ["NullAccum", "ValAccum"]),
        ((0, 1), (3.0, 2.0), ["ValAccum", "ValAccum"]),
    ],
)
def test_what_is_not_differentiated_has_an_accumulator_that_drops(argnums: Any, gradients: Any, classes: Any) -> None:
    scaled = Scaled(xlamini.typeof(2.0), xlamini.typeof(3.0))
    assert xlamini.grad(scaled, argnums)(2.0, 3.0) == gradients
    assert Scaled.given == classes


class BySign(Unary):
    def expand(self, x: Any) -> Any:
        return jnp.sin(x) if x > 0 else jnp.cos(x)

    def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
        return self(x), x

    def vjp_bwd_retval(self, x: Any, ct: Any) -> Any:
        return (2 * ct if x > 0 else 3 * ct,)


def test_rules_may_read_values_where_nothing_is_traced() -> None:
    assert xlamini.grad(BySign.apply)(1.0) == 2.0 and xlamini.grad(BySign.apply)(-1.0) == 3.0
    np.testing.assert_allclose(xlamini.value_and_grad(BySign.apply)(1.0)[0], np.sin(1.0), rtol=1e-6)
    with pytest.raises(xlamini.errors.TracerBoolConversionError, match=r"BySign\.expand"):
        xlamini.jit(BySign.apply)(1.0)


class Linear(Unary):
    def expand(self, x: Any) -> Any:
        return jnp.sin(x)

    def lin(self, nzs_in: Any, x: Any) -> Any:
        return self(x), jnp.cos(x)

    def linearized(self, cos_x: Any, t: Any) -> Any:
        return cos_x * t

    def batch_dim_rule(self, axis_data: Any, dims: Any) -> Any:
        return dims[0]


def test_all_derivatives_follow_from_a_linearization() -> None:
    f, cos = Linear.apply, np.cos(2.0)
    np.testing.assert_allclose(xlamini.linearize(f, 2.0)[1](3.0), 3 * cos, rtol=1e-6)
    np.testing.assert_allclose(xlamini.grad(f)(2.0), cos, rtol=1e-6)
    np.testing.assert_allclose(xlamini.jvp(f, (2.0,), (1.0,))[1], cos, rtol=1e-6)
    np.testing.assert_allclose(xlamini.grad(xlamini.grad(f))(2.0), -np.sin(2.0), rtol=1e-6)
    np.testing.assert_allclose(xlamini.vmap(xlamini.linearize(f, 2.0)[1])(X), X * cos, rtol=1e-6)
    np.testing.assert_allclose(xlamini.vmap(lambda x: xlamini.linearize(f, x)[1](1.0))(X), np.cos(X), rtol=1e-6)


class ByTangent(Unary):
    def expand(self, x: Any) -> Any:
        return jnp.exp(x)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self(*primals), 7 * tangents[0]


def test_reverse_mode_follows_from_forward_mode() -> None:
    assert xlamini.grad(ByTangent.apply)(1.0) == 7.0
    assert xlamini.grad(lambda x: lax.scan(lambda c, _: (ByTangent.apply(c), None), x, None, 2)[0])(1.0) == 49.0


class Parts(VJPHiPrimitive):
    """Of a dict, to a pair whose second part is an integer."""

    def __init__(self, aval: Any):
        self.in_avals, self.params = ({"x": aval, "n": ShapedArray((), np.dtype(np.int32))},), {}
        self.out_aval = (aval, ShapedArray((), np.dtype(np.int32)))
        super().__init__()

    def expand(self, d: Any) -> Any:
        return d["x"] * d["n"], d["n"] + 1

    def vjp_fwd(self, nzs_in: Any, d: Any) -> Any:
        assert nzs_in == ({"x": True, "n": False},)
        return self(d), d["n"]

    def vjp_bwd_retval(self, n: Any, cts: Any) -> Any:
        assert isinstance(cts[1], Zero)
        return ({"x": cts[0] * n, "n": None},)


def test_arguments_and_outputs_are_trees() -> None:
    def f(x: Any) -> Any:
        y, n = Parts(xlamini.typeof(x))({"x": x, "n": jnp.int32(3)})
        return y + n

    assert f(2.0) == 10.0 and xlamini.grad(f)(2.0) == 3.0 and xlamini.jit(xlamini.grad(f))(2.0) == 3.0


class Doubled(Unary):
    """Linear: its derivative is itself."""

    def expand(self, x: Any) -> Any:
        return 2 * x

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, accumulator: Any) -> None:  # type: ignore[override]
        accumulator.accum(self(ct))


def test_a_linear_primitive_is_transposed_by_its_rule() -> None:
    program = xlamini.make_jaxpr(xlamini.grad(Doubled.apply))(1.0)
    assert xlamini.grad(Doubled.apply)(1.0) == 2.0 and "= Doubled 1.0" in str(program)


def wrong(**rules: Any) -> Any:
    return type("Wrong", (Unary,), {"expand": lambda self, x: x, **rules}).apply  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("use", "problem"),
    [
        (lambda: xlamini.vmap(wrong())(X), "for vmap, write `def batch"),
        (lambda: xlamini.grad(wrong())(1.0), "for reverse mode, write `def vjp_fwd"),
        (lambda: xlamini.jvp(wrong(), (1.0,), (1.0,)), "for forward mode, write `def jvp"),
        (lambda: Unary.apply(1.0), "write `def expand"),
        (lambda: wrong(vjp_bwd=1, vjp_bwd_retval=1)(1.0), "one of vjp_bwd and vjp_bwd_retval, not both"),
        (lambda: wrong(expand=lambda self, x: (x, x))(1.0), "Wrong.expand must return the structure"),
        (lambda: wrong(expand=lambda self, x: jnp.ones(2))(1.0), r"Wrong.expand returns float32\[2\], but its"),
        (lambda: xlamini.grad(wrong(vjp_fwd=lambda self, nz, x: (x, x), vjp_bwd_retval=lambda self, r, g: g))(1.0),
         "must return a tuple of 1 cotangents"),
        (lambda: xlamini.grad(wrong(vjp_fwd=lambda self, nz, x: (x, x), vjp_bwd_retval=lambda self, r, g: (X,)))(1.0),
         r"a cotangent float32\[3\] for an argument whose cotangents are float32\[\]"),
        (lambda: SinTimesY(*map(xlamini.typeof, (1.0, 1.0)))(X, 1.0), r"args\[0\] is float32\[3\], but in_avals says"),
        (lambda: SinTimesY(*map(xlamini.typeof, (1.0, 1.0)))(1.0), "the arguments are of the structure"),
    ],
)  # fmt: skip
def test_a_rule_that_is_missing_or_wrong_is_an_error_that_names_it(use: Any, problem: str) -> None:
    with pytest.raises((TypeError, NotImplementedError, AttributeError), match=problem):
        use()
