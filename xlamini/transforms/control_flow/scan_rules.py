"""What the rules of `scan` make of its body, remembered on it.

A body takes constants, the carry and a slice of each stacked input, and returns the carry and a slice of each stacked
output. Which carries have a tangent, a batch dimension, or are needed at all depends on the step before: each of these
is found by repeating a rewrite with more carries marked until nothing changes.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Jaxpr
from xlamini.core.primitive import Axis
from xlamini.core.rewriting import rewrite
from xlamini.core.tangents import tangent_aval
from xlamini.core.tracer import build
from xlamini.interpreters.batch import Dims, batch, batched_aval
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.jvp import Mask, jvp
from xlamini.interpreters.linearize import Linearized, linearize
from xlamini.interpreters.partial_eval import Parted, partial_eval
from xlamini.interpreters.transpose import transpose
from xlamini.primitives.tangent_ops import add_tangents
from xlamini.transforms.control_flow.carries import with_outputs_of
from xlamini.transforms.control_flow.while_rules import tangents_of, until_stable
from xlamini.transforms.higher_order import chosen, given, inverse


class Parts(NamedTuple):
    """The operands of a scan, or something that goes along with each: constants, the carry, stacked inputs."""

    consts: list[Any]
    carry: list[Any]
    xs: list[Any]

    def flat(self) -> tuple[Any, ...]:
        return *self.consts, *self.carry, *self.xs


def parts(values: Sequence[Any], num_consts: int, num_carry: int) -> Parts:
    start = num_consts + num_carry
    return Parts(list(values[:num_consts]), list(values[num_consts:start]), list(values[start:]))


def arranged(jaxpr: Jaxpr, groups: Sequence[Parts]) -> Jaxpr:
    """The jaxpr whose inputs are those of each group in turn, taking the constants of all of them first, and so on."""
    return jaxpr.replace(invars=[v for kind in zip(*groups, strict=True) for part in kind for v in part])


class Pushed(NamedTuple):
    """The body with tangents, and which carries and stacked outputs have one."""

    body: Jaxpr
    carry: Mask
    ys: Mask


@rewrite
def with_tangents(body: Jaxpr, consts: Mask, carry: Mask, xs: Mask) -> Pushed:
    """Each of constants, carry and slices, followed by their tangents -> carry, its tangents, slices, their tangents."""
    count, none = len(carry), (False,) * (len(body.outvars) - len(carry))
    nonzero = until_stable(lambda marked: jvp(body, (*consts, *marked, *xs), (*marked, *none))[1][:count], carry)
    pushed, nonzero_out = jvp(body, (*consts, *nonzero, *xs), (*nonzero, *none))
    outs, out_tangents = pushed.outvars[: len(nonzero_out)], pushed.outvars[len(nonzero_out) :]
    split = sum(nonzero)
    in_order = pushed.replace(outvars=[*outs[:count], *out_tangents[:split], *outs[count:], *out_tangents[split:]])
    primals = parts(pushed.invars[: len(body.invars)], len(consts), count)
    tangents = parts(pushed.invars[len(body.invars) :], sum(consts), split)
    types = body.out_avals[:count]
    made = with_outputs_of(arranged(in_order, (primals, tangents)), (*types, *tangents_of(types, nonzero)))
    return Pushed(made, nonzero, nonzero_out[count:])


class Linear(NamedTuple):
    """The linearised body, and which carries and stacked outputs have a tangent."""

    halves: Linearized
    carry: Mask
    ys: Mask


def linearized(body: Jaxpr, consts: Mask, carry: Mask, xs: Mask) -> Linear:
    """The two halves of the body."""
    count, none = len(carry), (False,) * (len(body.outvars) - len(carry))

    def halves(marked: Mask) -> Linearized:
        return linearize(body, (*consts, *marked, *xs), (*marked, *none))

    nonzero = until_stable(lambda marked: halves(marked).nonzero_out[:count], carry)
    found = halves(nonzero)
    return Linear(found, nonzero, found.nonzero_out[count:])


class Known(NamedTuple):
    """The body parted by what is known, and which carries and stacked outputs are not."""

    halves: Parted
    carry: Mask
    ys: Mask


def parted(body: Jaxpr, consts: Mask, carry: Mask, xs: Mask) -> Known:
    """The known and the unknown half of the body; the masks say what is unknown."""
    count, none = len(carry), (False,) * (len(body.outvars) - len(carry))

    def halves(marked: Mask) -> Parted:
        return partial_eval(body, (*consts, *marked, *xs), (*marked, *none))

    unknown = until_stable(lambda marked: halves(marked).unknown_out[:count], carry)
    found = halves(unknown)
    return Known(found, unknown, found.unknown_out[count:])


class Turned(NamedTuple):
    """A body that goes backwards, and which linear constants, carries and stacked inputs have a cotangent.

    It takes the known constants, the cotangents of constants so far and of the carry, slices of the stacked outputs'
    cotangents and of the known stacked inputs, and returns the cotangents of constants, carry, and slices.
    """

    body: Jaxpr
    consts: Mask
    carry: Mask
    xs: Mask


@rewrite
def transposed(body: Jaxpr, consts: Mask, xs: Mask, num_carry: int, carry_cts: Mask, ys_cts: Mask) -> Turned:
    """The body backwards, all of whose carries are linear; `consts` and `xs` mark what else is."""
    linear = (*consts, *(True,) * num_carry, *xs)
    before, after = (False,) * sum(consts), (False,) * sum(xs)

    def backward(marked: Mask) -> tuple[Jaxpr, Parts]:
        made, nonzero = transpose(body, linear, (*marked, *ys_cts), (*before, *marked, *after))
        return made, parts(nonzero, len(before), num_carry)

    carry = until_stable(lambda marked: backward(marked)[1].carry, carry_cts)
    made, nonzero = backward(carry)
    turned = _accumulating(made, body, consts, nonzero, Parts([], [carry], [ys_cts, inverse(xs)]))
    return Turned(turned, tuple(nonzero.consts), carry, tuple(nonzero.xs))


def _accumulating(backward: Jaxpr, body: Jaxpr, consts: Mask, nonzero: Parts, given_: Parts) -> Jaxpr:
    """`backward` with the cotangents of constants as a carry, to which each step adds."""
    (carry,), (ys_cts, known_xs) = given_.carry, given_.xs
    of_body = parts(body.in_avals, len(consts), len(carry))
    sums = [tangent_aval(a) for a in chosen(chosen(of_body.consts, consts), nonzero.consts)]
    cts = tangents_of(body.out_avals[: len(carry)], carry)
    known = [chosen(of_body.consts, inverse(consts)), chosen(of_body.xs, known_xs)]
    ys = tangents_of(body.out_avals[len(carry) :], ys_cts)
    sizes = [len(known[0]), len(sums), len(cts), len(ys), len(known[1])]

    def turn(*operands: Any) -> list[Any]:
        values = iter(operands)
        fixed, before, of_carry, of_ys, slices = ([next(values) for _ in range(n)] for n in sizes)
        outs = evaluate(backward, [*fixed, *slices, *of_carry, *of_ys])
        after = [add_tangents(x, y) for x, y in zip(before, outs[: len(before)], strict=True)]
        return [*after, *outs[len(before) :]]

    made, _ = build(turn, [*known[0], *sums, *cts, *ys, *known[1]], body.name)
    return with_outputs_of(made, (*sums, *cts))


class Batched(NamedTuple):
    """The batched body, which carries have a batch dimension, at 0, and where the stacked outputs' slices have theirs."""

    body: Jaxpr
    carry: Mask
    ys: Dims


def batched(body: Jaxpr, axis: Axis, consts: Dims, carry: Mask, xs: Dims) -> Batched:
    """The body for constants and slices with these batch dimensions; `carry` marks those that have one at the start."""
    count, none = len(carry), (False,) * (len(body.outvars) - len(carry))

    def found(marked: Mask) -> tuple[Jaxpr, Dims]:
        of_carry = tuple(0 if m else None for m in marked)
        return batch(body, axis, (*consts, *of_carry, *xs), (*marked, *none))

    marked = until_stable(lambda marked: [d is not None for d in found(marked)[1][:count]], carry)
    made, dims = found(marked)
    types = [batched_aval(a, axis.size, 0 if m else None) for a, m in zip(body.out_avals, marked, strict=False)]
    return Batched(with_outputs_of(made, tuple(types)), marked, dims[count:])


def needed(body: Jaxpr, num_consts: int, num_carry: int, used: Sequence[bool]) -> tuple[Mask, Mask]:
    """The inputs and outputs of the body that a scan needs of which these results are used."""
    ys = tuple(used[num_carry:])

    def inputs(marked: Mask) -> Mask:
        return dce(body, (*marked, *ys))[1]

    carry = until_stable(lambda marked: inputs(marked)[num_consts : num_consts + num_carry], used[:num_carry])
    found = parts(inputs(carry), num_consts, num_carry)
    return (*found.consts, *carry, *found.xs), (*carry, *ys)
