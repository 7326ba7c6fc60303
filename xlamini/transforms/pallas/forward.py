"""Forward mode of a kernel: a kernel that computes the results and their tangents, with refs to blocks of tangents."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Jaxpr, Values, Zero, is_differentiable, is_zero, subjaxprs, tangent_aval
from xlamini.core.program.kernels import Kernel
from xlamini.core.program.ref_types import RefPrimitive
from xlamini.interpreters.jvp import Mask, jvp
from xlamini.primitives import instantiated
from xlamini.staging.call.higher_order import chosen, merged


def pushed_forward(bind: Callable[..., Any], kernel: Kernel, primals: Values, tangents: Values) -> Any:
    """The results of a kernel and their tangents, by one kernel.

    A result that starts with the value of an operand has a tangent that starts with the operand's.
    """
    aliased = {operand for operand, _ in kernel.aliases}
    along = [instantiated(t) if i in aliased and _has(t) else t for i, t in enumerate(tangents)]
    nonzero = tuple(not is_zero(t) for t in along)
    made = _forward(kernel, nonzero)
    outs = bind(*primals, *chosen(along, nonzero), kernel=made)
    floats = tuple(map(is_differentiable, kernel.out_avals))
    found = merged(floats, outs[kernel.num_outputs :], [Zero(tangent_aval(a)) for a in kernel.out_avals])
    return outs[: kernel.num_outputs], found


def has_forward(jaxpr: Jaxpr) -> bool:
    """Whether the equations on refs are linear, so that forward mode is a kernel; an atomic maximum is not."""
    for eqn in jaxpr.eqns:
        if isinstance(eqn.primitive, RefPrimitive) and not eqn.primitive.is_linear(eqn.params):
            return False
        if not all(map(has_forward, subjaxprs(eqn))):
            return False
    return True


def _has(tangent: Any) -> bool:
    return is_differentiable(tangent.aval) if is_zero(tangent) else True


def _forward(kernel: Kernel, nonzero: Mask) -> Kernel:
    """The kernel of operands, then their nonzero tangents; all refs of floats that it writes have tangents."""
    count = kernel.num_prefetch + kernel.num_inputs
    own = tuple(is_differentiable(ref.aval) for ref in kernel.refs()[count:])
    mask = (*nonzero, *own)
    jaxpr, _ = jvp(kernel.jaxpr, ((False,) * len(kernel.grid)) + mask)
    ids, refs = jaxpr.invars[: len(kernel.grid)], jaxpr.invars[len(kernel.grid) :]
    primal, tangent = _parts(kernel, refs[: len(mask)]), _parts(kernel, refs[len(mask) :], mask)
    ordered = [ref for pair in zip(primal, tangent, strict=True) for part in pair for ref in part]
    ins, outs = kernel.blocks[: kernel.num_inputs], kernel.blocks[kernel.num_inputs :]
    of_ins, of_outs = mask[kernel.num_prefetch : count], own[: kernel.num_outputs]
    return dataclasses.replace(
        kernel,
        jaxpr=jaxpr.replace(invars=[*ids, *ordered]),
        blocks=(*ins, *chosen(ins, of_ins), *outs, *chosen(outs, of_outs)),
        num_outputs=kernel.num_outputs + sum(of_outs),
        aliases=_aliases(kernel, nonzero, of_outs),
        ref_names=_names(kernel, mask),
    )


def _names(kernel: Kernel, mask: Sequence[bool]) -> tuple[str, ...]:
    """The names of the refs, in their order."""
    names = [kernel.name_of(i) for i in range(len(mask))]
    tangents = [f"tangent of {name}" for name in chosen(names, mask)]
    pairs = zip(_parts(kernel, names), _parts(kernel, tangents, mask), strict=True)
    return tuple(name for pair in pairs for part in pair for name in part)


def _parts(kernel: Kernel, refs: Sequence[Any], mask: Sequence[bool] | None = None) -> list[list[Any]]:
    """The refs of operands, of results, and of scratch memory; `mask` says which of the kernel's they go with."""
    sizes = [kernel.num_prefetch + kernel.num_inputs, kernel.num_outputs, kernel.num_scratch]
    found, start, first = list[list[Any]](), 0, 0
    for size in sizes:
        count = size if mask is None else sum(mask[first : first + size])
        found.append(list(refs[start : start + count]))
        start, first = start + count, first + size
    return found


def _aliases(kernel: Kernel, nonzero: Mask, of_outs: Sequence[bool]) -> tuple[tuple[int, int], ...]:
    """The pairs of the kernel, and those of their tangents."""
    operands, outs = len(nonzero), kernel.num_outputs
    more = [
        (operands + sum(nonzero[:operand]), outs + sum(of_outs[:out]))
        for operand, out in kernel.aliases
        if nonzero[operand] and of_outs[out]
    ]
    return (*kernel.aliases, *more)
