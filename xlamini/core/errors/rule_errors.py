"""The errors about rules: one is missing or refuses, or a rule or a rewrite made a program that is not well formed."""

from __future__ import annotations

__all__ = ["JaxprError", "JaxprTypeError", "MissingRule", "PaddingError"]


class MissingRule(NotImplementedError):
    """A primitive lacks the rule that a transformation needs.

    >>> from xlamini import extend
    >>> twice_p = extend.Primitive("twice")
    >>> @extend.shape_rule(twice_p)
    ... def _(x):
    ...     return x
    >>> xlamini.grad(twice_p.bind)(1.0)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.rule_errors.MissingRule: primitive 'twice' has no jvp rule; give it one: ...

    Write the function that the message names; for a class of primitives, the method:

    >>> @extend.jvp_rule(twice_p)
    ... def _(primals, tangents):
    ...     return twice_p.bind(*primals), twice_p.bind(*tangents)
    """


class JaxprError(TypeError):
    """A jaxpr is not well formed: a variable out of scope, or a type its rule does not give.

    A rewrite or a shape rule is wrong, not the user's program. The checker runs after each rewrite under
    `config.update("enable_checks", True)`; its message shows the equation, and the rewrites that led to it.

    >>> from xlamini.core.program.jaxpr_check import check_jaxpr
    >>> jaxpr = xlamini.make_jaxpr(lambda x: 2 * x)(1.0).jaxpr
    >>> check_jaxpr(jaxpr.replace(eqns=[]))
    Traceback (most recent call last):
        ...
    xlamini.core.errors.rule_errors.JaxprError: the jaxpr is not well formed: variable ... is used before it is assigned
    ...
    """


JaxprTypeError = JaxprError
"""`JaxprError` under JAX's name for it.

>>> JaxprTypeError is JaxprError
True
"""


class PaddingError(ValueError):
    """A function that is compiled for buckets of sizes has an operation whose result the padding would change.

    >>> values = xlamini.jit(jnp.linalg.eigvalsh, buckets={"n": "pow2"}, shapes_specs="n, n")
    >>> values(jnp.eye(5))
    Traceback (most recent call last):
        ...
    xlamini.core.errors.rule_errors.PaddingError: eigh of f32[n,n] at ...

    Compute that part outside of the function, or without `buckets`.
    """

    has_place = False
    """Whether the message says which equation it is."""
