"""Bad rules of custom_vjp and custom_gradient, and bad uses of the linear maps."""

from __future__ import annotations

from typing import Any

import numpy as np

import xlamini
from tests.support.error_rows import ones, row, square
from xlamini import lax, numpy as jnp
from xlamini.errors import ShapeError, UnexpectedTracerError

grad = xlamini.grad


def f(x: Any) -> Any:
    return x * 2


def f_fwd(x: Any) -> Any:
    return x * 2, None


def f_bwd(residuals: Any, ct: Any) -> Any:
    return (ct * 2,)


def ruled(fwd: Any = f_fwd, bwd: Any = f_bwd, fun: Any = f, **options: Any) -> Any:
    made = xlamini.custom_vjp(fun)
    made.defvjp(fwd, bwd, **options)
    return made


def pair(x: Any, y: Any) -> Any:
    return x["w"] * y


def paired(bwd: Any) -> Any:
    """A function of a dict and an integer, with this bwd."""
    return lambda x: ruled(lambda x, y: (x["w"] * y, None), bwd, pair)(x, 3)


def leaking() -> Any:
    kept: list[Any] = []

    def bwd(residuals: Any, ct: Any) -> Any:
        kept.append(ct)
        return (ct,)

    xlamini.jit(grad(ruled(bwd=bwd)))(1.0)
    return kept[0] + 1


def opaque(x: Any) -> Any:
    """An object in which nobody finds the value."""
    hidden = {"x": x}
    return type("Opaque", (), {"__slots__": (), "value": property(lambda self: hidden["x"])})()


def leaking_from_vmap(x: Any) -> Any:
    kept: list[Any] = []
    xlamini.vmap(lambda y: kept.append(y) or y)(x)
    return kept[0] * 2


def mapped_hidden(x: Any) -> Any:
    def one(x: Any) -> Any:
        held = opaque(lax.stop_gradient(x))
        return ruled(lambda y: (y * held.value, None))(x)

    return xlamini.vmap(one)(x).sum()


ROWS = [
    row("no rules", lambda: xlamini.custom_vjp(f)(1.0), AttributeError, "custom_vjp: f has no rule yet", "f.defvjp"),
    row("no function", lambda: xlamini.custom_vjp(3), TypeError, "custom_vjp takes a function, got 3"),  # type: ignore[arg-type]
    row(
        "no rule", lambda: xlamini.custom_vjp(f).defvjp(f_fwd, None), TypeError,  # type: ignore[arg-type]
        "defvjp takes a function, got None",
    ),
    row(
        "nondiff", lambda: xlamini.custom_vjp(f, nondiff_argnums=(3,)), ValueError,
        "custom_vjp: nondiff_argnums has 3, but f takes 1",
    ),
    row("keyword only", lambda: ruled(fun=lambda *, k: k)(k=1.0), TypeError, "keyword-only argument 'k'"),
    row(
        "argument", lambda: xlamini.jit(lambda x: ruled()("a"))(1.0), TypeError, "'x' of f is 'a' of type str",
        "nondiff_arg",
    ),
    row(
        "no pair", lambda: grad(ruled(f))(1.0), TypeError, "custom_vjp (fwd): the rule f (", "custom_vjp.py:",
        "must return a pair (output, residuals)",
    ),
    row("triple", lambda: grad(ruled(lambda x: (x, x, x)))(1.0), TypeError, "it returned a tuple of length 3"),
    row(
        "fwd tree", lambda: grad(ruled(lambda x: ((x, x), None)))(1.0), TypeError, "structure of the output of f",
        "is a leaf, but the rule's primal output is a tuple of length 2",
    ),
    row(
        "fwd shape", lambda: grad(ruled(lambda x: (ones(3), None)))(1.0), ShapeError,
        "returned float32[3] as primal output", "f itself returns there is float32[]",
    ),
    row(
        "fwd dtype", lambda: grad(ruled(lambda x: (x.astype("bfloat16"), None)))(1.0), TypeError,
        "returned bfloat16[] as primal output", "is float32[]; convert it with .astype('float32')",
    ),
    row("residuals", lambda: grad(ruled(lambda x: (x, "a")))(1.0), TypeError, "as residuals, returned 'a' of type str"),
    row("fwd arguments", lambda: grad(ruled(lambda: None))(1.0), TypeError, "takes 0 positional arguments but 1 was"),
    row(
        "bwd no tuple", lambda: grad(ruled(bwd=lambda _, ct: ct))(1.0), TypeError, "custom_vjp (bwd)",
        "a tuple with one cotangent for each argument (1 here)", "write (ct,)",
    ),
    row("bwd None", lambda: grad(ruled(bwd=lambda _, ct: None))(1.0), TypeError, "one cotangent for each argument"),
    row("bwd count", lambda: grad(ruled(bwd=lambda _, ct: (ct, ct)))(1.0), TypeError, "result is a tuple of length 2"),
    row(
        "bwd tree", lambda: grad(paired(lambda _, ct: ({"v": ct}, None)))({"w": 1.0}), TypeError,
        "the result[0] has the keys 'v', where args[0] has 'w'",
    ),
    row(
        "bwd leaf for a tree", lambda: grad(paired(lambda _, ct: (ct, None)))({"v": 2.0, "w": 1.0}), TypeError,
        "args[0] is a dict with 2 children, but the result[0] is a leaf",
    ),
    row(
        "bwd shape", lambda: grad(paired(lambda _, ct: ({"w": ones(3)}, None)))({"w": 1.0}), ShapeError,
        "the argument \"x['w']\" is float32[], but its cotangent has shape (3,)",
    ),
    row(
        "bwd dtype", lambda: grad(ruled(bwd=lambda _, ct: (jnp.ones((), int),)))(1.0), TypeError,
        "'x' is float32[], but its cotangent is int32[]; convert it with .astype('float32')",
    ),
    row(
        "bwd complex", lambda: grad(ruled(bwd=lambda _, ct: (ct * 1j,)))(1.0), TypeError,
        "'x' is float32[], but its cotangent is complex64[]",
    ),
    row(
        "bwd float0 shape", lambda: grad(paired(lambda _, ct: (None, np.zeros(2, xlamini.float0))))({"w": 1.0}),
        ShapeError, "'y' is int32[], but its cotangent has shape (2,)",
    ),
    row("bwd text", lambda: grad(ruled(bwd=lambda _, ct: ("a",)))(1.0), TypeError, "the argument 'x', returned 'a'"),
    row(
        "symbolic zeros", lambda: grad(ruled(lambda x: (x, None), symbolic_zeros=True))(1.0), TypeError,
        "as primal output, returned CustomVJPPrimal(value=",
    ),
    row(
        "forward mode", lambda: xlamini.jvp(ruled(), (1.0,), (1.0,)), TypeError, "forward-mode autodiff (jvp)",
        "backward rule is f_bwd, called at", ".defjvp(rule)", "custom_jvp",
    ),
    row("jacfwd", lambda: xlamini.jacfwd(ruled())(1.0), TypeError, "can't apply forward-mode autodiff (jvp)"),
    row(
        "forward mode of the linear map", lambda: grad(lambda x: xlamini.jvp(ruled(), (x,), (x,))[1])(1.0), TypeError,
        "can't apply forward-mode autodiff (jvp)",
    ),
    row(
        "closure", lambda: grad(lambda s: ruled(fun=lambda x: x * s)(2.0))(1.0), UnexpectedTracerError,
        "closes over 's', which is being differentiated", "closure_convert", "stop_gradient",
    ),
    row(
        "closure of fwd", lambda: grad(lambda s: ruled(lambda x: (x * s, None))(s))(1.0), UnexpectedTracerError,
        "the fwd rule of f closes over a value of type float32[]", "closure_convert",
    ),
    row(
        "hidden in vmap", lambda: grad(mapped_hidden)(ones(3)), UnexpectedTracerError, "made while tracing one, at ",
        "make the value an argument of f, and return it from fwd among the residuals",
    ),
    row(
        "escape from vmap in jit", lambda: xlamini.jit(leaking_from_vmap)(ones(3)), UnexpectedTracerError,
        "as its argument 'y'", "after that trace ended",
    ),
    row("escape", leaking, UnexpectedTracerError, "was made while tracing bwd", "after that trace ended"),
    row(
        "custom_gradient no pair", lambda: xlamini.custom_gradient(square)(1.0), TypeError,
        "custom_gradient: square must return a pair (value, function from its cotangent", "it returned a float alone",
    ),
    row(
        "custom_gradient no rule", lambda: grad(xlamini.custom_gradient(lambda x: (x, x)))(1.0), TypeError,
        "but it returned a tuple of Tracer, Tracer",
    ),
    row(
        "custom_gradient count", lambda: grad(xlamini.custom_gradient(lambda x: (x, lambda ct: (ct, ct))))(1.0),
        TypeError, "custom_gradient: the rule <lambda>", "tuple of length 2",
    ),
    row(
        "fwd_and_bwd residuals", lambda: xlamini.fwd_and_bwd(square, 0)[1](1.0, 1.0), TypeError,
        "the backward pass of square must be the residuals",
    ),
    row(
        "fwd_and_bwd argnums", lambda: xlamini.fwd_and_bwd(square, 3)[0](1.0), TypeError,
        "fwd_and_bwd: argnums 3 names no positional argument",
    ),
    row("argnums twice", lambda: grad(square, argnums=(0, 0))(1.0), TypeError, "(0, 0) names an argument twice"),
    row(
        "cotangent complex", lambda: xlamini.vjp(square, 1.0)[1](1j), ShapeError, "the cotangent is complex64[]",
        "float32[]",
    ),
    row(
        "cotangent float0", lambda: xlamini.vjp(square, 1.0)[1](np.zeros((), xlamini.float0)), ShapeError,
        "the cotangent is float0[], but the output of square there is float32[]",
    ),
    row(
        "cotangent of an integer", lambda: xlamini.vjp(square, 3)[1](np.zeros(2, xlamini.float0)), ShapeError,
        "the cotangent is float0[2], but the output of square there is int32[]", "float0 or an integer",
    ),
    row(
        "jacrev of integers", lambda: xlamini.jacrev(lambda x: x.astype(int))(ones(3)), TypeError,
        "jacrev needs real floating-point outputs, but output of <lambda> is int32[3]",
    ),
    row(
        "jacrev of complex", lambda: xlamini.jacrev(lambda x: {"a": x * 1j})(ones(3)), TypeError,
        "output['a'] of <lambda> is complex64[3]", "holomorphic=True",
    ),
    row(
        "jacrev holomorphic", lambda: xlamini.jacrev(jnp.real, holomorphic=True)(ones(3) * 1j), TypeError,
        "jacrev with holomorphic=True needs complex outputs", "float32[3]",
    ),
    row("jacfwd of integers", lambda: xlamini.jacfwd(square)(3), TypeError, "jacfwd needs real floating-point"),
    row("jacrev int", lambda: xlamini.jacrev(square)(3), TypeError, "jacrev needs floating-point", "allow_int=True"),
    row("jacfwd aux", lambda: xlamini.jacfwd(square, has_aux=True)(1.0), TypeError, "jacfwd: with has_aux=True square"),
    row(
        "product is not linear", lambda: xlamini.linear_transpose(lambda x: x * x, 1.0)(1.0), TypeError,
        "linear_transpose: <lambda> is not linear in its arguments", "mul", "use vjp",
    ),
    row(
        "sine is not linear", lambda: xlamini.linear_transpose(lambda x: jnp.sin(x), 1.0)(1.0), NotImplementedError,
        "<lambda> is not linear in its arguments: sin, at ", "custom_vjp.py:", "use vjp",
    ),
    row(
        "linear_transpose text", lambda: xlamini.linear_transpose(f, 1.0)("a"), TypeError,
        "argument 'cotangent' of the transpose of f is 'a'",
    ),
    row(
        "linear_transpose type", lambda: xlamini.linear_transpose(lambda x: [x], 1.0)([ones(3)]), TypeError,
        "cotangent[0] is float32[3], but that output is float32[]",
    ),
]
