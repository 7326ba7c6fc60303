"""einsum beside NumPy's: subscripts of every form, paths, derivatives, the programs it makes, errors by their text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp

SIZES = dict(zip("abcdefghijklmnopqrstuvwxyz", [2, 3, 4, 5, 3, 2, 3, 2, 3, 4, 2, 5] + [2] * 14, strict=True))
HIDDEN = (2, 3)
SUBSCRIPTS = """
    ij,jk->ik   ij,jk       ij->ji      ii->i       ii          iij->ij     ij->        ij->j       ij,ij->ij
    ij,j->ij    i,ij->ij    i,j         i,j->ji     ij,kl->ik   ij,jk,kl->il            ij,jk,kl,lm->im
    ...ij,...jk->...ik      ...ij,jk    bhqd,bhkd->bhqk         bqhd,bkhd->bhqk         bhqk,bkhd->bqhd
    ij,ij       ij,ji->     abc,cd->abd             a,a,a->     ab,b,c->ca  i...,i...->...          ...->...
    ii,jj->ij   iji->j      ij,kj->ki   ij,ik,il->jkl           ...,...     ij...->...ji            a...b,b->a...
""".split()


def operands(subscripts: str, dtype: Any = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(len(subscripts))
    terms = subscripts.split("->")[0].split(",")
    shapes = [
        tuple(n for c in term.replace("...", "*") for n in (HIDDEN if c == "*" else (SIZES[c],))) for term in terms
    ]
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


@pytest.mark.sample(3)
@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_as_numpy(subscripts: str) -> None:
    arrays = operands(subscripts)
    expected = np.einsum(subscripts, *arrays)
    np.testing.assert_allclose(jnp.einsum(subscripts, *arrays), expected, rtol=1e-4, atol=1e-5)
    traced = xlamini.jit(lambda *xs: jnp.einsum(subscripts, *xs, optimize=False))(*arrays)
    np.testing.assert_allclose(traced, expected, rtol=1e-4, atol=1e-5)


def test_labels_are_any_characters() -> None:
    x, y = operands("ij,jk")
    for subscripts in ("12,23->13", "1_,_3->13", "αβ,βγ->αγ"):
        np.testing.assert_allclose(jnp.einsum(subscripts, x, y), x @ y, rtol=1e-5)
    qkv = jnp.einsum("bsd,3dkh->bs3kh", jnp.ones((1, 2, 3)), jnp.ones((4, 3, 2, 2)))
    assert qkv.shape == (1, 2, 4, 2, 2) and bool((qkv == 3).all())


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    "subscripts", ["ij,jk->ik", "iij->ij", "ij,j->ij", "bhqk,bkhd->bqhd", "ij,jk,kl->il", "a,a,a->"]
)
def test_derivatives(subscripts: str) -> None:
    with xlamini.enable_x64(True):
        arrays = operands(subscripts, np.float64)
        positions = tuple(range(len(arrays)))

        def scalar(*xs: Any) -> Any:
            return jnp.sum(jnp.sin(jnp.einsum(subscripts, *xs)))

        gradients = xlamini.grad(scalar, argnums=positions)(*arrays)
        directions = [np.random.default_rng(1).standard_normal(x.shape) for x in arrays]
        ahead, behind = (scalar(*(x + s * 1e-6 * d for x, d in zip(arrays, directions, strict=True))) for s in (1, -1))
        along = sum(float(jnp.sum(g * d)) for g, d in zip(gradients, directions, strict=True))
        assert float(ahead - behind) / 2e-6 == pytest.approx(along, rel=1e-6, abs=1e-8)


def test_vmap_is_a_loop() -> None:
    x, y = operands("abc,bd")
    found = xlamini.vmap(lambda x: jnp.einsum("bc,bd->cd", x, y))(x)
    np.testing.assert_allclose(found, np.einsum("abc,bd->acd", x, y), rtol=1e-5, atol=1e-6)


def test_labels_as_lists() -> None:
    x, y = operands("ij,jk")
    np.testing.assert_allclose(jnp.einsum(x, [0, 1], y, [1, 2], [2, 0]), (x @ y).T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jnp.einsum(x, [..., 1], y, [1, 2]), x @ y, rtol=1e-5, atol=1e-6)


def test_axes_of_size_one_broadcast() -> None:
    x, y = np.ones((1, 2, 3), np.float32), np.ones((4, 3, 5), np.float32)
    np.testing.assert_array_equal(jnp.einsum("...ij,...jk", x, y), np.full((4, 2, 5), 3))


def test_paths() -> None:
    arrays = operands("ij,jk,kl")
    path, account = jnp.einsum_path("ij,jk,kl", *arrays)
    assert sorted(map(len, path)) == [2, 2]
    assert "Complete contraction" in account
    expected = np.einsum("ij,jk,kl", *arrays)
    for optimize in ([(1, 2), (0, 1)], ["einsum_path", (0, 2), (0, 1)], path, True, "greedy", "optimal", False):
        np.testing.assert_allclose(jnp.einsum("ij,jk,kl", *arrays, optimize=optimize), expected, rtol=1e-4, atol=1e-5)


def primitives_of(subscripts: str) -> list[str]:
    jaxpr = xlamini.make_jaxpr(lambda *xs: jnp.einsum(subscripts, *xs))(*operands(subscripts)).jaxpr
    return [eqn.primitive.name for eqn in jaxpr.eqns]


@pytest.mark.parametrize(
    ("subscripts", "expected"),
    [
        ("ij,jk->ik", ["dot_general"]),
        ("ij,jk->ki", ["dot_general"]),
        ("ij,kj->ik", ["dot_general"]),
        ("bhqd,bhkd->bhqk", ["dot_general"]),
        ("bqhd,bkhd->bhqk", ["dot_general"]),
        ("bhqk,bkhd->bqhd", ["dot_general", "transpose"]),
        ("ij,ij->ij", ["mul"]),
        ("ij->j", ["reduce_sum"]),
        ("ij->ji", ["transpose"]),
        ("ij,ij->", ["dot_general"]),
    ],
)
def test_no_needless_operations(subscripts: str, expected: list[str]) -> None:
    assert primitives_of(subscripts) == expected


def test_dtypes() -> None:
    x, y = operands("ij,jk", np.float16)
    assert jnp.einsum("ij,jk", x, y).dtype == np.float16
    assert jnp.einsum("ij,jk", x, y, preferred_element_type="float32").dtype == np.float32
    assert jnp.einsum("ij,jk", x, y.astype(np.int32)).dtype == np.float16
    mask = np.array([[True, False], [False, False]])
    np.testing.assert_array_equal(jnp.einsum("ij->j", mask), [True, False])


X = np.ones((2, 3), np.float32)
ERRORS: list[tuple[Callable[[], Any], type, str]] = [
    (lambda: jnp.einsum("ij,jk", X, X), TypeError, "einsum: label 'j' has size 3, but 2 in operand 1 of shape (2, 3)"),
    (lambda: jnp.einsum("ii", X), TypeError, "einsum: label 'i' has size 2, but 3 in operand 0"),
    (lambda: jnp.einsum("ij,jk,kl", X, X), ValueError, "'ij,jk,kl' describes 3 operands, but 2 are given"),
    (lambda: jnp.einsum("ijk", X), ValueError, "'ijk' in 'ijk' names 3 axes, but its operand has 2"),
    (lambda: jnp.einsum("i", X), ValueError, "name each axis, or write ... for the others"),
    (lambda: jnp.einsum("ij->k", X), ValueError, "the output of 'ij->k' has 'k', which no operand has"),
    (lambda: jnp.einsum("ij->ii", X), ValueError, "the output of 'ij->ii' names a label twice"),
    (lambda: jnp.einsum("i.", X), ValueError, "'i.' in 'i.' must be labels"),
    (lambda: jnp.einsum(X, [0, "a"]), ValueError, "[0, 'a'] are no lists of labels"),
    (lambda: jnp.einsum("ij", X, out=X), NotImplementedError, "einsum: `out` must be None, because"),
    (lambda: jnp.einsum("ij", X, precision="exact"), ValueError, "einsum: unknown precision 'exact'"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[text for _, _, text in ERRORS])
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()


def test_labels_may_be_any_that_can_be_sorted() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    expected = np.einsum("ij,jk->ki", x, y)
    np.testing.assert_array_equal(jnp.einsum(x, ["row", "in"], y, ["in", "out"], ["out", "row"]), expected)
    np.testing.assert_array_equal(jnp.einsum(x, ["z", "m"], y, ["m", "a"]), expected)  # the output's order: a, z
    np.testing.assert_array_equal(jnp.einsum(x, [..., 70], y, [70, 60], [60, ...]), expected)
    with pytest.raises(ValueError, match="the output has the label 5, which no operand has"):
        jnp.einsum(x, [0, 1], [5])
