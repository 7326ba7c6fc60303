"""Rules about operations for which there is one that does less."""
from __future__ import annotations

from collections.abc import Iterator

from xlamini.analysis.lints.finding import Finding, finding
from xlamini.analysis.lints.program import LintedBody, LintedProgram, apart, is_written
from xlamini.analysis.lints.registry import lint_rule
from xlamini.core import Atom, Equation, Var
from xlamini.core.program.equation_kind import equation_cost

_SHARE = 4
"""A sort is too much for a part of at most one in so many."""
_LONG = 32


@lint_rule
def transposes_cancel(program: LintedProgram) -> Iterator[Finding]:
    """A transpose of a transpose is what it began with."""
    for body, eqn in program.equations("transpose"):
        inner = body.maker(eqn.invars[0])
        if inner is None or inner.primitive is not eqn.primitive or not is_written(eqn) or not apart(inner, eqn):
            continue
        first, second = inner.params["permutation"], eqn.params["permutation"]
        if [first[i] for i in second] == sorted(first):
            yield finding(eqn, "it undoes the transpose before it", "Leave out both.")


@lint_rule
def inverse_for_a_solve(program: LintedProgram) -> Iterator[Finding]:
    """A matrix is inverted only to be multiplied once."""
    for body, eqn in program.equations("dot_general"):
        for side, atom in zip(("left", "right"), eqn.invars, strict=True):
            inverse = body.root_maker(atom, "custom_jvp_call", "custom_linear_solve")
            if inverse is None or not apart(inverse, eqn) or len(body.readers[inverse.outvars[0]]) > 1:
                continue
            if side == "left" and _is_inverse(body, inverse):
                message = "the inverse is computed only to be multiplied, which costs more and loses digits"
                yield finding(eqn, message, "Use jnp.linalg.solve(a, b) for inv(a) @ b.")


def _is_inverse(body: LintedBody, eqn: Equation) -> bool:
    """Whether it is jnp.linalg.inv, or solves for the identity."""
    if eqn.primitive.name == "custom_linear_solve":
        return _is_identity(body, eqn.invars[-1])
    inside = eqn.params["call_jaxpr"].eqns
    return eqn.params["name"] == "_inverse" and any(each.primitive.name == "lu" for each in inside)


def _is_identity(body: LintedBody, atom: Atom) -> bool:
    eq = body.root_maker(atom, "eq")
    return eq is not None and all(body.root_maker(a, "iota") is not None for a in eq.invars)


@lint_rule
def one_hot_matmul(program: LintedProgram) -> Iterator[Finding]:
    """A matrix is multiplied by one-hot rows, which picks rows of it and reads all."""
    for body, eqn in program.equations("dot_general"):
        for side, atom in enumerate(eqn.invars):
            contracted = eqn.params["dimension_numbers"][0][side]
            dim = _one_hot_dimension(body, atom)
            if dim is not None and tuple(contracted) == (dim,) and is_written(eqn):
                count = atom.aval.shape[dim]
                message = f"a product with one-hot rows reads all {count} rows of the matrix for each one that it picks"
                yield finding(eqn, message, "Index instead: matrix[indices].", count)


def _one_hot_dimension(body: LintedBody, atom: Atom) -> int | None:
    """The dimension along which the array is one-hot, if it is a comparison of indices with `iota`."""
    made = body.maker(atom)
    eq = body.maker(made.invars[0]) if made is not None and made.primitive.name == "convert_element_type" else None
    if eq is None or eq.primitive.name != "eq":
        return None
    iotas = [body.maker(a) for a in eq.invars]
    dims = [e.params["dimension"] for e in iotas if e is not None and e.primitive.name == "iota"]
    return dims[0] if len(dims) == 1 else None


@lint_rule
def sort_for_top_k(program: LintedProgram) -> Iterator[Finding]:
    """All is sorted, and a few of the first or last are used."""
    for body, eqn in program.equations("sort"):
        dim = eqn.params["dimension"]
        size = eqn.outvars[0].aval.shape[dim]
        parts = [r for v in eqn.outvars for r in body.readers[v]]
        returned = any(v in body.jaxpr.outvars for v in eqn.outvars)
        if size < _LONG or not parts or returned or not all(_is_end(eqn, r, dim, size) for r in parts):
            continue
        used = max(r.outvars[0].aval.shape[dim] for r in parts)
        message = f"{size} elements are sorted, and {used} used"
        fix = f"Use lax.top_k(x, {used}), or lax.top_k(-x, {used}) for the smallest."
        yield finding(eqn, message, fix, size / used)


def _is_end(sort: Equation, reader: Equation, dim: int, size: int) -> bool:
    if reader.primitive.name != "slice" or not apart(sort, reader) or reader.params["strides"] is not None:
        return False
    start, stop = reader.params["start_indices"][dim], reader.params["limit_indices"][dim]
    return (start == 0 or stop == size) and (stop - start) * _SHARE <= size


@lint_rule
def unused_computation(program: LintedProgram) -> Iterator[Finding]:
    """What is computed at cost is never used."""
    for body in program.bodies:
        alive = {_call(eqn) for eqn in body.jaxpr.eqns if body.is_live(eqn)}
        for eqn in body.jaxpr.eqns:
            if not body.is_live(eqn) and _call(eqn) not in alive and _is_last(body, eqn) and is_written(eqn):
                flops = _flops(eqn)
                if flops >= 100_000:
                    message = f"the result of {eqn.primitive.name} ({flops:.2g} flops) is never used"
                    yield finding(eqn, message, "Use it or remove the line.")


def _call(eqn: Equation) -> object:
    source = eqn.provenance.source
    return None if source is None else (source.code, source.instruction)


def _is_last(body: LintedBody, eqn: Equation) -> bool:
    return not any(body.readers[v] for v in eqn.outvars)


def _flops(eqn: Equation) -> int:
    if eqn.primitive.higher_order:
        return 0
    return equation_cost(eqn).flops


@lint_rule
def discarded_update(program: LintedProgram) -> Iterator[Finding]:
    """Arrays do not change: `x.at[i].set(v)` returns a new one, which nothing uses."""
    for body, eqn in program.equations():
        name = eqn.primitive.name
        is_update = name == "dynamic_update_slice" or name.startswith("scatter")
        if is_update and _is_discarded(body, eqn) and is_written(eqn):
            message = "the updated array is discarded; x.at[...] does not change x"
            yield finding(eqn, message, "Assign the result: x = x.at[...].set(...).")


def _is_discarded(body: LintedBody, eqn: Equation) -> bool:
    return not any(body.readers[v] or v in body.jaxpr.outvars for v in eqn.outvars if type(v) is Var)
