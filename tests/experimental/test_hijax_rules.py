"""Rules of `HiPrim` as JAX 0.12 has them: pairs that follow from others, structured residuals, batches, dead code."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import grad, jit, lax, numpy as jnp
from xlamini.experimental import hijax
from xlamini.experimental.hijax import HiPrim

X = jnp.float32(2.0)


class Unary(HiPrim):
    def __init__(self, aval: Any):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()

    @classmethod
    def apply(cls, x: Any) -> Any:
        return cls(xlamini.typeof(x))(x)

    def expand(self, x: Any) -> Any:
        return jnp.sin(x)


class Structured(Unary):
    """Each pair of rules has residuals of its own."""

    def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:  # type: ignore[override]
        return self(x), None, True, {"cos": jnp.cos(x)}

    def vjp_bwd(self, res: Any, sres: Any, ct: Any, accumulator: Any) -> Any:  # type: ignore[override]
        assert res is None
        accumulator.accum(ct * sres["cos"])

    def lin(self, nzs_in: Any, x: Any) -> Any:  # type: ignore[override]
        return self(x), jnp.cos(x)

    def linearized(self, res: Any, t: Any) -> Any:  # type: ignore[override]
        return t * res

    jvp = hijax.jvp_from_lin

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        (x,) = hijax.bdims_at_front(axis_data, args, dims)
        return type(self)(*hijax.unmap_avals(axis_data, self.in_avals, (0,)))(x), 0


class Mapped(Structured):
    """Mapped by the batching rule of JAX 0.10."""

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        return HiPrim.batch(self, axis_data, args, dims)

    def batch_dim_rule(self, axis_data: Any, dims: Any) -> Any:
        return dims[0]


@pytest.mark.parametrize("kind", [Structured, Mapped])
def test_structured_residuals(kind: Any) -> None:
    f, xs, cos = kind.apply, jnp.arange(6, dtype="float32").reshape(2, 3), np.cos(2.0)
    np.testing.assert_allclose([grad(f)(X), jit(grad(f))(X), xlamini.linearize(f, X)[1](1.0)], [cos] * 3, rtol=1e-6)
    np.testing.assert_allclose(xlamini.jvp(f, (X,), (X,))[1], 2 * cos, rtol=1e-6)
    np.testing.assert_allclose(xlamini.vmap(f, in_axes=1)(xs), np.sin(xs.T), rtol=1e-6)
    by_rows = xlamini.vmap(xlamini.vmap(grad(f)))
    np.testing.assert_allclose(by_rows(xs), np.cos(xs), rtol=1e-6)
    np.testing.assert_allclose(grad(lambda x: jnp.sum(xlamini.vmap(f)(x)))(xs[0]), np.cos(xs[0]), rtol=1e-6)


def test_structured_residuals_need_a_rule_that_takes_them() -> None:
    class Lacking(Unary):
        def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:  # type: ignore[override]
            return self(x), None, True, x

    with pytest.raises(TypeError, match=r"needs? a rule `def vjp_bwd\(self, res, sres"):
        grad(Lacking.apply)(X)


class TwoOutputs(HiPrim):
    """The second output has a tangent only if the first argument has one."""

    def __init__(self, x: Any, y: Any):
        self.in_avals, self.out_aval, self.params = (x, y), (x, x), {"_seen": 0}
        super().__init__()

    def expand(self, x: Any, y: Any) -> Any:
        return x * y, x + 1

    def lin(self, nzs_in: Any, x: Any, y: Any) -> Any:  # type: ignore[override]
        return self(x, y), (x, y), (True, nzs_in[0])

    def linearized(self, res: Any, *tangents: Any) -> Any:
        (x, y), (dx, dy) = res, map(hijax.instantiate_zeros, tangents)
        return dx * y + x * dy, tangents[0]

    jvp = hijax.jvp_from_lin
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin


def test_a_rule_says_which_outputs_have_a_tangent() -> None:
    f = lambda x, y: TwoOutputs(xlamini.typeof(x), xlamini.typeof(y))(x, y)
    gradients = grad(lambda x, y: sum(f(x, y)), (0, 1))(X, 3 * X)
    np.testing.assert_array_equal(gradients, [7.0, 2.0])
    tangents = xlamini.linearize(lambda y: f(X, y), X)[1](X)
    np.testing.assert_array_equal(tangents, [4.0, 0.0])
    assert str(xlamini.make_jaxpr(f)(X, X)).count("TwoOutputs a b") == 1
    assert repr(TwoOutputs(*map(xlamini.typeof, (X, X)))) == "TwoOutputs"


class Cubed(Unary):
    """Batched by `vmap_rule`, which passes symbolic zeros to a rule for tangents."""

    def expand(self, x: Any) -> Any:
        return x**3

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        ones = (hijax.Zero(hijax.unmap_avals(axis_data, self.in_avals[0], dims[0])),)
        rule = lambda primals, tangents: (self.expand(*primals), tangents[0])
        out, zero = hijax.vmap_rule(axis_data, rule, (dims, dims), (0, 0))(args, ones)
        assert isinstance(zero, hijax.Zero) and zero.aval.shape == (3,)
        return out, 0


def test_a_rule_is_mapped_with_symbolic_zeros() -> None:
    np.testing.assert_array_equal(xlamini.vmap(Cubed.apply)(jnp.arange(3.0)), [0.0, 1.0, 8.0])


class Both(HiPrim):
    """Two outputs of two arguments; where the second is unused, an operation of the first alone."""

    def __init__(self, aval: Any):
        self.in_avals, self.out_aval, self.params = (aval, aval), (aval, aval), {}
        super().__init__()

    def expand(self, x: Any, y: Any) -> Any:
        return jnp.sin(x), jnp.cos(y)

    def dce(self, used_outs: Any, live_ins: Any) -> Any:
        assert live_ins == (True, True)
        return ((True, False), (True, False), First(self.in_avals[0])) if used_outs == (True, False) else super().dce(
            used_outs, live_ins
        )


class First(HiPrim):
    def __init__(self, aval: Any):
        self.in_avals, self.out_aval, self.params = (aval,), (aval,), {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return (jnp.sin(x),)


def test_unused_outputs_are_dropped_by_its_rule() -> None:
    from xlamini.interpreters.dce import dce

    program = xlamini.make_jaxpr(lambda x, y: Both(xlamini.typeof(x))(x, y))(X, X).jaxpr
    slim, used = dce(program, (True, False))
    assert used == (True, False) and "First a" in str(slim)
    kept, used = dce(program, (False, True))
    assert used == (True, True) and "Both a b" in str(kept)
    np.testing.assert_allclose(lax.map(lambda x: Both(xlamini.typeof(x))(x, x)[0], jnp.ones(2)), np.sin([1.0, 1.0]))


def test_a_traced_call_may_be_refused() -> None:
    class Refusing(Unary):
        def staging(self, trace: Any, source_info: Any, *args: Any) -> Any:
            raise ValueError("only outside of transformations")

    np.testing.assert_allclose(Refusing.apply(X), np.sin(2.0), rtol=1e-6)
    with pytest.raises(ValueError, match="only outside of transformations"):
        jit(Refusing.apply)(X)


def test_what_accumulators_end_with() -> None:
    aval = xlamini.typeof(X)
    ref = xlamini.new_ref(X)
    by_ref = hijax.RefAccum(aval, ref)
    by_ref.accum(X)
    assert hijax.ValAccum(aval, X).freeze() == 2.0 and by_ref.freeze() == 4.0
    assert isinstance(hijax.NullAccum(aval).freeze(), hijax.Zero)


def test_a_pair_is_not_one_rule() -> None:
    with pytest.raises(TypeError, match="a pair of rules; write `lin, linearized = "):
        hijax.linearize_from_jvp(1)
