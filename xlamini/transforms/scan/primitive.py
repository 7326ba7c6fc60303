"""The primitive `scan`: a loop with a known number of steps, a carry, and inputs and outputs stacked along dimension 0.

Its operands are constants, the carry, and stacked inputs; the body takes the constants, the carry and a slice of each
stacked input, and returns the carry and a slice of each stacked output.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.primitive import Axis, Cost
from xlamini.core.tangents import Linear, is_linear, tangent_aval
from xlamini.core.tracer import aval_of
from xlamini.primitives.batch_ops import move_batch_dim
from xlamini.primitives.tangent_ops import instantiated, zeros
from xlamini.staging.call.higher_order import (
    HigherOrder,
    Mask,
    chosen,
    cost_of,
    given,
    inverse,
    merged,
    nonzero_of,
    plain_types,
    with_none,
    with_zeros,
)
from xlamini.transforms.scan.lowering import Lowering, Steps
from xlamini.transforms.scan.residuals import Halves, linearized, parted
from xlamini.transforms.scan.rules import Parts, batched, needed, parts, transposed, with_tangents
from xlamini.transforms.while_loop.rules import slim


class Scan(HigherOrder):
    """A loop over slices; `unroll` steps make one turn of the compiled loop (0: all of them)."""

    name = "scan"

    def operand_avals(self, params: dict[str, Any]) -> Sequence[ShapedArray]:
        return params["jaxpr"].in_avals

    def shape_rule(
        self, *avals: ShapedArray, jaxpr: Jaxpr, length: int, num_carry: int, num_consts: int, **params: Any
    ) -> list[ShapedArray]:
        of_body = parts(jaxpr.in_avals, num_consts, num_carry)
        if jaxpr.out_avals[:num_carry] != of_body.carry:
            raise TypeError(f"scan: its body takes {of_body.carry} as the carry, returns {jaxpr.out_avals[:num_carry]}")
        wanted = [*of_body.consts, *of_body.carry, *(_stack_of(a, length) for a in of_body.xs)]
        if plain_types(avals) != plain_types(wanted):
            raise TypeError(f"scan: its operands are {list(avals)}, but its body takes {wanted}")
        return _out_avals(jaxpr, length, num_carry)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        values, along = _parts(primals, params), _parts(tangents, params)
        pushed = with_tangents(params["jaxpr"], *map(nonzero_of, along))
        started = _started(along, pushed.carry)
        outs = iter(self._scan(pushed.body, values.then(started), params))
        sizes = len(pushed.carry), sum(pushed.carry), len(pushed.ys), sum(pushed.ys)
        carry, carry_t, ys, ys_t = ([next(outs) for _ in range(n)] for n in sizes)
        return [*carry, *ys], _with_zeros(params, (*pushed.carry, *pushed.ys), [*carry_t, *ys_t])

    def transpose(self, cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        values = _parts(operands, params)
        linear = Parts(*([*map(is_linear, part)] for part in values))
        if not all(linear.carry):
            return self._transpose_unknown_half(cts, values, linear, params)
        count, fixed, slices = len(values.carry), tuple(linear.consts), tuple(linear.xs)
        turned = transposed(params["jaxpr"], fixed, slices, count, nonzero_of(cts[:count]), nonzero_of(cts[count:]))
        sums = [zeros(tangent_aval(x.aval)) for x in chosen(chosen(values.consts, fixed), turned.consts)]
        carry = [*sums, *map(instantiated, chosen(cts[:count], turned.carry))]
        known = [chosen(part, inverse(mask)) for part, mask in ((values.consts, fixed), (values.xs, slices))]
        backwards = Parts(known[0], carry, [*given(cts[count:]), *known[1]])
        outs = self._scan(turned.body, backwards, {**params, "reverse": not params["reverse"]})
        found = parts(outs, len(sums), sum(turned.carry))
        of_consts, of_xs = with_none(turned.consts, found.consts), with_none(turned.xs, found.xs)
        return [*with_none(fixed, of_consts), *with_none(turned.carry, found.carry), *with_none(slices, of_xs)]

    def batch(self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        values, at = _parts(operands, params), _parts(dims, params)
        consts, carry, xs = (tuple(d is not None for d in part) for part in at)
        made = batched(params["jaxpr"], axis, consts, carry, xs)
        moved = Parts(
            [_moved(axis, x, d, 0) for x, d in zip(values.consts, at.consts, strict=True)],
            [
                move_batch_dim(x, axis.size, d, 0) if marked else x
                for x, d, marked in zip(values.carry, at.carry, made.carry, strict=True)
            ],
            [_moved(axis, x, d, 1) for x, d in zip(values.xs, at.xs, strict=True)],
        )
        outs = self._scan(made.body, moved, params)
        return outs, [*(0 if m else None for m in made.carry), *(None if d is None else d + 1 for d in made.ys)]

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        steps = Steps(params["length"], params["reverse"], params["unroll"])
        return Lowering(ctx, params["jaxpr"], _parts(operands, params), steps).results()

    def cost(self, *avals: ShapedArray, jaxpr: Jaxpr, length: int, **params: Any) -> Cost:
        """The body's, times the number of steps."""
        step = cost_of(jaxpr)
        return Cost(length * step.flops, length * step.bytes)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        along = _parts(tangents, params)
        lin = linearized(params["jaxpr"], *map(nonzero_of, along))
        results, residuals = self._first(lin.halves, _parts(primals, params), params)
        found = self._scan(lin.halves.second, residuals.then(_started(along, lin.carry)), params)
        nonzero = (*lin.carry, *lin.ys)
        return results[: len(nonzero)], _with_zeros(params, nonzero, found)

    def partial_eval(self, unknown: Sequence[bool], operands: Sequence[Any], **params: Any) -> Any:
        values = _parts(operands, params)
        apart = parted(params["jaxpr"], *map(tuple, _parts(unknown, params)))
        results, residuals = self._first(apart.halves, apart.of_first(values), params)
        later = self._scan(apart.halves.second, residuals.then(apart.of_second(values)), params)
        return merged(apart.unknown_out, later, results)

    def dce(self, used: Sequence[bool], params: dict[str, Any]) -> Any:
        body = params["jaxpr"]
        ins, outs = needed(body, params["num_consts"], params["num_carry"], used)
        smaller = slim(body, outs, ins)
        if smaller is body:
            return None
        of_ins = _parts(ins, params)
        numbers = {"num_carry": sum(of_ins.carry), "num_consts": sum(of_ins.consts)}
        return list(ins), list(outs), {**params, "jaxpr": smaller, **numbers}

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        body = params["jaxpr"]
        number = params["num_consts"] + len(body.consts)
        return [*body.consts, *operands], {**params, "jaxpr": close_over(body), "num_consts": number}

    def _scan(self, body: Jaxpr, operands: Parts, params: dict[str, Any]) -> list[Any]:
        """A scan of this body, with the params besides."""
        return self.bind(*operands.flat(), **_with(params, body, operands))

    def _first(self, halves: Halves, operands: Parts, params: dict[str, Any]) -> tuple[list[Any], Parts]:
        """The results of a scan of the first half, and the residuals as operands for the second."""
        taken, fixed = halves.ahead(operands.consts)
        results = self._scan(halves.first, operands._replace(consts=taken), params)
        return results, Parts(fixed, [], halves.in_slices(operands.xs, results[len(operands.carry) :]))

    def _transpose_unknown_half(
        self, cts: Sequence[Any], values: Parts, linear: Parts, params: dict[str, Any]
    ) -> list[Any]:
        """Of a scan that is linear in some carries only: a first scan finds the others."""
        apart = parted(params["jaxpr"], *map(tuple, linear))
        _, residuals = self._first(apart.halves, apart.of_first(values), params)
        own = apart.of_second(values)
        second = residuals.then(own._replace(carry=[Linear(aval_of(x)) for x in own.carry]))
        of_second = _with(params, apart.halves.second, second)
        found = self.transpose(chosen(cts, apart.unknown_out), *second.flat(), **of_second)
        of_own = parts(found, of_second["num_consts"], of_second["num_carry"])
        kept = Parts(of_own.consts[len(residuals.consts) :], of_own.carry, of_own.xs[len(residuals.xs) :])
        every = Parts(*map(with_none, apart.unknown, kept)).flat()
        return [ct if is_lin else None for ct, is_lin in zip(every, linear.flat(), strict=True)]


scan_p = Scan()


def _parts(values: Sequence[Any], params: dict[str, Any]) -> Parts:
    return parts(values, params["num_consts"], params["num_carry"])


def _with(params: dict[str, Any], body: Jaxpr, operands: Parts) -> dict[str, Any]:
    return {**params, "jaxpr": body, "num_carry": len(operands.carry), "num_consts": len(operands.consts)}


def _started(tangents: Parts, nonzero: Mask) -> Parts:
    """The tangents that a scan starts from; those of the carries in `nonzero` are arrays."""
    carry = list(map(instantiated, chosen(tangents.carry, nonzero)))
    return Parts(given(tangents.consts), carry, given(tangents.xs))


def _stack_of(aval: ShapedArray, length: int) -> ShapedArray:
    return aval.inserted(0, length)


def _out_avals(jaxpr: Jaxpr, length: int, num_carry: int) -> list[ShapedArray]:
    outs = jaxpr.out_avals
    return [*outs[:num_carry], *(_stack_of(a, length) for a in outs[num_carry:])]


def _with_zeros(params: dict[str, Any], nonzero: Sequence[bool], tangents: Sequence[Any]) -> list[Any]:
    """A tangent for every output of the scan."""
    return with_zeros(_out_avals(params["jaxpr"], params["length"], params["num_carry"]), nonzero, tangents)


def _moved(axis: Axis, x: Any, dim: int | None, destination: int) -> Any:
    return x if dim is None else move_batch_dim(x, axis.size, dim, destination)
