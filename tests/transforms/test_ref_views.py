"""Views of refs: `ref.at[...]` and views of views. Values are NumPy's, or what JAX 0.10.2 gives inside of jit."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import grad, jit, lax, new_ref, numpy as jnp
from xlamini.experimental.hijax import AbstractRef, TransformedRef
from xlamini.ref import addupdate, freeze, get, set as set_, swap

A = np.arange(12, dtype=np.float32).reshape(3, 4)
BITS = [[0, 1065353216, 1073741824, 1077936128]]
"""The bits of 0, 1, 2, 3, as JAX gives them."""

READS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "row": (lambda r: r.at[1][...], A[1]),
    "element of a row": (lambda r: r.at[1][0], A[1, 0]),
    "get": (lambda r: r.at[1].get(1), A[1, 1]),
    "of the ref": (lambda r: r.get((2, slice(1, 3))), A[2, 1:3]),
    "at at": (lambda r: r.at[1:].at[0][...], A[1]),
    "of a column": (lambda r: r.at[1:, 1].at[0][...], A[1, 1]),
    "stride": (lambda r: r.at[::2].at[1][...], A[2]),
    "negative": (lambda r: r.at[-1][...], A[2]),
    "array": (lambda r: r.at[jnp.array([0, 2])].at[0][...], A[0]),
    "everything": (lambda r: r.at[...].at[()][...], A),
    "reshape": (lambda r: r.reshape(4, 3)[0], A.reshape(4, 3)[0]),
    "part reshaped": (lambda r: r.at[0:2].reshape((2, -1)).at[1][...], A[1]),
    "T": (lambda r: r.at[0:2].T.at[0][...], A[:2, 0]),
    "transpose": (lambda r: r.transpose((1, 0))[...], A.T),
    "bitcast": (lambda r: r.at[0:1].bitcast(jnp.int32)[...], BITS),
    "bitcast to half": (lambda r: r.at[0:1, :2].bitcast(jnp.int16)[...], [[0, 0], [0, 16256]]),
    "bitcast and back": (lambda r: r.bitcast(jnp.int16).bitcast(jnp.float32)[...], A),
    "ref.get": (lambda r: get(r.at[1], 0), A[1, 0]),
    "freeze": (lambda r: freeze(r.at[1]), A[1]),
}


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("read", READS)
def test_reading(read: str, wrap: Any) -> None:
    fun, expected = READS[read]
    np.testing.assert_array_equal(wrap(fun)(new_ref(A)), expected)


def changed(change: Callable[[np.ndarray], None]) -> np.ndarray:
    a = A.copy()
    change(a)
    return a


def iadd(view: Any, value: Any) -> None:
    view[...] += value


WRITES: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any]]] = {
    "row": (lambda r: r.at[1].__setitem__(..., 5.0), lambda a: a.__setitem__(1, 5)),
    "set": (lambda r: r.at[1].set(7.0, 2), lambda a: a.__setitem__((1, 2), 7)),
    "set of the ref": (lambda r: r.set(7.0, (1, 2)), lambda a: a.__setitem__((1, 2), 7)),
    "at at": (lambda r: r.at[1].at[1:3].__setitem__(..., 9.0), lambda a: a.__setitem__((1, slice(1, 3)), 9)),
    "three": (lambda r: r.at[1:].at[:, 1:].at[0].set(-1.0), lambda a: a.__setitem__((1, slice(1, None)), -1)),
    "add": (lambda r: r.at[1].add(1.0), lambda a: a[1].__iadd__(1)),
    "in place": (lambda r: iadd(r.at[1], 1.0), lambda a: a[1].__iadd__(1)),
    "addupdate": (lambda r: addupdate(r.at[1:], 0, A[0]), lambda a: a[1].__iadd__(A[0])),
    "addupdate of a view": (lambda r: r.at[1].addupdate(2.0), lambda a: a[1].__iadd__(2)),
    "T": (lambda r: r.at[0:2].T.at[0].set(jnp.array([100.0, 200.0])), lambda a: a[:2, 0].__setitem__(..., [100, 200])),
    "reshape": (lambda r: r.reshape(12).at[5].set(3.0), lambda a: a.reshape(12).__setitem__(5, 3)),
    "part reshaped": (lambda r: r.at[0:2].reshape(8).add(1.0), lambda a: a[:2].__iadd__(1)),
    "bitcast": (lambda r: r.bitcast(jnp.int32).at[0].set(0), lambda a: a.__setitem__(0, 0)),
    "ref.set": (lambda r: set_(r.at[1], 0, 1.0), lambda a: a.__setitem__((1, 0), 1)),
    "swap": (lambda r: swap(r.at[1], ..., jnp.ones(4)), lambda a: a.__setitem__(1, 1)),
    "max": (lambda r: r.at[:2].at[1].max(5.5), lambda a: a[1].__setitem__(..., np.maximum(a[1], 5.5))),
}


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("write", WRITES)
def test_writing(write: str, wrap: Any) -> None:
    fun, change = WRITES[write]
    r = new_ref(A)
    wrap(lambda r: (fun(r), None)[1])(r)
    np.testing.assert_array_equal(r[...], changed(change))


def test_swap_returns_what_was_there() -> None:
    r = new_ref(A)
    np.testing.assert_array_equal(r.at[1].at[2:].swap(jnp.zeros(2)), A[1, 2:])
    np.testing.assert_array_equal(r.swap(jnp.ones((3, 4)))[1], [4, 5, 0, 0])
    assert (r[...] == 1).all()


def test_a_view_tells_its_type() -> None:
    r = new_ref(A)
    view = r.at[0:2].T
    assert isinstance(view, TransformedRef) and not isinstance(r, TransformedRef)
    assert (view.shape, view.dtype, view.ndim, view.size) == ((4, 2), np.float32, 2, 8)
    assert view.type == AbstractRef(xlamini.typeof(jnp.zeros((4, 2)))) and view.ref is r and len(view.transforms) == 2
    assert r.bitcast(jnp.int16).shape == (6, 4) and repr(r.at[1].reshape(2, 2)).endswith(".at[1].reshape((2, 2))")


# --- under transformations


def recurrence(x: Any) -> Any:
    """A loop that writes to a part of a part, and adds to another: f(x) = 3 x^2 + sum of (x c)^2 for c = 1, 2, 3."""
    r = new_ref(jnp.zeros((3, 4)))

    def body(c: Any, i: Any) -> Any:
        r.at[i].at[1].set(x * c)
        r.at[i].addupdate(x, 2)
        return c + 1, None

    lax.scan(body, 1.0, jnp.arange(3))
    return (r[...] ** 2).sum()


USES: dict[str, tuple[Callable[[], Any], Any]] = {
    "call": (lambda: recurrence(2.0), 68.0),
    "jit": (lambda: jit(recurrence)(2.0), 68.0),
    "grad": (lambda: grad(recurrence)(2.0), 68.0),
    "jit of grad": (lambda: jit(grad(recurrence))(2.0), 68.0),
    "grad of jit": (lambda: grad(jit(recurrence))(2.0), 68.0),
    "vmap": (lambda: xlamini.vmap(recurrence)(jnp.array([1.0, 2.0])), [17.0, 68.0]),
    "vmap of grad": (lambda: xlamini.vmap(grad(recurrence))(jnp.array([1.0, 2.0])), [34.0, 68.0]),
    "grad of vmap": (
        lambda: grad(lambda x: xlamini.vmap(recurrence)(x).sum())(jnp.array([1.0, 2.0])), [34.0, 68.0]),
    "jvp": (lambda: xlamini.jvp(recurrence, (2.0,), (0.5,))[1], 34.0),
    "checkpoint": (lambda: grad(xlamini.checkpoint(recurrence))(2.0), 68.0),
    "hessian": (lambda: xlamini.hessian(recurrence)(2.0), 34.0),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("use", USES)
def test_views_under_transformations(use: str) -> None:
    run, expected = USES[use]
    np.testing.assert_allclose(run(), expected, rtol=1e-6)


def test_views_of_an_argument() -> None:
    """Each example writes to its row, each step to its element."""
    r = new_ref(A)
    xlamini.vmap(lambda r, x: r.at[1:].at[0].set(x))(r, jnp.array([-1.0, -2.0, -3.0]))
    np.testing.assert_array_equal(r[:, 1], [-1, -2, -3])
    lax.fori_loop(0, 3, lambda i, _: r.T.at[i].at[i].set(0.0), None)
    np.testing.assert_array_equal(np.diag(r[...]), [0, 0, 0])
    lax.cond(r[0, 1] < 0, lambda: r.at[2].T.set(8.0), lambda: None)
    np.testing.assert_array_equal(r[2], [8, 8, 8, 8])


def test_a_view_in_the_backward_pass() -> None:
    """custom_vjp whose backward pass notes the cotangent in a part of a ref."""
    seen = new_ref(jnp.zeros((2, 3)))

    @xlamini.custom_vjp
    def noted(x: Any, view: Any) -> Any:
        return x

    noted.defvjp(lambda x, r: (x, r), lambda r, ct: (r.at[1].at[0].set(ct), (ct, None))[1])
    assert jit(grad(lambda x: jnp.sin(noted(x, seen))))(0.0) == 1.0
    np.testing.assert_array_equal(seen[...], [[0, 0, 0], [1, 0, 0]])


def test_views_as_arguments() -> None:
    """They replace their ref; the numbers and arrays in their indices are arguments too, so programs are reused."""
    r, traces = new_ref(A), []

    @jit
    def add(view: Any, x: Any) -> Any:
        traces.append(view.shape)
        view[...] += x
        return view[0]

    assert add(r.at[1], 10.0) == 14 and add(r.at[2], 10.0) == 18 and add(r.at[1].at[1:3], 1.0) == 16
    assert traces == [(4,), (2,)]
    np.testing.assert_array_equal(r[...], A + [[0, 0, 0, 0], [10, 11, 11, 10], [10, 10, 10, 10]])


@pytest.mark.parametrize(
    ("use", "error", "problem"),
    [
        (lambda r: r.at[5].set(1.0), IndexError, "index 5 is out of bounds"),
        (lambda r: r.at[1].set(np.zeros(3, np.float32)), ValueError, "shape|broadcast"),
        (lambda r: r.at[1].set(1j), ValueError, "ref of dtype float32 cannot take a value of dtype complex64"),
        (lambda r: r.bitcast(jnp.int32).set(1.5), ValueError, "ref of dtype int32 cannot take a value of dtype float"),
        (lambda r: r.reshape(5), ValueError, "reshape"),
        (lambda r: r.at[0].bitcast(jnp.int16), ValueError, "the last dimension but one of f32.* cannot be packed"),
        (lambda r: jnp.sin(r.at[0]), TypeError, "must be an array or a number, got TransformedRef"),
        (lambda r: addupdate(A, 0, 1.0), TypeError, "a ref is needed, got ndarray"),
    ],
)
def test_what_does_not_fit(use: Any, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        use(new_ref(A))
