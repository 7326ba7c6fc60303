"""The primitive `scan`: a loop with a static trip count, a carry, and inputs and outputs stacked along dimension 0.

Its operands are consts, the carry and xs; the body takes the consts, the carry and one slice of each x, and returns the
carry and one slice of each y.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Jaxpr,
    Params,
    ShapedArray,
    Values,
    aval_of,
    close_over,
    cotangent_aval,
    is_linear,
)
from xlamini.core.program.checks import Checks
from xlamini.core.program.key_uses import KeyUses
from xlamini.core.program.primitive import RunBody
from xlamini.core.program.tangents import Linear
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.interpreters.key_reuse import uses_of_call, uses_of_loop
from xlamini.primitives import expand_dims, index_in_dim, instantiated, move_batch_dim, zeros
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.staging import HigherOrder, Mask, chosen, given, inverse, merged, nonzero_of, with_none, with_zeros
from xlamini.staging.call.higher_order import plain_types
from xlamini.transforms.scan.lowering import Lowering, ScanSteps
from xlamini.transforms.scan.on_refs import discharged_scan
from xlamini.transforms.scan.residuals import SplitBody, linearize_body, partial_eval_body
from xlamini.transforms.scan.rules import ScanParts, batch_body, jvp_body, live_masks, parts, stack_of, transpose_body
from xlamini.transforms.while_loop.rules import prune


def _key_uses(eqn: Any) -> KeyUses:
    jaxpr, consts, carry = (eqn.params[name] for name in ("jaxpr", "num_consts", "num_carry"))
    return uses_of_loop(eqn, jaxpr, consts, carry) if eqn.params["length"] not in (0, 1) else uses_of_call(jaxpr)


class Scan(HigherOrder):
    """A loop over slices; one iteration of the compiled loop runs the body `unroll` times (0: no loop)."""

    name = "scan"
    checks: Checks = Checks(key_uses=_key_uses)

    def operand_avals(self, params: Params) -> Avals:
        return params["jaxpr"].in_avals

    def shape_rule(
        self, *avals: ShapedArray, jaxpr: Jaxpr, length: int, num_carry: int, num_consts: int, **params: Any
    ) -> list[ShapedArray]:
        of_body = parts(jaxpr.in_avals, num_consts, num_carry)
        if jaxpr.out_avals[:num_carry] != of_body.carry:
            raise TypeError(f"scan: its body takes {of_body.carry} as the carry, returns {jaxpr.out_avals[:num_carry]}")
        expected = [*of_body.consts, *of_body.carry, *(stack_of(a, length) for a in of_body.xs)]
        if plain_types(avals) != plain_types(expected):
            raise TypeError(f"scan: its operands are {list(avals)}, but its body takes {expected}")
        return _out_avals(jaxpr, length, num_carry)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        values, along = _parts(primals, params), _parts(tangents, params)
        pushed = jvp_body(params["jaxpr"], *map(nonzero_of, along))
        initial = _initial_tangents(along, pushed.carry)
        outs = iter(self._scan(pushed.body, values.then(initial), params))
        sizes = len(pushed.carry), sum(pushed.carry), len(pushed.ys), sum(pushed.ys)
        carry, carry_t, ys, ys_t = ([next(outs) for _ in range(n)] for n in sizes)
        return [*carry, *ys], _with_zeros(params, (*pushed.carry, *pushed.ys), [*carry_t, *ys_t])

    def transpose(self, cts: Values, *operands: Any, **params: Any) -> Values:
        values = _parts(operands, params)
        linear = ScanParts(*([*map(is_linear, part)] for part in values))
        if not all(linear.carry):
            return self._transpose_linear_part(cts, values, linear, params)
        count, consts, xs = len(values.carry), tuple(linear.consts), tuple(linear.xs)
        back = transpose_body(params["jaxpr"], consts, xs, count, nonzero_of(cts[:count]), nonzero_of(cts[count:]))
        sums = [zeros(cotangent_aval(x.aval)) for x in chosen(chosen(values.consts, consts), back.consts)]
        carry = [*sums, *map(instantiated, chosen(cts[:count], back.carry))]
        residuals = [chosen(part, inverse(mask)) for part, mask in ((values.consts, consts), (values.xs, xs))]
        operands_back = ScanParts(residuals[0], carry, [*given(cts[count:]), *residuals[1]])
        outs = self._scan(back.body, operands_back, {**params, "reverse": not params["reverse"]})
        cts_in = parts(outs, len(sums), sum(back.carry))
        of_consts, of_xs = with_none(back.consts, cts_in.consts), with_none(back.xs, cts_in.xs)
        return [*with_none(consts, of_consts), *with_none(back.carry, cts_in.carry), *with_none(xs, of_xs)]

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        values, at = _parts(operands, params), _parts(dims, params)
        consts, carry, xs = (tuple(d is not None for d in part) for part in at)
        made = batch_body(params["jaxpr"], axis, consts, carry, xs)
        moved = ScanParts(
            [_moved(axis, x, d, 0) for x, d in zip(values.consts, at.consts, strict=True)],
            [
                move_batch_dim(x, axis.size, d, 0) if marked else x
                for x, d, marked in zip(values.carry, at.carry, made.carry, strict=True)
            ],
            [_moved(axis, x, d, 1) for x, d in zip(values.xs, at.xs, strict=True)],
        )
        outs = self._scan(made.body, moved, params)
        return outs, [*(0 if m else None for m in made.carry), *(None if d is None else d + 1 for d in made.ys)]

    def unroll(self, run: RunBody, operands: Values, params: Params) -> Sequence[Any] | None:
        values, count = _parts(operands, params), params["num_carry"]
        carry, ys = values.carry, []
        if not params["length"]:
            return None
        for i in _order(params):
            xs = [index_in_dim(x, i, keepdims=False) for x in values.xs]
            outs = run(params["jaxpr"], [*values.consts, *carry, *xs], i)
            carry, ys = outs[:count], [*ys, outs[count:]]
        return [*carry, *map(_stacked, zip(*(ys[::-1] if params["reverse"] else ys), strict=True))]

    def discharge(self, refs: Sequence[Any], operands: Values, **params: Any) -> Any:
        def run(body: Jaxpr, parts: ScanParts) -> list[Any]:
            return self._scan(body, parts, params)

        return discharged_scan(run, params["jaxpr"], refs, _parts(operands, params))

    def widened(self, ins: Sequence[int], outs: Sequence[int], params: Params) -> Params:
        counts = _parts(ins, params)
        return {**params, "num_consts": sum(counts.consts), "num_carry": sum(counts.carry)}

    def is_nested(self, params: Params) -> bool:
        return _steps(params).looped != 0

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        return Lowering(ctx, params["jaxpr"], _parts(operands, params), _steps(params)).results()

    def runs(self, params: Params) -> list[tuple[Jaxpr, int]]:
        """The body, as often as the loop has trips."""
        return [(params["jaxpr"], params["length"])]

    def checked(self, errors: frozenset[str], operands: Values, **params: Any) -> Any:
        from xlamini.transforms.scan.check import checked_scan  # for those who check only

        return checked_scan(self._scan, errors, _parts(operands, params), params)

    def linearize(self, primals: Values, tangents: Values, **params: Any) -> Any:
        along = _parts(tangents, params)
        lin = linearize_body(params["jaxpr"], *map(nonzero_of, along))
        results, residuals = self._run_first(lin.split, _parts(primals, params), params)
        out_tangents = self._scan(lin.split.second, residuals.then(_initial_tangents(along, lin.carry)), params)
        nonzero = (*lin.carry, *lin.ys)
        return results[: len(nonzero)], _with_zeros(params, nonzero, out_tangents)

    def partial_eval(self, unknown: Sequence[bool], operands: Values, **params: Any) -> Any:
        values = _parts(operands, params)
        partial = partial_eval_body(params["jaxpr"], *map(tuple, _parts(unknown, params)))
        results, residuals = self._run_first(partial.split, partial.known_operands(values), params)
        later = self._scan(partial.split.second, residuals.then(partial.unknown_operands(values)), params)
        return merged(partial.unknown_out, later, results)

    def dce(self, used: Sequence[bool], params: Params) -> Any:
        body = params["jaxpr"]
        ins, outs = live_masks(body, params["num_consts"], params["num_carry"], used)
        smaller = prune(body, outs, ins)
        if smaller is body:
            return None
        of_ins = _parts(ins, params)
        numbers = {"num_carry": sum(of_ins.carry), "num_consts": sum(of_ins.consts)}
        return list(ins), list(outs), {**params, "jaxpr": smaller, **numbers}

    def with_captured(self, operands: Values, params: Params) -> Any:
        body = params["jaxpr"]
        number = params["num_consts"] + len(body.consts)
        return [*body.consts, *operands], {**params, "jaxpr": close_over(body), "num_consts": number}

    def _scan(self, body: Jaxpr, operands: ScanParts, params: Params) -> list[Any]:
        """Bind a scan of this body; the other params are copied."""
        return self.bind(*operands.flat(), **_with(params, body, operands))

    def _run_first(self, split: SplitBody, operands: ScanParts, params: Params) -> tuple[list[Any], ScanParts]:
        """The results of a scan of the first body, and the residuals as operands for a scan of the second."""
        consts, const_residuals = split.hoisted(operands.consts)
        results = self._scan(split.first, operands._replace(consts=consts), params)
        stacked = split.stacked_residuals(operands.xs, results[len(operands.carry) :])
        return results, ScanParts(const_residuals, [], stacked)

    def _transpose_linear_part(
        self, cts: Values, values: ScanParts, linear: ScanParts, params: Params
    ) -> list[Any]:
        """The transpose of a scan that is linear in some carries only; a first scan computes the other carries."""
        partial = partial_eval_body(params["jaxpr"], *map(tuple, linear))
        _, residuals = self._run_first(partial.split, partial.known_operands(values), params)
        own = partial.unknown_operands(values)
        second = residuals.then(own._replace(carry=[Linear(aval_of(x)) for x in own.carry]))
        of_second = _with(params, partial.split.second, second)
        cts_in = self.transpose(chosen(cts, partial.unknown_out), *second.flat(), **of_second)
        of_own = parts(cts_in, of_second["num_consts"], of_second["num_carry"])
        unknown = ScanParts(of_own.consts[len(residuals.consts) :], of_own.carry, of_own.xs[len(residuals.xs) :])
        every = ScanParts(*map(with_none, partial.unknown, unknown)).flat()
        return [ct if is_lin else None for ct, is_lin in zip(every, linear.flat(), strict=True)]


scan_p: Final = Scan()


def _steps(params: Params) -> ScanSteps:
    is_symbolic = type(params["length"]) is SymbolicSize  # which has no blocks that are known
    return ScanSteps(params["length"], params["reverse"], 1 if is_symbolic else params["unroll"])


def _parts(values: Values, params: Params) -> ScanParts:
    return parts(values, params["num_consts"], params["num_carry"])


def _order(params: Params) -> range:
    """The iterations in the order in which they run."""
    return range(params["length"])[:: -1 if params["reverse"] else 1]


def _stacked(rows: Sequence[Any]) -> Any:
    return concatenate([expand_dims(row, (0,)) for row in rows], 0)


def _with(params: Params, body: Jaxpr, operands: ScanParts) -> dict[str, Any]:
    return {**params, "jaxpr": body, "num_carry": len(operands.carry), "num_consts": len(operands.consts)}


def _initial_tangents(tangents: ScanParts, nonzero: Mask) -> ScanParts:
    """The tangent operands of a scan; the tangents of the carries in `nonzero` are instantiated."""
    carry = list(map(instantiated, chosen(tangents.carry, nonzero)))
    return ScanParts(given(tangents.consts), carry, given(tangents.xs))


def _out_avals(jaxpr: Jaxpr, length: int, num_carry: int) -> list[ShapedArray]:
    outs = jaxpr.out_avals
    return [*outs[:num_carry], *(stack_of(a, length) for a in outs[num_carry:])]


def _with_zeros(params: Params, nonzero: Sequence[bool], tangents: Values) -> list[Any]:
    """A tangent for every output of the scan: arrays where `nonzero`, symbolic zeros otherwise."""
    return with_zeros(_out_avals(params["jaxpr"], params["length"], params["num_carry"]), nonzero, tangents)


def _moved(axis: Axis, x: Any, dim: int | None, destination: int) -> Any:
    return x if dim is None else move_batch_dim(x, axis.size, dim, destination)
