"""`ds` in indices of arrays, updates and refs: values of NumPy's slices, and what happens out of bounds."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import ds, numpy as jnp, tree
from xlamini.ref import new_ref

X = np.arange(10.0, dtype=np.float32)
M = np.arange(12).reshape(3, 4)

# index as a function of a start, and the same in NumPy
READS: dict[str, tuple[Any, Any]] = {
    "first axis": (lambda i: ds(i, 2), lambda i: np.s_[i : i + 2]),
    "two slices": (lambda i: (ds(i, 2), ds(1, 2)), lambda i: np.s_[i : i + 2, 1:3]),
    "stride": (lambda i: (0, ds(i, 2, 2)), lambda i: np.s_[0, i : i + 3 : 2]),
    "array in front": (lambda i: (np.array([0, 2]), ds(i, 2)), lambda i: np.s_[[0, 2], i : i + 2]),
    "array behind": (lambda i: (ds(i, 2), np.array([0, 2])), lambda i: np.s_[i : i + 2, [0, 2]]),
    "ellipsis": (lambda i: (..., ds(i, 2)), lambda i: np.s_[..., i : i + 2]),
    "new axis, point": (lambda i: (None, ds(i, 2), -1), lambda i: np.s_[None, i : i + 2, -1]),
    "size 0": (lambda i: ds(i, 0), lambda i: np.s_[i:i]),
    "from the end": (lambda i: (0, ds(-i - 1, 1)), lambda i: np.s_[0, -i - 1 : -i]),
}


@pytest.mark.parametrize("name", READS)
def test_reads_and_updates_select_what_numpys_slices_do(name: str) -> None:
    index, numpys = READS[name]
    m, expected = jnp.asarray(M), M[numpys(1)]
    updated = M.copy()
    updated[numpys(1)] = 50
    for run in (lambda f: f(1), lambda f: f(jnp.int32(1)), lambda f: xlamini.jit(f)(np.int8(1))):
        np.testing.assert_array_equal(run(lambda i: m[index(i)]), expected)
        np.testing.assert_array_equal(run(lambda i: m.at[index(i)].set(50)), updated)
        np.testing.assert_array_equal(run(lambda i: m.at[index(i)].get()), expected)


@pytest.mark.full
def test_under_vmap_and_grad() -> None:
    x, starts = jnp.asarray(X), jnp.arange(3)
    np.testing.assert_array_equal(xlamini.vmap(lambda i: x[ds(i, 2)])(starts), [X[i : i + 2] for i in range(3)])
    rows = xlamini.vmap(lambda i: x.at[ds(i, 2)].add(1))(starts)
    np.testing.assert_array_equal(rows[1] - X, [0, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    slope = xlamini.grad(xlamini.jit(lambda x, i: (x[ds(i, 3)] ** 2).sum()))(x, 2)
    np.testing.assert_array_equal(slope, [0, 0, 4, 6, 8, 0, 0, 0, 0, 0])
    both = xlamini.vmap(xlamini.grad(lambda x, i: x[ds(i, 2)].sum()), (None, 0))(x, starts)
    np.testing.assert_array_equal(both.sum(0), [1, 2, 2, 1, 0, 0, 0, 0, 0, 0])


def test_a_traced_start_out_of_bounds() -> None:
    """Reads move the slice into the array, updates are dropped, and `mode` chooses: the numbers are JAX's."""
    x = jnp.asarray(X)
    read = xlamini.jit(lambda i: x[ds(i, 3)])
    np.testing.assert_array_equal([read(20), read(-2), read(-20)], [[7, 8, 9], [7, 8, 9], [0, 1, 2]])
    np.testing.assert_array_equal(xlamini.jit(lambda i: x.at[ds(i, 3)].add(1))(8), X)
    np.testing.assert_array_equal(xlamini.jit(lambda i: x.at[ds(i, 3)].get(mode="fill"))(8), [np.nan] * 3)
    np.testing.assert_array_equal(xlamini.jit(lambda i: x.at[ds(i, 3)].get(mode="clip"))(8), [7, 8, 9])
    np.testing.assert_array_equal(x.at[ds(8, 3)].get(mode="clip"), [7, 8, 9])
    np.testing.assert_array_equal(xlamini.jit(lambda i: x.at[ds(i, 3)].set(0, mode="clip"))(8)[6:], [6, 0, 0, 0])


def test_refs() -> None:
    r = new_ref(jnp.asarray(X))
    np.testing.assert_array_equal(r[ds(2, 3)], [2, 3, 4])
    r[ds(7, 3)] = 0.0

    @xlamini.jit
    def write(i: Any) -> Any:
        r[ds(i, 2)] = r[ds(i, 2)] + 10
        return r.at[ds(i, 2)][1]

    assert float(write(1)) == 12
    np.testing.assert_array_equal(r[...], [0, 11, 12, 3, 4, 5, 6, 0, 0, 0])


def test_the_object_is_a_pytree_and_an_argument() -> None:
    x = jnp.asarray(X)
    np.testing.assert_array_equal(xlamini.jit(lambda d: x[d])(ds(jnp.int32(3), 2)), [3, 4])
    assert tree.leaves(ds(1, 2)) == [] and len(tree.leaves(ds(jnp.int32(1), 2))) == 1
    assert ds(None) == slice(None) and ds(None, 3) == slice(None) and ds(4) == ds(0, 4) == ds(0, 4, 1)
    assert repr(ds(1, 3, 2)) == "Slice(start=1, size=3, stride=2)"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda x: x[ds(8, 3)], IndexError, "out of bounds for axis 0 with size 10; its start is from 0 to 7"),
        (lambda x: x.at[ds(-11, 3)].set(0), IndexError, "out of bounds for axis 0"),
        (lambda x: x[ds(jnp.int32(8), 3)], IndexError, "out of bounds for axis 0"),
        (lambda x: xlamini.jit(lambda i: x[ds(i, 11)])(0), IndexError, "longer than axis 0 with size 10"),
        (lambda x: xlamini.jit(lambda n: x[ds(0, n)])(1), TypeError, "size must be a Python int"),
        (lambda x: ds(1.5, 2), TypeError, "start must be one integer"),
        (lambda x: ds(jnp.arange(2), 2), TypeError, "start must be one integer"),
        (lambda x: ds(0, -1), ValueError, "size must be 0 or more"),
        (lambda x: ds(0, 1, -1), ValueError, "stride must be 1 or more"),
        (lambda x: x[ds(0, 1), ds(0, 1)], IndexError, "too many indices"),
    ],
)
def test_errors(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make(jnp.asarray(X))
