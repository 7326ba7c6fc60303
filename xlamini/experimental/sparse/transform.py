"""sparsify: a function of dense arrays made into one of sparse arrays, by one rule for each primitive.

The function is traced for dense arrays of the same shapes; then its equations are interpreted, where each value is
dense or sparse. An equation of dense values is the same; otherwise the rule of its primitive is called.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import CallLike, Equation, Jaxpr, Primitive, ShapedArray, Tracer, aval_of, tree_flatten
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.pytree import tree_unflatten
from xlamini.experimental.sparse.array import JAXSparse
from xlamini.interpreters.bindings import bound, builder, read
from xlamini.primitives.base.dtype_kinds import ANY
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.placement.identity import Copy
from xlamini.runtime import Array
from xlamini.staging import check_callable, rebuilt
from xlamini.staging.run.eager.program_cache import as_one_program
from xlamini.staging.trace.tracing import trace, visible

Rule = Callable[..., Any]
rules: dict[Primitive, Rule] = {}
"""The rule of each primitive: `rule(*operands, **params)` for operands of which one is sparse at least."""


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """The function `f` of arrays, also for sparse arrays among its arguments, and in its result.

    Inside of `f` a sparse argument is a traced array of its shape, for functions of `numpy` and `lax`; `todense` makes
    it dense. Control flow (`cond`, `scan`, `while_loop`, `jit`) may pass sparse arrays on. NotImplementedError for an
    operation without a rule, such as one whose result would be dense. `use_tracer` is accepted for compatibility.

    >>> from xlamini.experimental.sparse import eye
    >>> sparsify(lambda m, v: jnp.sin(m) @ v)(eye(2), jnp.array([1.0, 0.0]))
    Array([0.84147096, 0.        ], dtype=float32)
    """
    check_callable("sparsify", f)

    @api_boundary
    @functools.wraps(f)
    def sparsified(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree_flatten((args, kwargs), is_leaf=is_sparse)
        traced = trace(f, in_tree, [_dense_aval(x) for x in leaves])
        buffers, tree = tree_flatten([*traced.captured, *leaves])
        out_tree: Any = None

        def flat(*inputs: Any) -> Sequence[Any]:
            nonlocal out_tree
            outs, out_tree = tree_flatten(interpret(traced.jaxpr, tree_unflatten(tree, inputs)))
            return outs

        outs = as_one_program(flat, buffers, "sparsify")
        return tree_unflatten(traced.out_tree, rebuilt(out_tree, outs))

    return sparsified


def is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def _dense_aval(x: Any) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype) if is_sparse(x) else aval_of(x)


def interpret(jaxpr: Jaxpr, operands: Sequence[Any]) -> list[Any]:
    """The outputs of a program for dense and sparse operands, of which it is traced for the dense ones."""
    env = bound(jaxpr, operands)
    for eqn in jaxpr.eqns:
        env.update(zip(eqn.outvars, _results(eqn, read(env, eqn.invars)), strict=True))
    return visible(read(env, jaxpr.outvars))


def _results(eqn: Equation, operands: Sequence[Any]) -> Sequence[Any]:
    if not any(map(is_sparse, operands)):
        return builder().replay(eqn, operands)
    given = visible(operands)
    if isinstance(eqn.primitive, CallLike):
        return interpret(eqn.params[eqn.primitive.called], given)
    rule = rules.get(eqn.primitive)
    if rule is None:
        raise NotImplementedError(
            f"sparsify: {eqn.primitive.name} has no rule for sparse arrays, as its result may be dense; if that is "
            "meant, make the array dense with sparse.todense(x)"
        )
    outs = rule(*given, **eqn.params)
    return outs if eqn.primitive.multiple_results else [outs]


@elementwise(family=Copy, accepts=ANY, flops=0)
def todense_p(x: Any) -> Any:
    """An identity, which `sparsify` replaces by the dense array of a sparse one."""


todense_p.name = "todense"
todense_p.transposed(lambda ct, x: (ct,))


@api_boundary
def todense(arr: JAXSparse | Array) -> Array:
    """The dense array of a sparse one; a dense one is returned as it is.

    >>> from xlamini.experimental.sparse import eye
    >>> todense(eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if isinstance(arr, JAXSparse):
        return arr.todense()
    return todense_p(arr) if type(arr) is Tracer else arr
