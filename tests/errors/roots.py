"""custom_root and custom_linear_solve."""

from __future__ import annotations

from typing import Any

from tests.support.error_rows import Custom, ones, row
from xlamini import grad, lax, linear_transpose, numpy as jnp, vmap
from xlamini.errors import ShapeError


def double(x: Any) -> Any:
    return 2 * x


def half(_: Any, b: Any) -> Any:
    return b / 2


def linear(matvec: Any = double, b: Any = None, solve: Any = half, **options: Any) -> Any:
    return lax.custom_linear_solve(matvec, ones(2) if b is None else b, solve, **options)


def root(f: Any = double, guess: Any = None, solve: Any = half, tangent_solve: Any = half, **options: Any) -> Any:
    return lax.custom_root(f, ones(2) if guess is None else guess, solve, tangent_solve, **options)


ROWS = [
    row("no function", lambda: linear(solve=3), TypeError, "custom_linear_solve: solve takes a function, got 3"),
    row(
        "no array", lambda: linear(b={"u": Custom()}), TypeError,
        "b['u']\" of custom_linear_solve is Custom() of type Custom",
    ),
    row(
        "matvec's tree", lambda: linear(lambda x: (x, x)), ShapeError,
        "custom_linear_solve: matvec (<lambda>) must return a pytree like b", "b is a leaf, but the result is a tuple",
    ),
    row(
        "matvec's shape", lambda: linear(lambda x: {"u": x["u"][:1]}, {"u": ones(2)}), ShapeError,
        "matvec (<lambda>) must return", "the result['u'] is float32[1], but b['u'] is float32[2]",
    ),
    row(
        "matvec's dtype", lambda: linear(lambda x: x.astype("float16")), TypeError,
        "the result is float16[2], but b is float32[2]", ".astype",
    ),
    row("solve's tree", lambda: linear(solve=lambda f, b: [b]), ShapeError, "custom_linear_solve: solve", "a list"),
    row(
        "solve's shape", lambda: linear(solve=lambda f, b: b.sum()), ShapeError, "solve (<lambda>) must return",
        "the result is float32[], but b is float32[2]",
    ),
    row(
        "transpose_solve's shape", lambda: linear(transpose_solve=lambda f, b: b[:1]), ShapeError,
        "transpose_solve (<lambda>) must return", "float32[1], but b is float32[2]",
    ),
    row(
        "the map's argument", lambda: linear(solve=lambda f, b: f(b[:1])), ShapeError,
        "solve (<lambda>): the argument of the linear map must be a pytree like b", "float32[1], but b is float32[2]",
    ),
    row(
        "aux", lambda: linear(has_aux=True), ShapeError, "custom_linear_solve: solve (half) must return a pair",
        "has_aux is True",
    ),
    row("aux of three", lambda: root(solve=lambda f, x: (x, x, x), has_aux=True), ShapeError, "a tuple of length 3"),
    row(
        "no transpose", lambda: grad(lambda b: linear(b=b).sum())(ones(2)), TypeError,
        "reverse mode needs a solve of the transposed system", "transpose_solve=", "symmetric=True",
    ),
    row(
        "matvec not linear", lambda: linear(jnp.sin, transpose_solve=half), NotImplementedError,
        "matvec (sin) is not linear, so there is no map for transpose_solve", "sin, at",
    ),
    row(
        "matvec a square", lambda: linear(lambda x: x * x, transpose_solve=half), TypeError,
        "matvec (<lambda>) is not linear, so there is no map for transpose_solve",
    ),
    row(
        "transpose by the matrix",
        lambda: linear_transpose(lambda a: linear(lambda x: a * x, transpose_solve=half), ones(2))(ones(2)),
        NotImplementedError, "custom_linear_solve is linear in b alone",
    ),
    row("root no function", lambda: root(tangent_solve=None), TypeError, "custom_root: tangent_solve takes a function"),
    row("guess", lambda: root(guess=["a"]), TypeError, "initial_guess[0]' of custom_root is 'a' of type str"),
    row(
        "f's tree", lambda: root(lambda x: (x, x)), ShapeError, "custom_root: f (<lambda>) must return a pytree like",
        "initial_guess is a leaf",
    ),
    row(
        "f's shape", lambda: root(lambda x: x[:1]), ShapeError, "the result is float32[1], but initial_guess is float32"
    ),
    row(
        "f's dtype", lambda: root(lambda x: x.astype("complex64")), TypeError,
        "complex64[2], but initial_guess is float32[2]",
    ),
    row("root's shape", lambda: root(solve=lambda f, x: x[:1]), ShapeError, "custom_root: solve", "float32[1]"),
    row(
        "root's tree in vmap", lambda: vmap(lambda a: root(guess=a, solve=lambda f, x: (x,)))(ones(3)), ShapeError,
        "custom_root: solve", "a tuple",
    ),
    row(
        "tangent's shape", lambda: root(tangent_solve=lambda g, y: y.sum()), ShapeError,
        "custom_root: tangent_solve (<lambda>) must return a pytree like", "float32[]",
    ),
    row(
        "tangent not linear",
        lambda: grad(lambda a: root(lambda x: x - a, tangent_solve=lambda g, y: y * y).sum())(ones(2)),
        TypeError, "a function to be transposed must be linear",
    ),
    row("root transposed", lambda: linear_transpose(lambda x: root(guess=x), ones(2))(ones(2)), NotImplementedError,
        "custom_root is not linear"),
]
