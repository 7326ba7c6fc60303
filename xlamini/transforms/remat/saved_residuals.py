"""saved_residuals: a report of the residuals of a function, with their sizes, origins and uses."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from xlamini.core import Atom, CallLike, Equation, Jaxpr, ShapedArray, Var, flatten_from_user, is_differentiable
from xlamini.core.console import printable
from xlamini.core.program.jaxpr import Provenance
from xlamini.interpreters.linearize import linearize
from xlamini.staging import ArgNames, Trace, avals_of, check_callable, name_of
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.tracing import trace
from xlamini.transforms.remat.checkpoint import checkpoint_p
from xlamini.transforms.remat.checkpoint_name import name_p


class SavedResidual(NamedTuple):
    """A residual: a value stored in the forward pass for the backward pass.

    >>> residual = xlamini.ad_checkpoint.saved_residuals(jnp.sin, jnp.ones(3))[0]
    >>> residual.aval, residual.nbytes, residual.computed
    (ShapedArray(float32[3]), 12, True)
    """

    aval: ShapedArray
    origin: str
    """`from the argument x`, `from a constant`, `output of sin from FILE:LINE (function)`, `named 'y' from …`."""
    reason: str
    """The equation whose derivative uses it, `mul at FILE:LINE`, or the checkpoint that recomputes from it."""
    computed: bool
    """Whether it takes extra memory, because it is neither an argument nor a constant."""

    @property
    def nbytes(self) -> int:
        return self.aval.nbytes

    def __str__(self) -> str:
        return f"{self.aval.str_short()} {self.origin}, {_bytes(self.nbytes)}, for {self.reason}"


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[SavedResidual]:
    """The residuals of the derivative of `f` by all arguments, which are arrays or `ShapeDtypeStruct`s.

    Nothing is computed. A value is listed once, with the first equation that uses it.

    >>> [r.nbytes for r in saved_residuals(lambda x: xlamini.numpy.sin(x) ** 2, xlamini.numpy.ones(3))]
    [12, 12]
    """
    check_callable("saved_residuals", f)
    leaves, tree = flatten_from_user((args, kwargs))
    names = ArgNames(f, tree)
    avals = avals_of(leaves, names, name_of(f))
    values = [None if isinstance(x, ShapeDtypeStruct) else x for x in leaves]
    traced = trace(f, tree, avals, values, names)
    nonzero = (False,) * len(traced.captured) + tuple(map(is_differentiable, avals))
    lin = linearize(traced.jaxpr, nonzero)
    residuals = zip(lin.sources, lin.tangent.invars, strict=False)
    return [_describe(traced, lin.primal, source, lin.tangent, var) for source, var in residuals]


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the residuals of the derivative of `f` by all arguments: one line per value, and the total.

    >>> print_saved_residuals(lambda x: xlamini.checkpoint(xlamini.numpy.sin)(x), xlamini.numpy.ones(3))
    f32[3] from the argument x, 12 bytes, for computing sin again at ...:1
    1 value, 12 bytes; 0 bytes besides arguments and constants
    """
    check_callable("print_saved_residuals", f)
    residuals = saved_residuals(f, *args, **kwargs)
    total, computed = sum(r.nbytes for r in residuals), sum(r.nbytes for r in residuals if r.computed)
    values = "1 value" if len(residuals) == 1 else f"{len(residuals)} values"
    lines = [*map(str, residuals), f"{values}, {_bytes(total)}; {_bytes(computed)} besides arguments and constants"]
    sys.stdout.write(printable("\n".join(lines) + "\n"))


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count:,} bytes"


def _describe(traced: Trace, primal: Jaxpr, source: int, tangent: Jaxpr, var: Var) -> SavedResidual:
    captured, inputs = len(traced.captured), len(primal.invars)
    reason = _reason(tangent, var)
    if source < captured:
        return SavedResidual(var.aval, "from a constant", reason, False)
    if source < inputs:
        return SavedResidual(var.aval, f"from the argument {traced.names[source - captured]}", reason, False)
    return SavedResidual(var.aval, _origin(primal, primal.outvars[source - inputs]), reason, True)


def _origin(jaxpr: Jaxpr, atom: Atom) -> str:
    """The operation that computes a value, and its source line; for calls and loops, the operation in the body."""
    made = next((eqn for eqn in jaxpr.eqns if any(v is atom for v in eqn.outvars)), None)
    if made is None:
        return "from an input"
    inner = _made_inside(made, atom)
    if inner is not None:
        return inner
    what = f"named {made.params['name']!r}" if made.primitive is name_p else f"output of {made.primitive.name}"
    return f"{what} from {_where(made)}"


def _made_inside(eqn: Equation, atom: Atom) -> str | None:
    """The origin of a result inside the equation's jaxpr, if it returns the equation's results; else None."""
    inner = eqn.params.get("jaxpr")
    if not isinstance(inner, Jaxpr) or len(inner.outvars) != len(eqn.outvars):
        return None
    result = next(i for i, v in zip(inner.outvars, eqn.outvars, strict=True) if v is atom)
    if type(result) is not Var or any(result is v for v in inner.invars):
        return None
    origin = _origin(inner, result)
    return origin if result.aval == atom.aval else f"{origin}, from every iteration of {eqn.primitive.name}"


def _reason(tangent: Jaxpr, var: Var) -> str:
    """The first equation of the linear program that uses the value, described by its user-level origin."""
    eqn = next(_users(tangent, var), None)
    if eqn is None:
        return "a result of the derivative"
    if eqn.primitive is not checkpoint_p:
        return f"{_first(eqn).primitive.name} at {_line(eqn.provenance)}"
    policy = eqn.params["policy"]
    by = "" if policy is None else f", policy {getattr(policy, '__name__', policy)}"
    return f"computing {eqn.params['jaxpr'].name} again at {_line(eqn.provenance)}{by}"


def _users(jaxpr: Jaxpr, var: Var) -> Iterator[Equation]:
    for eqn in jaxpr.eqns:
        if any(a is var for a in eqn.invars):
            inner = eqn.params[eqn.primitive.called] if isinstance(eqn.primitive, CallLike) else None
            if inner is None or eqn.primitive is checkpoint_p:
                yield eqn
                continue
            for operand, inside in zip(eqn.invars, inner.invars, strict=True):
                if operand is var:
                    yield from _users(inner, inside)


def _first(eqn: Equation) -> Equation:
    """The user-level equation from which a rewritten one derives."""
    while eqn.provenance.origin is not None:
        eqn = eqn.provenance.origin
    return eqn


def _where(eqn: Equation) -> str:
    return str(eqn.provenance.source) if eqn.provenance.source is not None else "unknown place"


def _line(provenance: Provenance) -> str:
    source = provenance.source
    return "an unknown place" if source is None else f"{os.path.basename(source.file)}:{source.line}"
