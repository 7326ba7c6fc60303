"""check_grads: comparison of a function's derivatives with finite differences, in both modes, to any order."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import (
    Values,
    aval_of,
    first_difference,
    flatten_from_user,
    float0,
    keystr,
    tree_flatten_with_path,
    unflatten,
)
from xlamini.transforms.derivatives.finite_differences import directional, pairing, random_tangent
from xlamini.transforms.derivatives.jvp import jvp
from xlamini.transforms.derivatives.vjp import vjp

_TOLERANCES = {"bfloat16": 1e-1, "float16": 1e-2, "float32": 2e-3, "float64": 1e-5, "complex64": 1e-3}
EPS = 1e-4


def check_grads(
    f: Callable[..., Any],
    args: Values,
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """AssertionError unless the derivatives of `f` at `args`, up to `order`, agree with central differences.

    Arguments and outputs of `f` are arrays, numbers, or containers of them. `modes` are "fwd" (jvp), "rev" (vjp) or
    both; higher orders check every combination of modes. The tangents are random, with a fixed seed; the step of the
    differences is `eps` times the tangent. The default tolerances depend on the dtype.

    >>> check_grads(xlamini.numpy.sin, (1.0,), order=2)
    """
    for mode in modes:
        if mode not in ("fwd", "rev"):
            raise ValueError(f"check_grads: modes must be 'fwd' and 'rev', got {mode!r}")
    _check(f, tuple(args), order, tuple(modes), {"atol": atol, "rtol": rtol, "eps": EPS if eps is None else eps}, "")


def _check(
    f: Callable[..., Any], args: tuple, order: int, modes: Sequence[str], options: dict[str, Any], above: str
) -> None:
    derived: list[tuple[str, Callable[..., Any]]] = []
    if "fwd" in modes:
        derived.append((f"{above}jvp", functools.partial(_jvp_of, f)))
        check_jvp(f, functools.partial(jvp, f), args, err_msg=f"{above}jvp", **options)
    if "rev" in modes:
        derived.append((f"{above}vjp", functools.partial(_vjp_of, f)))
        check_vjp(f, functools.partial(vjp, f), args, err_msg=f"{above}vjp", **options)
    for name, derivative in derived if order > 1 else ():
        _check(derivative, args, order - 1, modes, options, f"{name} of ")


def _jvp_of(f: Callable[..., Any], *args: Any) -> Any:
    """The outputs and their tangents for random input tangents, without float0 tangents."""
    out, slopes = jvp(f, args, _tangents(args))
    return out, _with_derivative(slopes)


def _vjp_of(f: Callable[..., Any], *args: Any) -> Any:
    """The cotangents of the arguments for the output as its own cotangent, without float0 cotangents."""
    out, pull = vjp(f, *args)
    return _with_derivative(pull(out))


def _with_derivative(tangents: Any) -> list[Any]:
    return [t for t in flatten_from_user(tangents)[0] if t.dtype != float0]


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Values,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """AssertionError unless `f_jvp(args, tangents)` returns the outputs of `f` and their tangents.

    >>> check_jvp(xlamini.numpy.sin, lambda p, t: xlamini.jvp(xlamini.numpy.sin, p, t), (1.0,))
    """
    args = tuple(args)
    tangents = _tangents(args)
    out, slope = f_jvp(args, tangents)
    _check_close(out, f(*args), f"{err_msg}: outputs", atol, rtol)
    _check_close(slope, numerical_jvp(f, args, tangents, eps), f"{err_msg}: tangents", atol, rtol)


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Values,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """AssertionError unless `f_vjp(*args)` returns the output of `f` and its pullback.

    >>> check_vjp(xlamini.numpy.sin, lambda x: xlamini.vjp(xlamini.numpy.sin, x), (1.0,))
    """
    args = tuple(args)
    out, pull = f_vjp(*args)
    _check_close(out, f(*args), f"{err_msg}: outputs", atol, rtol)
    tangents, cotangent = _tangents(args), _tangents(out, 1)
    slopes = numerical_jvp(f, args, tangents, eps)
    actual = pairing(flatten_from_user(pull(cotangent))[0], flatten_from_user(tangents)[0])
    expected = pairing(flatten_from_user(cotangent)[0], flatten_from_user(slopes)[0])
    dtypes = [str(aval_of(x).dtype) for x in flatten_from_user((out, args))[0]]
    _check_close(np.asarray(actual), np.asarray(expected), f"{err_msg}: pairing", atol, rtol, dtypes)


def numerical_jvp(f: Callable[..., Any], args: Values, tangents: Values, eps: float = EPS) -> Any:
    """The tangents of the outputs of `f(*args)` by central differences."""
    leaves, tree = flatten_from_user(tuple(args))

    def flat(xs: list[Any]) -> list[Any]:
        return flatten_from_user(f(*unflatten(tree, xs)))[0]

    slopes = directional(flat, leaves, flatten_from_user(tuple(tangents))[0], eps)
    return unflatten(flatten_from_user(f(*args))[1], slopes)


def _tangents(tree_of_values: Any, seed: int = 0) -> Any:
    """Random tangents for a pytree of values, with a fixed seed."""
    rng = np.random.RandomState(seed)
    leaves, tree = flatten_from_user(tree_of_values)
    return unflatten(tree, [random_tangent(rng, aval_of(x)) for x in leaves])


def _check_close(
    actual: Any, expected: Any, what: str, atol: float | None, rtol: float | None, dtypes: Sequence[str] = ()
) -> None:
    leaves, tree = flatten_from_user(expected)
    if flatten_from_user(actual)[1] != tree:
        where = first_difference(tree, flatten_from_user(actual)[1], ("f", "derivative"))
        raise AssertionError(f"{what} differ in structure: {where}")
    for (path, x), y in zip(tree_flatten_with_path(actual)[0], leaves, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if x.dtype != float0:
            default = max(_TOLERANCES.get(of, 1e-5) for of in (*dtypes, str(x.dtype)))
            near, part = default if atol is None else atol, default if rtol is None else rtol
            wide = "complex128" if "c" in (x.dtype.kind, y.dtype.kind) else "float64"
            np.testing.assert_allclose(x.astype(wide), y.astype(wide), part, near, err_msg=what + keystr(path))
