"""Values of users' types ahead of time: types in place of values, the stages of compilation, rules that follow."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.experimental.test_hijax_types import BATCH, A, Q, QArray, QArrayTy, R, VJPHiPrimitive, dequantize, quantize
from xlamini import P, export, grad, jit, lax, numpy as jnp
from xlamini.experimental import hijax
from xlamini.experimental.hijax import ShapedArray
from xlamini.sharding import AxisType, NamedSharding

TY = QArrayTy((2, 3))


def energy(q: Any, x: Any) -> Any:
    return jnp.sum(dequantize(q) ** 2 * x)


# --- types in place of values


def test_a_type_stands_for_a_value_where_only_types_are_asked() -> None:
    assert xlamini.eval_shape(dequantize, TY) == xlamini.ShapeDtypeStruct((2, 3), "float32")
    assert xlamini.eval_shape(lambda d: {"b": quantize(dequantize(d["a"]))}, {"a": TY}) == {"b": TY}
    assert str(xlamini.make_jaxpr(dequantize)(TY).jaxpr.invars[0].aval) == "q8[2,3]"
    with pytest.raises(TypeError, match=r"argument 'q' of dequantize is q8\[2,3\], a type without values"):
        jit(dequantize)(TY)


@pytest.mark.parametrize("given", [TY, Q], ids=["type", "value"])
def test_the_stages_of_compilation(given: Any) -> None:
    traced = jit(lambda q, x: (energy(q, x), quantize(x))).trace(given, A)
    assert traced.jaxpr.in_avals[0].ty == TY and traced.out_info[1] == TY
    lowered = traced.lower()
    assert "tensor<2x3xi8>, %arg1: tensor<2xf32>, %arg2: tensor<2x3xf32>" in lowered.as_text()
    compiled = lowered.compile()
    for _ in range(2):
        total, q = compiled(Q, A)
        np.testing.assert_allclose(total, (R**2 * A).sum(), rtol=1e-5)
        assert type(q) is QArray
        np.testing.assert_array_equal(q.qvalue, Q.qvalue)
    assert [aval.dtype.name for aval in xlamini.tree.leaves(lowered.in_avals)] == ["int8", "float32", "float32"]
    assert "q8[2,3]" in repr(compiled.in_avals) and len(xlamini.tree.leaves(compiled.input_shardings)) == 3


COMPOSED: dict[str, Any] = {
    "grad": lambda: jit(grad(energy)).lower(TY, A).compile()(Q, A),
    "grad of jit": lambda: jit(grad(jit(energy))).lower(TY, A).compile()(Q, A),
    "checkpoint": lambda: jit(grad(xlamini.checkpoint(energy))).lower(TY, A).compile()(Q, A),
    "scan": lambda: jit(
        grad(lambda q, x: lax.scan(lambda c, _: (c + energy(q, x) / 2, None), 0.0, None, 2)[0])
    ).lower(TY, A).compile()(Q, A),
    "cond": lambda: jit(
        grad(lambda q, x: lax.cond(x[0, 0] > 0, energy, lambda q, x: 0 * energy(q, x), q, x))
    ).lower(TY, A).compile()(Q, A),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("use", COMPOSED)
def test_compiled_derivatives(use: str) -> None:
    np.testing.assert_allclose(COMPOSED[use](), 2 * R * A, rtol=1e-5)


def test_a_compiled_batch() -> None:
    f = xlamini.vmap(grad(lambda x: jnp.sum(dequantize(quantize(x)) ** 2)))
    np.testing.assert_allclose(jit(f).lower(BATCH).compile()(BATCH), f(BATCH), rtol=1e-6)


def test_what_a_compiled_function_is_not_called_with() -> None:
    compiled = jit(dequantize).lower(TY).compile()
    with pytest.raises(TypeError, match=r"of another structure: .*q8\[2,3\].*q8\[4,2,3\]"):
        compiled(quantize(BATCH))
    with pytest.raises(TypeError, match="of another structure"):
        compiled(A)
    with pytest.raises(ValueError, match="takes or returns values of a user's type, which another process may not"):
        compiled.serialize()
    with pytest.raises(TypeError, match="an exported program takes and returns arrays"):
        export.export(jit(dequantize))(Q)


def test_options_of_jit_hold_for_values() -> None:
    """A donated value's arrays are deleted; a static argument stays what it is."""
    q = jit(quantize)(A)
    half = jit(lambda q, n: quantize(dequantize(q) / n), donate_argnums=0, static_argnums=1)
    np.testing.assert_allclose(dequantize(half(q, 2)), R / 2, rtol=1e-5)
    assert q.qvalue.is_deleted() and q.scale.is_deleted()
    named = jit(lambda *, q, x: dequantize(q) + x, donate_argnames="x")
    np.testing.assert_allclose(named(q=Q, x=A), R + A, rtol=1e-6)


def test_a_sharded_type_is_compiled_for_its_shards() -> None:
    @xlamini.tree_util.register_static
    class Unused:
        pass

    mesh = xlamini.make_mesh((2,), ("i",), axis_types=(AxisType.Explicit,))
    x = xlamini.device_put(A, NamedSharding(mesh, P("i")))
    q = QArray(xlamini.device_put(Q.qvalue, x.sharding), xlamini.device_put(Q.scale, NamedSharding(mesh, P("i"))))
    compiled = jit(dequantize).lower(q).compile()
    assert [s.spec[0] for s in xlamini.tree.leaves(compiled.input_shardings)] == ["i", "i"]
    np.testing.assert_allclose(compiled(q), R, rtol=1e-6)


# --- a primitive inside of another one's `expand`, and objects made outside of primitives


class Twice(VJPHiPrimitive):
    """Its `expand` calls a primitive on the object that it is given, and on one that it makes."""

    def __init__(self, ty: Any):
        self.in_avals, self.out_aval, self.params = (ty,), ty.to_tangent_aval(), {}
        super().__init__()

    def expand(self, q: Any) -> Any:
        return dequantize(q) + dequantize(QArray(q.qvalue, q.scale))


@pytest.mark.parametrize("wrap", [lambda f: f, jit, xlamini.checkpoint], ids=["eager", "jit", "checkpoint"])
def test_objects_in_expand_are_operands_of_other_primitives(wrap: Any) -> None:
    twice = wrap(lambda q: Twice(xlamini.typeof(q))(q))
    np.testing.assert_allclose(twice(Q), 2 * R, rtol=1e-6)
    total = lax.scan(lambda c, _: (c + twice(Q).sum(), None), 0.0, None, 2)[0]
    np.testing.assert_allclose(total, 4 * R.sum(), rtol=1e-5)


def made_by_its_class(x: Any) -> QArray:
    scale = jnp.max(jnp.abs(x), axis=-1) / 127.0
    return QArray(jnp.round(x / scale[..., None]).astype(jnp.int8), scale)


def test_an_object_of_traced_arrays_has_values_but_no_derivative() -> None:
    found = jit(made_by_its_class)(A)
    np.testing.assert_array_equal(found.qvalue, Q.qvalue)
    np.testing.assert_allclose(jit(lambda x: dequantize(made_by_its_class(x)))(A), R, rtol=1e-6)
    for use in (grad(lambda x: dequantize(made_by_its_class(x)).sum()), xlamini.vmap(made_by_its_class)):
        with pytest.raises(TypeError, match="was made of traced arrays by calling its class"):
            use(A)


class Lying(VJPHiPrimitive):
    """Returns arrays of another dtype than its type says."""

    def __init__(self, aval: Any):
        self.in_avals, self.out_aval, self.params = (aval,), QArrayTy(aval.shape), {}
        super().__init__()

    def expand(self, x: Any) -> QArray:
        return QArray(x, x[..., 0])


def test_arrays_of_other_types_than_lo_ty_says() -> None:
    with pytest.raises(TypeError, match=r"the type q8\[2,3\]: lower_val returns float32.*, but lo_ty says int8"):
        jit(lambda x: dequantize(Lying(xlamini.typeof(x))(x)))(A)


# --- rules that follow from others


class Sin(VJPHiPrimitive):
    def __init__(self, aval: Any):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return jnp.sin(x)

    def batch_dim_rule(self, axis_data: Any, dims: Any) -> Any:
        return dims[0]


class ByTangents(Sin):
    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self(*primals), jnp.cos(primals[0]) * tangents[0]

    lin, linearized = hijax.linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_jvp


class ByLinearMap(Sin):
    def lin(self, nzs_in: Any, x: Any) -> Any:  # type: ignore[override]
        return self(x), jnp.cos(x)

    def linearized(self, residuals: Any, t: Any) -> Any:  # type: ignore[override]
        return residuals * t

    jvp = hijax.jvp_from_lin
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin


class Doubled(ByTangents):
    """Its own rules call the derived ones."""

    def vjp_fwd(self, nzs_in: Any, *args: Any) -> Any:
        return hijax.vjp_from_jvp.vjp_fwd(self, nzs_in, *args)

    def vjp_bwd_retval(self, res: Any, ct: Any) -> Any:
        return tuple(2 * x for x in hijax.vjp_from_jvp.vjp_bwd_retval(self, res, ct))


class DoubledMap(ByLinearMap):
    def vjp_fwd(self, nzs_in: Any, *args: Any) -> Any:
        return hijax.vjp_from_lin.vjp_fwd(self, nzs_in, *args)

    def vjp_bwd_retval(self, res: Any, ct: Any) -> Any:
        return tuple(2 * x for x in hijax.vjp_from_lin.vjp_bwd_retval(self, res, ct))


@pytest.mark.parametrize(("kind", "factor"), [(ByTangents, 1), (ByLinearMap, 1), (Doubled, 2), (DoubledMap, 2)])
def test_derived_rules(kind: Any, factor: int) -> None:
    f, x, xs = (lambda x: kind(xlamini.typeof(x))(x)), 2.0, jnp.array([1.0, 2.0])
    cos = np.cos(x)
    np.testing.assert_allclose(grad(f)(x), factor * cos, rtol=1e-6)
    np.testing.assert_allclose(jit(grad(f))(x), factor * cos, rtol=1e-6)
    np.testing.assert_allclose(xlamini.jvp(f, (x,), (3.0,))[1], 3 * cos, rtol=1e-6)
    np.testing.assert_allclose(xlamini.linearize(f, x)[1](3.0), 3 * cos, rtol=1e-6)
    np.testing.assert_allclose(xlamini.vmap(grad(f))(xs), factor * np.cos(xs), rtol=1e-6)
    np.testing.assert_allclose(grad(lambda x: f(f(x)))(x), factor**2 * np.cos(np.sin(x)) * cos, rtol=1e-5)


def test_rules_derived_in_a_circle_are_missing() -> None:
    class Circle(Sin):
        jvp = hijax.jvp_from_lin
        lin, linearized = hijax.linearize_from_jvp

    with pytest.raises(NotImplementedError, match="write `def"):
        grad(lambda x: Circle(ShapedArray((), np.dtype("float32")))(x))(jnp.float32(1.0))
