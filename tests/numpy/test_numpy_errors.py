"""What xlamini.numpy and xlamini.nn say to arguments they cannot take."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.nn as nn
import xlamini.numpy as jnp

X = jnp.ones((2, 3))


def _numbers(x: Any) -> Any:
    yield x


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "shapes": (
        lambda: X + jnp.ones(2),
        TypeError,
        r"add: Incompatible shapes for broadcasting: float32\[2,3\], float32\[2\]; sizes must",
    ),
    "shapes of a function": (lambda: jnp.maximum(X, jnp.ones(4)), TypeError,
        r"maximum: Incompatible shapes for broadcasting"),
    "a list as operand": (
        lambda: jnp.sin([1.0]),
        TypeError,
        r"sin: operand 0 must be an array or a number, got list; .*asarray",
    ),
    "None as operand": (
        lambda: jnp.add(X, None),
        TypeError,
        r"add: operand 1 must be an array or a number, got NoneType",
    ),
    "a list in an operator": (lambda: X * [1, 2, 3], TypeError, r"mul: an array and a list; make the latter an array"),
    "a list compared": (lambda: X == [1, 2, 3], TypeError, r"eq: an array and a list"),
    "text": (lambda: X + "a", TypeError, r"unsupported operand"),
    "difference of bools": (lambda: jnp.subtract(True, False), TypeError, r"sub does not accept dtype bool"),
    "negative bools": (lambda: -jnp.array([True]), TypeError, r"neg does not accept dtype bool"),
    "bits of floats": (lambda: X & 1, TypeError, r"and does not accept dtype float32"),
    "negative power of integers": (lambda: jnp.arange(3) ** -1, TypeError, r"integers have no power -1.*\.astype"),
    "rounded complex quotient": (lambda: jnp.array([1j]) // 2, TypeError, r"floor_divide: complex numbers.*x / y"),
    "absolute complex as float": (
        lambda: jnp.fabs(jnp.array([1j])),
        TypeError,
        r"fabs does not accept dtype complex64",
    ),
    "clip complex": (
        lambda: jnp.clip(jnp.array([1j]), 0, 1),
        ValueError,
        r"clip: the array and its bounds must be real",
    ),
    "an output array": (lambda: jnp.round(X, out=X), NotImplementedError, r"round: `out` must be None"),
    "half a where": (lambda: jnp.where(X > 0, X), TypeError, r"where: both x and y are needed"),
    "where shapes": (lambda: jnp.where(X > 0, X, jnp.ones(4)), TypeError,
        r"where: Incompatible shapes for broadcasting"),
    "expand_dims": (lambda: jnp.expand_dims(jnp.ones(2), None), TypeError, r"expand_dims: axis must be an integer"),
    "bytes": (lambda: xlamini.jit(lambda x: x.tobytes())(1.0), xlamini.errors.ConcretizationTypeError, r"The bytes"),
    "generator": (lambda: xlamini.jit(_numbers), TypeError, r"takes a function, got the generator _numbers"),
    "list and tuple": (lambda: xlamini.jvp(jnp.sin, [1.0], (1.0,)), TypeError, r"primals are a list"),
    "array of None": (lambda: jnp.array(None), ValueError, r"array: None is no array of numbers"),
    "array of text": (lambda: jnp.array(["a"]), TypeError, r"array: the nested lists hold str 'a'"),
    "array with None": (lambda: jnp.array([1, None]), TypeError, r"array: the nested lists hold None"),
    "array of an object": (lambda: jnp.array(object()), TypeError, r"array: object .* is no array of numbers"),
    "an ndarray of objects": (lambda: jnp.asarray(np.array([object()])), TypeError, r"no array can have dtype object"),
    "uneven lists": (lambda: jnp.array([[1, 2], [3]]), ValueError, r"array: .*inhomogeneous.*equal lengths"),
    "uneven arrays": (
        lambda: jnp.array([jnp.ones(2), jnp.ones(3)]),
        TypeError,
        r"must have one shape, got \(2,\), \(3,\)",
    ),
    "too large an integer": (lambda: jnp.array(2**40), OverflowError, r"1099511627776 does not fit in int32"),
    "too large for int8": (lambda: jnp.int8(300), OverflowError, r"300 out of bounds for int8"),
    "an order": (lambda: jnp.array([1], order="F"), NotImplementedError, r"array: order='F'"),
    "a broken size": (lambda: jnp.zeros(2.5), TypeError, r"zeros: a shape is an int or a sequence of ints, got 2.5"),
    "a negative size": (lambda: jnp.ones((2, -1)), TypeError, r"ones: a shape holds no negative size, got \(2, -1\)"),
    "a list to fill with": (
        lambda: jnp.full(2, [1, 2]),
        TypeError,
        r"full: operand 0 must be an array or a number, got list",
    ),
    "too long to fill with": (
        lambda: jnp.full(3, jnp.arange(2)),
        ValueError,
        r"full: fill_value of shape \(2,\) .* \(3,\)",
    ),
    "complex range": (lambda: jnp.arange(3j), ValueError, r"arange: dtype complex64 cannot count"),
    "step 0": (lambda: jnp.arange(0, 1, 0), ZeroDivisionError, r"arange: step must not be 0"),
    "negative number of points": (
        lambda: jnp.linspace(0, 1, -1),
        ValueError,
        r"linspace: num must be 0 or more, got -1",
    ),
    "a negative matrix": (lambda: jnp.eye(-1), ValueError, r"eye: a matrix has no negative number of rows"),
    "triangle of a vector": (lambda: jnp.tril(jnp.ones(2)), ValueError, r"tril: at least two dimensions.*\(2,\)"),
    "diagonal of a scalar": (lambda: jnp.diag(1.0), ValueError, r"diag: a vector or a matrix is needed"),
    "a grid of a matrix": (lambda: jnp.meshgrid(X), ValueError, r"meshgrid: the places must be one-dimensional"),
    "grid indexing": (
        lambda: jnp.meshgrid(X[0], indexing="yx"),
        ValueError,
        r"meshgrid: indexing='yx'; it takes 'xy' or 'ij'",
    ),
    "reshape": (
        lambda: X.reshape(4),
        TypeError,
        r"cannot reshape array of shape \(2, 3\), which has 6 elements, .* \(4,\), which needs 4",
    ),
    "reshape to a rest": (lambda: X.reshape(-1, 4), TypeError, r"which needs a multiple of 4"),
    "reshape to two rests": (lambda: X.reshape(-1, -1), TypeError, r"only one size can follow from the others"),
    "reshape order": (lambda: jnp.reshape(X, 6, order="A"), NotImplementedError, r"reshape: order='A'"),
    "reshape a list": (lambda: jnp.reshape([1, 2], 2), TypeError, r"reshape: an array or a number is needed, got list"),
    "transpose twice": (lambda: jnp.transpose(X, (0, 0)), ValueError, r"transpose: axis \(0, 0\) names an axis twice"),
    "transpose too few": (lambda: jnp.transpose(X, (0,)), TypeError, r"do not name each axis of shape \(2, 3\) once"),
    "swapaxes": (
        lambda: X.swapaxes(0, 2),
        ValueError,
        r"swapaxes: axis 2 is out of range for an array of rank 2; it takes -2 to 1",
    ),
    "moveaxis": (lambda: jnp.moveaxis(X, (0, 1), (1,)), ValueError, r"moveaxis: .* must name equally many axes"),
    "expand_dims of None": (lambda: jnp.expand_dims(X, 5), ValueError, r"expand_dims: axis 5 is out of range"),
    "squeeze": (lambda: jnp.squeeze(X, 0), TypeError, r"squeeze: axis 0 of shape \(2, 3\) has length 2, not 1"),
    "mT of a vector": (lambda: jnp.ones(3).mT, ValueError, r"matrix_transpose: at least two dimensions"),
    "concatenate nothing": (lambda: jnp.concatenate([]), ValueError, r"concatenate: at least one array is needed"),
    "concatenate ranks": (
        lambda: jnp.concatenate([X, X[0]]),
        TypeError,
        r"different numbers of dimensions: \(2, 3\), \(3,\)",
    ),
    "concatenate shapes": (
        lambda: jnp.concatenate([X, X.T]),
        TypeError,
        r"differ in axes other than 0: \(2, 3\), \(3, 2\)",
    ),
    "concatenate axis": (lambda: jnp.concatenate([X, X], 2), ValueError, r"concatenate: axis 2 is out of range"),
    "concatenate lists": (
        lambda: jnp.concatenate([X[0], [1.0]]),
        TypeError,
        r"concatenate: an array or a number is needed",
    ),
    "stack": (lambda: jnp.stack([X, X[0]]), TypeError, r"stack: the arrays must have one shape, got \(2, 3\), \(3,\)"),
    "split": (
        lambda: jnp.split(jnp.arange(4), 3),
        TypeError,
        r"split: 4 elements do not make 3 equal parts; array_split",
    ),
    "split backwards": (
        lambda: jnp.split(jnp.arange(4), [3, 1]),
        ValueError,
        r"split: the indices \(3, 1\) must ascend",
    ),
    "split by nothing": (
        lambda: jnp.split(jnp.arange(4), 0),
        ValueError,
        r"split: the number of parts must be 1 or more",
    ),
    "broadcast_to": (
        lambda: jnp.broadcast_to(X, (3, 2)),
        TypeError,
        r"broadcast_to: shape \(2, 3\) does not broadcast to \(3, 2\)",
    ),
    "broadcast_shapes": (
        lambda: jnp.broadcast_shapes((2, 1), (3, 3)),
        TypeError,
        r"Incompatible shapes for broadcasting: \(2, 1\), \(3, 3\)",
    ),
    "repeats": (lambda: jnp.repeat(X, jnp.array([1, 2, 3]), 0), TypeError, r"repeat: repeats of shape \(3,\)"),
    "negative repeats": (lambda: jnp.repeat(X, -1), TypeError, r"repeat: a shape holds no negative size"),
    "tile": (lambda: jnp.tile(X, -1), TypeError, r"tile: a shape holds no negative size"),
    "flip": (lambda: jnp.fliplr(jnp.arange(3)), ValueError, r"fliplr: axis 1 is out of range for an array of rank 1"),
    "roll": (lambda: jnp.roll(X, (1, 2, 3), (0, 1)), ValueError, r"roll: 3 shifts do not go with 2 axes"),
    "rot90": (lambda: jnp.rot90(jnp.arange(3)), ValueError, r"rot90: at least two dimensions"),
    "negative padding": (lambda: jnp.pad(X, -1), ValueError, r"pad: pad_width holds negative numbers"),
    "padding of other rank": (
        lambda: jnp.pad(X, (1, 2, 3)),
        ValueError,
        r"pad: pad_width of shape \(3,\) does not fit",
    ),
    "padding mode": (lambda: jnp.pad(X, 1, mode="bad"), NotImplementedError, r"pad: mode='bad'; it takes constant"),
    "padding keyword": (
        lambda: jnp.pad(X, 1, mode="edge", constant_values=3),
        ValueError,
        r"'edge' takes no constant_values",
    ),
    "padding of nothing": (
        lambda: jnp.pad(jnp.ones(0), 2, mode="edge"),
        ValueError,
        r"axis 0 of shape \(0,\) is empty",
    ),
    "diff of a scalar": (lambda: jnp.diff(1), ValueError, r"diff: at least one dimension"),
    "negative diff": (lambda: jnp.diff(X, n=-1), ValueError, r"diff: n must be 0 or more"),
    "side": (lambda: jnp.searchsorted(jnp.ones(2), 1, side="x"), ValueError, r"side='x'; it takes 'left' or 'right'"),
    "searchsorted in a matrix": (
        lambda: jnp.searchsorted(X, 1),
        ValueError,
        r"searchsorted: `a` must be one-dimensional",
    ),
    "bincount of floats": (
        lambda: jnp.bincount(jnp.ones(2)),
        TypeError,
        r"bincount: x must be of integers, got float32",
    ),
    "bincount of a matrix": (
        lambda: jnp.bincount(jnp.ones((2, 2), int)),
        ValueError,
        r"bincount: x must be one-dimensional",
    ),
    "interp": (
        lambda: jnp.interp(0.5, jnp.arange(3.0), jnp.arange(2.0)),
        ValueError,
        r"interp: xp and fp must be .*\(3,\) and",
    ),
    "interp outside": (lambda: jnp.interp(0.5, X[0], X[0], left="x"), ValueError, r"interp: 'x' says nothing"),
    "nonzero of more elements than int32 counts": (
        lambda: xlamini.eval_shape(
            lambda x: jnp.nonzero(x, size=3), xlamini.ShapeDtypeStruct((2**31 + 1,), np.dtype(bool))
        ),
        OverflowError,
        r"nonzero: 2147483649 elements are more than int32 can count; search it in parts",
    ),
    "nonzero of a scalar": (lambda: jnp.nonzero(1), ValueError, r"nonzero: at least one dimension"),
    "select": (lambda: jnp.select([X > 0], [X, X]), ValueError, r"select: 1 conditions, but 2 choices"),
    "odd glu": (lambda: nn.glu(X), ValueError, r"glu: axis 1 of shape \(2, 3\) does not part into halves"),
    "softmax axis": (lambda: nn.softmax(X, axis=2), ValueError, r"softmax: axis 2 is out of range"),
    "one_hot axis": (lambda: nn.one_hot(jnp.arange(2), 3, axis=5), ValueError, r"one_hot: axis 5 is out of range"),
}


@pytest.mark.parametrize("case", WRONG)
def test_says_what_is_wrong(case: str) -> None:
    call, error, text = WRONG[case]
    with pytest.raises(error, match=text):
        call()


TRACED = {
    "nonzero": (lambda x: jnp.nonzero(x), r"nonzero: the length of the result .* argument `size`"),
    "where": (lambda x: jnp.where(x > 0), r"argument `size`"),
    "bincount": (lambda x: jnp.bincount(x.astype(int)), r"bincount: .* argument `length`"),
    "repeat": (lambda x: jnp.repeat(x, x.astype(int)), r"repeat: .*give total_repeat_length"),
    "arange": (lambda x: jnp.arange(x[0]), r"is not known while"),
    "zeros": (lambda x: jnp.zeros(x.astype(int)[0]), r"is not known while"),
}


@pytest.mark.parametrize("case", TRACED)
def test_asks_for_what_must_be_known_while_tracing(case: str) -> None:
    fun, text = TRACED[case]
    with pytest.raises((TypeError, ValueError), match=text):
        xlamini.jit(fun)(jnp.ones(2))


def test_strict_dtypes() -> None:
    with xlamini.numpy_dtype_promotion("strict"):
        assert (jnp.arange(2) * 2).dtype == np.int32
        with pytest.raises(ValueError, match="strict"):
            jnp.arange(2) + jnp.ones(2)


def test_strict_ranks() -> None:
    with xlamini.numpy_rank_promotion("raise"):
        assert (X + 1).shape == (2, 3)
        np.testing.assert_array_equal(jnp.where(np.arange(3) > 1, X, 0), np.where(np.arange(3) > 1, X, 0))
        with pytest.raises(ValueError, match=r"could not be broadcast together.*numpy_rank_promotion is 'raise'"):
            X + X[0]
    with xlamini.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="operands of different rank"):
        X * X[0]
