"""Rules of custom_jvp, custom_vmap and custom_gradient that do not fit, and wrong uses of closure_convert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xlamini
from tests.support.error_rows import ones, row
from xlamini import closure_convert, custom_gradient, custom_jvp, lax, numpy as jnp
from xlamini.custom_batching import custom_vmap
from xlamini.errors import ShapeError, TracerBoolConversionError, UnexpectedTracerError
from xlamini.test_util import check_grads

grad, jit, jvp, vmap = xlamini.grad, xlamini.jit, xlamini.jvp, xlamini.vmap


def tree_function(x: Any, y: Any) -> Any:
    return {"out": x * y}


def by_rule(rule: Callable[..., Any], fun: Callable[..., Any] = tree_function, **options: Any) -> Any:
    """The gradient of a function of two numbers with this rule."""
    ruled = custom_jvp(fun)
    ruled.defjvp(rule, **options)
    return grad(lambda x, y: sum(xlamini.tree.leaves(ruled(x, y))))(2.0, 3.0)


def mapped(rule: Callable[..., Any], fun: Callable[..., Any] = lambda x: {"out": x}) -> Any:
    ruled = custom_vmap(fun)
    ruled.def_vmap(rule)
    return vmap(ruled)(ones(3))


def product(primals: Any) -> Any:
    return {"out": primals[0] * primals[1]}


def closing_over(x: Any) -> Any:
    ruled = custom_jvp(lambda y: {"a": [x]}["a"][0] * y)
    ruled.defjvp(lambda p, t: (ruled(*p), x * t[0]))
    return ruled(3.0)


def closing_over_a_tree(params: Any) -> Any:
    ruled = custom_jvp(lambda y: params["w"] * y)
    ruled.defjvp(lambda p, t: (ruled(*p), t[0]))
    return ruled(3.0)


def closing_over_mapped(x: Any) -> Any:
    ruled = custom_vmap(lambda y: y)
    ruled.def_vmap(lambda size, batched, y: (x * y, True))
    return ruled(x * 2)


KEPT: list[Any] = []


def keeping_in_a_global(x: Any) -> Any:
    KEPT[:] = [x]
    ruled = custom_jvp(lambda y: y)
    ruled.defjvp(lambda p, t: (p[0], KEPT[0] * t[0]))
    return ruled(x)


def leaking() -> Any:
    kept: list[Any] = []
    ruled = custom_jvp(jnp.sin)
    ruled.defjvp(lambda p, t: (kept.append(t[0]) or jnp.sin(p[0]), t[0]))
    grad(ruled)(1.0)
    return kept[0] + 1


def defined(*rules: Any, fun: Callable[..., Any] = lambda x, y: x * y, **options: Any) -> Any:
    ruled = custom_jvp(fun, **options)
    ruled.defjvps(*rules)
    return ruled


def keyword_only(x: Any, *, n: int) -> Any:
    return x * n


ROWS = [
    row(
        "no rule", lambda: custom_jvp(tree_function)(1.0, 2.0), AttributeError, "tree_function has no rule yet",
        ".defjvp"
    ),
    row("no function", lambda: custom_jvp(3), TypeError, "custom_jvp takes a function, got 3"),  # type: ignore[arg-type]
    row(
        "rule is no function", lambda: custom_jvp(tree_function).defjvp(3), TypeError,  # type: ignore[arg-type]
        "defjvp takes a function, got 3",
    ),
    row(
        "no pair", lambda: by_rule(lambda p, t: product(p)), TypeError, "must return a pair",
        "errors/custom_jvp.py:", "dict"
    ),
    row("three", lambda: by_rule(lambda p, t: (1, 2, 3)), TypeError, "must return a pair", "a tuple of length 3"),
    row(
        "tree", lambda: by_rule(lambda p, t: (p[0], t[0])), TypeError,
        "its primal output must have the structure of the output of tree_function", "a dict",
    ),
    row(
        "keys", lambda: by_rule(lambda p, t: (product(p), {"oops": t[0]})), TypeError, "its tangent output", "'oops'"
    ),
    row(
        "None", lambda: by_rule(lambda p, t: (product(p), {"out": None})), TypeError, "['out'] is a leaf", "is None"
    ),
    row(
        "shape", lambda: by_rule(lambda p, t: ({"out": ones(3)}, {"out": ones(3)})), ShapeError,
        "float32[3] as primal output['out']", "but what tree_function itself returns there is float32[]",
        "jnp.broadcast_to",
    ),
    row(
        "tangent's shape", lambda: by_rule(lambda p, t: (product(p), {"out": t[0] * ones(3)})), ShapeError,
        "float32[3] as tangent output['out']", "is float32[]",
    ),
    row(
        "tangent's dtype", lambda: by_rule(lambda p, t: (product(p), {"out": t[0].astype("float16")})), TypeError,
        "float16[] as tangent output['out']", "is float32[]", ".astype('float32')",
    ),
    row(
        "integer tangent", lambda: by_rule(lambda p, t: (product(p), {"out": 1})), TypeError, "int32[] as tangent",
    ),
    row(
        "tangent of an integer",
        lambda: by_rule(lambda p, t: ((p[0], 3), (t[0], t[0])), lambda x, y: (x, 3)), TypeError,
        "as tangent output[1]", "is float0[]", "np.zeros((), float0)",
    ),
    row(
        "text", lambda: by_rule(lambda p, t: (product(p), {"out": "a"})), TypeError, "returned 'a' of type str",
        "['out']"
    ),
    row(
        "output of tangents", lambda: by_rule(lambda p, t: (product(t), product(t))), ValueError,
        "depends on a tangent", "from the primals alone",
    ),
    row(
        "closed over", lambda: grad(closing_over)(2.0), UnexpectedTracerError, "closes over 'x'",
        "make the value an argument"
    ),
    row("closed over in jit", lambda: jit(grad(jit(closing_over)))(2.0), UnexpectedTracerError, "closes over 'x'"),
    row("closed over in jvp", lambda: jvp(closing_over, (2.0,), (1.0,)), UnexpectedTracerError, "stop_gradient"),
    row(
        "closed over in scan", lambda: grad(lambda x: lax.scan(lambda c, _: (closing_over(c), None), x,
        None, 2)[0])(2.0),
        UnexpectedTracerError, "closes over 'x'",
    ),
    row(
        "closed over a tree", lambda: grad(closing_over_a_tree)({"w": 2.0}), UnexpectedTracerError,
        "closes over \"params['w']\""
    ),
    row(
        "from a global", lambda: grad(lambda x: vmap(keeping_in_a_global)(x).sum())(ones(3)), UnexpectedTracerError,
        "custom_jvp: the rule <lambda>", "after that trace ended", "make the value an argument of <lambda>",
    ),
    row("leaked", leaking, UnexpectedTracerError, "'tangent of x'", "used after that trace ended"),
    row(
        "if in a rule", lambda: jit(lambda x: by_rule(lambda p, t: (product(p),
        {"out": t[0] if p[0] > x else t[1]})))(1.0),
        TracerBoolConversionError, "not known while", "jnp.where",
    ),
    row(
        "nondiff_argnums", lambda: custom_jvp(tree_function, nondiff_argnums=(5,)), ValueError, "nondiff_argnums has 5",
        "tree_function takes 2 positional",
    ),
    row(
        "nondiff_argnames", lambda: custom_jvp(tree_function, nondiff_argnames=("z",)), ValueError,
        "nondiff_argnames has 'z'", "it takes x, y",
    ),
    row(
        "function as argument", lambda: by_rule(lambda p, t: (p[0], t[0]), lambda x, y: custom(jnp.sin, x)), TypeError,
        "argument 'g' of apply is <function sin", "list it in nondiff_argnums",
    ),
    row(
        "keyword-only", lambda: ruled(keyword_only)(1.0, n=2), TypeError, "keyword-only argument 'n'", "positional one"
    ),
    row("no such keyword", lambda: ruled(tree_function)(1.0, z=2), TypeError, "tree_function", "'y'"),
    row("defjvps too few", lambda: defined(None), ValueError, "defjvps got 1 rules", "takes 2 arguments", "None where"),
    row(
        "defjvps at call", lambda: grad(defined(None, fun=lambda *xs: xs[0]))(1.0, 2.0), ValueError,
        "defjvps got 1 rules, but <lambda> takes 2 arguments",
    ),
    row(
        "defjvps and nondiff", lambda: defined(None, None, nondiff_argnums=(0,)), TypeError, "nondiff_argnums", "defjvp"
    ),
    row("defjvps number", lambda: defined(1, None), TypeError, "defjvps takes a function, got 1"),
    row(
        "defjvps shape", lambda: grad(defined(lambda t, out, x, y: t * ones(3), None))(1.0, 2.0), ShapeError,
        "float32[3] as tangent output", "is float32[]",
    ),
]


def apply(g: Any, x: Any) -> Any:
    return g(x)


def ruled(fun: Callable[..., Any]) -> Any:
    found = custom_jvp(fun)
    found.defjvp(lambda p, t: (p[0], t[0]))
    return found


custom = ruled(apply)

ROWS += [
    row("vmap: no rule", lambda: custom_vmap(jnp.sin)(1.0), AttributeError, "sin has no rule yet", ".def_vmap"),
    row(
        "vmap: no pair", lambda: mapped(lambda n, b, x: {"out": x}), ValueError, "a pair (output, out_batched)", "dict"
    ),
    row("vmap: tree", lambda: mapped(lambda n, b, x: (x, True)), ValueError, "its output must have the structure"),
    row(
        "vmap: out_batched", lambda: mapped(lambda n, b, x: ({"out": x}, True)), ValueError, "for each leaf",
        "out_batched is a leaf",
    ),
    row(
        "vmap: no bool", lambda: mapped(lambda n, b, x: ({"out": x}, {"out": 0})), ValueError, "must return bools", "0"
    ),
    row(
        "vmap: not batched", lambda: mapped(lambda n, b, x: ({"out": x}, {"out": False})), ShapeError,
        "float32[3] as output['out']", "is float32[]",
    ),
    row(
        "vmap: size", lambda: mapped(lambda n, b, x: ({"out": ones(4)}, {"out": True})), ShapeError,
        "float32[4] as output['out']", "over 3 examples", "is float32[3]",
    ),
    row(
        "vmap: dtype", lambda: mapped(lambda n, b, x: ({"out": x.astype(int)}, {"out": True})), ValueError,
        "int32[3] as output",
        ".astype('float32')",
    ),
    row(
        "vmap: closed over", lambda: vmap(closing_over_mapped)(ones(3)), ValueError, "closes over 'x', which is mapped"
    ),
    row(
        "gradient: no pair", lambda: grad(custom_gradient(jnp.sin))(1.0), TypeError,
        "sin must return a pair (value, function"
    ),
    row("gradient: no function", lambda: custom_gradient(lambda x: (x, 3))(1.0), TypeError, "a tuple of", "int"),
    row(
        "gradient: two", lambda: grad(custom_gradient(lambda x: (x, lambda ct: (ct, ct))))(1.0), TypeError,
        "one cotangent for each argument",
    ),
    row(
        "convert: tree", lambda: closure_convert(jnp.sin, 1.0)[0]((1.0,)), TypeError,
        "the converted sin takes 1 arguments",
        "a tuple of length 1",
    ),
    row(
        "convert: type", lambda: closure_convert(jnp.sin, 1.0)[0](ones(3)), TypeError,
        "argument 'x' of the converted sin",
        "float32[3], but in example_args float32[]",
    ),
    row(
        "check_grads: modes", lambda: check_grads(np.sin, (1.0,), 1, modes=("up",)), ValueError,
        "'fwd' and 'rev', got 'up'"
    ),
]
