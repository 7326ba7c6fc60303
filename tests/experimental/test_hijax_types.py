"""Types of users, and primitives on their values. Expected values are closed forms, or what JAX 0.10.2 gives."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.experimental import hijax
from xlamini.experimental.hijax import HiPrimitive, HiType, ShapedArray, VJPHiPrimitive, register_hitype

# --- a type whose tangents are arrays: the quantized arrays of JAX's tutorial


@dataclass(frozen=True)
class QArray:
    qvalue: Any
    scale: Any


class RowsSpec(hijax.MappingSpec):
    def __eq__(self, other: object) -> bool:
        return type(other) is RowsSpec

    def __hash__(self) -> int:
        return 1


@dataclass(frozen=True)
class QArrayTy(HiType):
    shape: tuple[int, ...]

    def lo_ty(self) -> list[Any]:
        return [ShapedArray(self.shape, np.dtype(np.int8)), ShapedArray(self.shape[:-1], np.dtype(np.float32))]

    def lower_val(self, q: Any) -> list[Any]:
        return [q.qvalue, q.scale]

    def raise_val(self, *parts: Any) -> QArray:
        return QArray(*parts)

    def to_tangent_aval(self) -> Any:
        return ShapedArray(self.shape, np.dtype(np.float32))

    def dec_rank(self, size: int | None, spec: Any) -> QArrayTy:
        assert isinstance(spec, RowsSpec) and size == self.shape[0]
        return QArrayTy(self.shape[1:])

    def inc_rank(self, size: int | None, spec: Any) -> QArrayTy:
        assert size is not None
        return QArrayTy((size, *self.shape))

    def leading_axis_spec(self) -> Any:
        return RowsSpec()

    def __repr__(self) -> str:
        return f"q8[{','.join(map(str, self.shape))}]"


register_hitype(QArray, lambda q: QArrayTy(q.qvalue.shape))


class StraightThrough(VJPHiPrimitive):
    """Differentiated as the identity."""

    def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
        return self(x), None

    def vjp_bwd_retval(self, res: Any, ct: Any) -> Any:
        return (ct,)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self(*primals), tangents[0]


class Quantize(StraightThrough):
    def __init__(self, x_aval: Any):
        self.in_avals, self.out_aval, self.params = (x_aval,), QArrayTy(x_aval.shape), {}
        super().__init__()

    def expand(self, x: Any) -> QArray:
        scale = jnp.max(jnp.abs(x), axis=-1) / 127.0
        return QArray(jnp.round(x / scale[..., None]).astype(jnp.int8), scale)

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        return quantize(jnp.moveaxis(args[0], dims[0], 0)), RowsSpec()


class Dequantize(StraightThrough):
    def __init__(self, q_aval: Any):
        self.in_avals, self.params = (q_aval,), {}
        self.out_aval = ShapedArray(q_aval.shape, np.dtype(np.float32))
        super().__init__()

    def expand(self, q: Any) -> Any:
        return q.qvalue.astype("float32") * q.scale[..., None]

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        assert isinstance(dims[0], RowsSpec)
        return dequantize(args[0]), 0


def quantize(x: Any) -> Any:
    return Quantize(xlamini.typeof(x))(x)


def dequantize(q: Any) -> Any:
    return Dequantize(xlamini.typeof(q))(q)


A = np.array([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]], np.float32)
Q = QArray(np.array([[42, 85, 127], [85, -106, 127]], np.int8), np.array([3 / 127, 6 / 127], np.float32))
R = Q.qvalue * Q.scale[:, None]
"""The values that `Q` stands for."""
BATCH = np.arange(24, dtype=np.float32).reshape(4, 2, 3) + 1


def norm(q: Any) -> Any:
    return jnp.sum(dequantize(q) ** 2)


def of_batch(f: Any, **options: Any) -> Any:
    return xlamini.vmap(f, in_axes=RowsSpec(), axis_size=4, **options)


def doubled(q: Any) -> Any:
    return quantize(dequantize(q) * 2)


def assert_close(found: Any, expected: Any) -> None:
    if isinstance(expected, QArray):
        assert type(found) is QArray
        found, expected = (found.qvalue, found.scale), (expected.qvalue, expected.scale)
    np.testing.assert_equal(xlamini.tree.structure(found), xlamini.tree.structure(expected))
    xlamini.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, expected)


def test_a_value_is_one_variable_of_its_type() -> None:
    assert xlamini.typeof(Q) == QArrayTy((2, 3)) and xlamini.tree.leaves([Q]) == [Q]
    program = str(xlamini.make_jaxpr(lambda x: dequantize(quantize(x)))(A))
    assert ":q8[2,3] = Quantize" in program
    assert xlamini.eval_shape(quantize, A) == QArrayTy((2, 3))


OF_VALUES: dict[str, tuple[Callable[[], Any], Any]] = {
    "call": (lambda: quantize(A), Q),
    "jit inside": (lambda: xlamini.jit(lambda x: dequantize(quantize(x)))(A), R),
    "jit to": (lambda: xlamini.jit(quantize)(A), Q),
    "jit of": (lambda: xlamini.jit(dequantize)(Q), R),
    "jit of jit": (lambda: xlamini.jit(xlamini.jit(lambda q, x: dequantize(q) + x))(Q, A), R + A),
    "jit of a tree": (lambda: xlamini.jit(lambda d: {"b": d["a"]})({"a": Q})["b"], Q),
    "jit of a constant": (lambda: xlamini.jit(lambda x: dequantize(Q) + x)(A), R + A),
    "grad inside": (lambda: xlamini.grad(lambda x: norm(quantize(x)))(A), 2 * R),
    "grad": (lambda: xlamini.grad(norm)(Q), 2 * R),
    "jit of grad": (lambda: xlamini.jit(xlamini.grad(norm))(Q), 2 * R),
    "grad of jit": (lambda: xlamini.grad(xlamini.jit(norm))(Q), 2 * R),
    "jvp of": (lambda: xlamini.jvp(dequantize, (Q,), (A,))[1], A),
    "jvp to": (lambda: xlamini.jvp(quantize, (A,), (A,)), None),
    "vjp of": (lambda: xlamini.vjp(dequantize, Q)[1](A)[0], A),
    "vjp to": (lambda: xlamini.vjp(quantize, A)[0], Q),
    "linearize": (lambda: xlamini.linearize(dequantize, Q)[1](A), A),
    "checkpoint": (lambda: xlamini.grad(xlamini.checkpoint(norm))(Q), 2 * R),
    "cond to": (lambda: lax.cond(A.sum() > 100, lambda q: q, doubled, Q), QArray(Q.qvalue, 2 * Q.scale)),
    "cond in jit": (lambda: xlamini.jit(lambda p, q: lax.cond(p, lambda q: q, doubled, q))(True, Q), Q),
    "grad of cond": (lambda: xlamini.grad(lambda q: lax.cond(A[0, 0] > 9, norm, lambda q: 2 * norm(q), q))(Q), 4 * R),
    "scan carry": (lambda: lax.scan(lambda q, _: (doubled(q), None), Q, None, 3)[0], QArray(Q.qvalue, 8 * Q.scale)),
    "while": (
        lambda: lax.while_loop(lambda q: dequantize(q).sum() < 100, doubled, Q), QArray(Q.qvalue, 16 * Q.scale)),
    "fori_loop": (lambda: lax.fori_loop(0, 3, lambda i, q: doubled(q), Q), QArray(Q.qvalue, 8 * Q.scale)),
    "grad of scan": (
        lambda: xlamini.grad(lambda q: lax.scan(lambda c, _: (c + norm(q), None), 0.0, None, 3)[0])(Q), 6 * R),
    "grad of scan carry": (
        lambda: xlamini.grad(
            lambda x: dequantize(lax.scan(lambda q, _: (doubled(q), None), quantize(x), None, 3)[0]).sum())(A),
        np.full((2, 3), 8.0)),
}  # fmt: skip


@pytest.mark.parametrize("use", OF_VALUES)
def test_values_of_a_type_under_all_transformations(use: str) -> None:
    run, expected = OF_VALUES[use]
    found = run()
    if expected is None:
        (found, tangent), expected = found, Q
        assert_close(tangent, A)
    assert_close(found, expected)


@pytest.mark.full
def test_mapped_values() -> None:
    batch = xlamini.vmap(quantize, out_axes=RowsSpec())(BATCH)
    values = np.asarray(dequantize(batch))
    assert xlamini.typeof(batch) == QArrayTy((4, 2, 3))
    assert_close(of_batch(dequantize)(batch), values)
    assert_close(xlamini.jit(of_batch(xlamini.jit(dequantize)))(batch), values)
    assert_close(of_batch(xlamini.grad(norm))(batch), 2 * values)
    assert_close(xlamini.grad(lambda q: of_batch(norm)(q).sum())(batch), 2 * values)
    assert_close(lax.scan(lambda c, q: (c + norm(q), None), 0.0, batch, length=4)[0], (values**2).sum())
    assert_close(lax.scan(lambda c, x: (c, quantize(x)), 0.0, BATCH)[1], batch)
    sliced = lambda q: lax.scan(lambda c, q: (c + norm(q), None), 0.0, q, length=4)[0]
    assert_close(xlamini.grad(sliced)(batch), 2 * values)


# --- a type whose tangents are of a user's type too, by primitives with rules for all operands


@dataclass(frozen=True)
class Tup:
    elements: tuple[Any, ...]


@dataclass(frozen=True)
class TupTy(HiType):
    types: tuple[Any, ...]

    def lo_ty(self) -> list[Any]:
        return [lo for ty in self.types for lo in ty.lo_ty()]

    def lower_val(self, tup: Any) -> list[Any]:
        return [lo for ty, x in zip(self.types, tup.elements, strict=True) for lo in ty.lower_val(x)]

    def raise_val(self, *parts: Any) -> Tup:
        rest = iter(parts)
        return Tup(tuple(ty.raise_val(*itertools.islice(rest, len(ty.lo_ty()))) for ty in self.types))

    def to_tangent_aval(self) -> TupTy:
        return TupTy(tuple(ty.to_tangent_aval() for ty in self.types))

    def vspace_zero(self) -> Tup:
        return Tup(tuple(ty.vspace_zero() for ty in self.types))

    def vspace_add(self, x: Any, y: Any) -> Any:
        return make_tup(*[element(x, i) + element(y, i) for i in range(len(self.types))])

    length = hijax.aval_property(lambda tup: len(xlamini.typeof(tup).types))

    @hijax.aval_method
    def first(tup: Any) -> Any:
        return element(tup, 0)


register_hitype(Tup, lambda tup: TupTy(tuple(map(xlamini.typeof, tup.elements))))


class MakeTup(HiPrimitive):
    def abstract_eval(self, *avals: Any) -> Any:
        return TupTy(avals), set()

    def to_lojax(self, *elements: Any) -> Tup:
        return Tup(elements)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return make_tup(*primals), make_tup(*map(hijax.instantiate_zeros, tangents))

    def transpose(self, ct: Any, *operands: Any) -> Any:
        return [element(ct, i) if hijax.is_undefined_primal(x) else None for i, x in enumerate(operands)]


make_tup_p = MakeTup("make_tup")


def make_tup(*elements: Any) -> Any:
    return make_tup_p.bind(*elements)


class Element(VJPHiPrimitive):
    index: int

    def __init__(self, ty: Any, index: int):
        self.in_avals, self.out_aval, self.params = (ty,), ty.types[index], {"index": index}
        super().__init__()

    def expand(self, tup: Any) -> Any:
        return tup.elements[self.index]

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, accumulator: Any) -> None:  # type: ignore[override]
        places = enumerate(self.in_avals[0].types)
        accumulator.accum(make_tup(*[ct if i == self.index else ty.vspace_zero() for i, ty in places]))


def element(tup: Any, index: int) -> Any:
    return Element(xlamini.typeof(tup), index)(tup)


TUP = Tup((np.arange(3, dtype=np.float32), np.float32(2.0)))


def energy(tup: Any) -> Any:
    return (element(tup, 0) * element(tup, 1)).sum() + element(tup, 1) ** 2


@pytest.mark.parametrize(
    "gradient",
    [
        xlamini.grad(energy),
        xlamini.jit(xlamini.grad(energy)),
        xlamini.grad(xlamini.jit(energy)),
        xlamini.grad(xlamini.checkpoint(energy)),
        xlamini.grad(lambda tup: lax.cond(True, energy, lambda tup: 2 * energy(tup), tup)),
    ],
)
def test_gradients_of_a_users_type(gradient: Any) -> None:
    found = gradient(TUP)
    assert type(found) is Tup
    np.testing.assert_allclose(found.elements[0], [2.0, 2.0, 2.0])
    np.testing.assert_allclose(found.elements[1], 7.0)


def test_tangents_and_zeros_of_a_users_type() -> None:
    assert xlamini.jvp(energy, (TUP,), (TUP,))[1] == 20.0
    second = xlamini.grad(lambda tup: element(xlamini.grad(energy)(tup), 1))(TUP)
    np.testing.assert_allclose(second.elements[0], np.ones(3))
    assert second.elements[1] == 2.0
    nothing = xlamini.grad(lambda tup: 1.0)(TUP)
    np.testing.assert_allclose(nothing.elements[0], np.zeros(3))
    ct = xlamini.vjp(make_tup, *TUP.elements)[1](TUP)
    np.testing.assert_allclose(ct[0], TUP.elements[0])
    assert ct[1] == 2.0


def test_attributes_of_traced_values() -> None:
    assert list(xlamini.jit(lambda tup: tup.first() * tup.length)(TUP)) == [0.0, 2.0, 4.0]
    with pytest.raises(AttributeError, match="has no attribute 'second'"):
        xlamini.jit(lambda tup: tup.second())(TUP)


# --- errors of types


@pytest.mark.parametrize(
    ("use", "problem"),
    [
        (lambda: xlamini.jit(lambda tup: jnp.reshape(tup, (1,)))(TUP), r"reshape takes arrays.*at .*test_hijax"),
        (lambda: xlamini.export.export(xlamini.jit(energy))(TUP), "an exported program takes and returns arrays"),
        (lambda: xlamini.vmap(energy)(TUP), "has no axis to map"),
        (lambda: register_hitype("Tup", TupTy), "val_cls must be a class"),
        (lambda: hijax.MutableHiType().lo_ty_qdd(None), "write `def lo_ty_qdd"),
        (lambda: HiType().lo_ty(), "for lowering, write `def lo_ty"),
    ],
)
def test_a_type_where_it_is_not_understood(use: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=problem):
        use()


def test_a_class_whose_values_tell_no_type() -> None:
    class Odd:
        pass

    register_hitype(Odd, lambda odd: 3)
    with pytest.raises(TypeError, match="must return a HiType for a Odd, got 3"):
        xlamini.jit(lambda odd: 1.0)(Odd())


# --- over devices

MESH = xlamini.make_mesh((2,), ("i",))
SPLIT, WHOLE = xlamini.P("i"), xlamini.P()


def scaled_rows(x: Any, q: QArray) -> Any:
    return x * dequantize(q)[0]


@pytest.mark.parametrize("wrap", [lambda f: f, xlamini.jit], ids=["eager", "jit"])
def test_whole_values_of_a_users_type_in_shard_map(wrap: Any) -> None:
    def both(x: Any, q: Any) -> Any:
        return scaled_rows(x, q), q

    expected = scaled_rows(A, Q)
    over = xlamini.shard_map(both, mesh=MESH, in_specs=(SPLIT, WHOLE), out_specs=(SPLIT, WHOLE))
    rows, same = wrap(over)(A, Q)
    np.testing.assert_allclose(rows, expected, rtol=1e-6)
    np.testing.assert_array_equal(same.qvalue, Q.qvalue)
    closed = xlamini.shard_map(lambda x: scaled_rows(x, Q), mesh=MESH, in_specs=SPLIT, out_specs=SPLIT)
    np.testing.assert_allclose(wrap(closed)(A), expected, rtol=1e-6)


def test_the_gradient_for_a_value_of_a_users_type_in_shard_map() -> None:
    def loss(f: Any) -> Any:
        return xlamini.grad(lambda q: f(A, q).sum())(Q)

    over = xlamini.shard_map(scaled_rows, mesh=MESH, in_specs=(SPLIT, WHOLE), out_specs=SPLIT)
    np.testing.assert_allclose(loss(over), loss(scaled_rows), rtol=1e-6)
