"""The primitive `shard_map`: a jaxpr that every device of a mesh runs on its shards of the operands.

The inputs and outputs of the jaxpr have the types of shards; `in_specs` and `out_specs` are the shardings of the whole
values. A rewrite binds a shard_map of the rewritten jaxpr: a tangent has the spec of its primal, and a residual is
sharded along the axes on which its type varies.

A nested shard_map has the mesh of the outer one, and its `manual` axes are not manual there. A value that varies along
an outer manual axis varies along it both inside and outside of the nested shard_map.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from operator import methodcaller
from typing import Any, Final, NamedTuple

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Jaxpr,
    Params,
    PartitionSpec,
    ShapedArray,
    ShardingError,
    Values,
    close_over,
    is_linear,
    rewrite,
)
from xlamini.core.program.hi_types import HiAval
from xlamini.core.sharding.abstract_mesh import parts_along
from xlamini.core.sharding.facet import Sharding
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.jvp import jvp
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.interpreters.residuals import gather_residuals
from xlamini.interpreters.transpose import transpose
from xlamini.primitives import expand_dims, squeeze
from xlamini.primitives.collectives.varying import unvary_p, varying_along
from xlamini.runtime import NamedSharding
from xlamini.runtime.meshes.mesh import AnyMesh
from xlamini.staging import HigherOrder, chosen, given, inverse, merged, nonzero_of, with_none, with_zeros
from xlamini.staging.call.higher_order import axes_inside
from xlamini.transforms.shard_map.hi_specs import repeat_specs
from xlamini.transforms.shard_map.manual_axes import manual_axes
from xlamini.transforms.shard_map.specs import (
    Spec,
    allowed_axes,
    axis_within,
    divided_along,
    global_aval,
    moved,
    stacked_spec,
)

Specs = tuple[Spec, ...]
of_tangent: Final = methodcaller("to_tangent_spec")
of_cotangent: Final = methodcaller("to_ct_spec")
_INDEX = ShapedArray((), np.dtype(np.int32))
"""The type of a leading argument, the platform index of a multi-platform module."""


def _named_axes(params: Params) -> tuple[Any, ...]:
    return tuple(name for name in axes_inside(params) if name not in params["manual"])


def _is_manual(params: Params) -> bool:
    return set(params["mesh"].axis_names) <= params["manual"]


class ShardMap(HigherOrder):
    """A per-device (SPMD) program; `manual` are the manual axes of the mesh."""

    name = "shard_map"
    sharding: Sharding = Sharding(named_axes=_named_axes, is_manual=_is_manual)

    def shape_rule(
        self,
        *avals: ShapedArray,
        jaxpr: Jaxpr,
        mesh: AnyMesh,
        manual: frozenset[Any],
        check_vma: bool,
        out_specs: Specs,
        **params: Any,
    ) -> list[ShapedArray]:
        pairs = zip(jaxpr.out_avals, out_specs, strict=True)
        return [global_aval(a, mesh, manual, check_vma, spec) for a, spec in pairs]

    def jvp(self, primals: Values, tangents: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        nonzero, ins, outs = nonzero_of(tangents), params["in_specs"], params["out_specs"]
        with manual_axes(params):
            both, nonzero_out = jvp(jaxpr, nonzero)
        every_in = (*ins, *map(of_tangent, chosen(ins, nonzero)))
        every_out = (*outs, *map(of_tangent, chosen(outs, nonzero_out)))
        found = self.run(both, every_in, every_out, params, [*primals, *given(tangents)])
        return found[: len(outs)], self._with_zeros(jaxpr, params, nonzero_out, found[len(outs) :])

    def linearize(self, primals: Values, tangents: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        nonzero, ins, outs = nonzero_of(tangents), params["in_specs"], params["out_specs"]
        with manual_axes(params):
            lin = linearize(jaxpr, nonzero)
        first = Half(lin.primal, primals, ins, outs)
        tangent_ins, tangent_outs = (
            list(map(of_tangent, some)) for some in (chosen(ins, nonzero), chosen(outs, lin.nonzero_out))
        )
        second = Half(lin.tangent, given(tangents), tangent_ins, tangent_outs)
        results, found = self._run_both(params, first, second, lin.sources)
        return results, self._with_zeros(jaxpr, params, lin.nonzero_out, found)

    def partial_eval(self, unknown: Sequence[bool], operands: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        known, ins, outs = inverse(unknown), params["in_specs"], params["out_specs"]
        with manual_axes(params):
            halves = partial_eval(jaxpr, tuple(unknown))
        known_outs, later_outs = chosen(outs, inverse(halves.unknown_out)), chosen(outs, halves.unknown_out)
        first = Half(halves.known, chosen(operands, known), chosen(ins, known), known_outs)
        second = Half(halves.unknown, chosen(operands, unknown), chosen(ins, unknown), later_outs)
        results, later = self._run_both(params, first, second, halves.sources)
        return merged(halves.unknown_out, later, results)

    def transpose(self, cts: Values, *operands: Any, jaxpr: Jaxpr, **params: Any) -> Values:
        linear, nonzero, ins = tuple(map(is_linear, operands)), nonzero_of(cts), params["in_specs"]
        with manual_axes(params):
            backward, nonzero_out = transpose(jaxpr, linear, nonzero)
        given_specs = (*chosen(ins, inverse(linear)), *map(of_cotangent, chosen(params["out_specs"], nonzero)))
        out_specs = tuple(map(of_cotangent, chosen(chosen(ins, linear), nonzero_out)))
        every = [*chosen(operands, inverse(linear)), *given(cts)]
        found = self.run(backward, given_specs, out_specs, params, every)
        return with_none(linear, with_none(nonzero_out, found))

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, jaxpr: Jaxpr, **params: Any
    ) -> Any:
        along = divided_along(axis, params, axis.name in _named_axes({**params, "jaxpr": jaxpr}))
        with manual_axes(params):
            batched, out_dims = batch(jaxpr, axis_within(axis, along, params), tuple(dims))
        ins, outs = (
            tuple(moved(spec, d, along) for spec, d in zip(params[name], ds, strict=True))
            for name, ds in (("in_specs", dims), ("out_specs", out_dims))
        )
        return self.run(batched, ins, outs, params, operands), out_dims

    def lower(
        self, ctx: Any, *operands: Any, jaxpr: Jaxpr, mesh: AnyMesh, manual: frozenset[Any], **params: Any
    ) -> Any:
        ctx.forbid_repetition()
        module = ctx.module
        if mesh.size not in (1, module.device_count):
            raise ShardingError(
                f"shard_map: its mesh has {mesh.size} devices, {mesh}, but the program runs on {module.device_count}; "
                f"move the arguments to a mesh of {mesh.size} devices"
            )
        constrained = _constrained(ctx, operands, mesh, params["in_specs"])
        before = module.manual, module.manual_axes
        module.manual, module.manual_axes = mesh, module.manual_axes | manual
        try:
            if mesh.size == 1 or not manual:
                return ctx.body(jaxpr, constrained, "shard_map")
            return _on_each(ctx, jaxpr, constrained, mesh, manual, params["in_specs"], params["out_specs"])
        finally:
            module.manual, module.manual_axes = before

    def around(self, params: Params) -> AbstractContextManager[None]:
        return manual_axes(params)

    def dce(self, used: Sequence[bool], params: Params) -> Any:
        with manual_axes(params):
            jaxpr, used_inputs = dce(params["jaxpr"], tuple(used))
        specs = {
            "in_specs": tuple(chosen(params["in_specs"], used_inputs)),
            "out_specs": tuple(chosen(params["out_specs"], used)),
        }
        return list(used_inputs), list(used), {**params, **specs, "jaxpr": jaxpr}

    def widened(self, ins: Sequence[int], outs: Sequence[int], params: Params) -> Params:
        """Each array of a value of a user's type has the spec that his says; if the value is whole, so are they."""
        in_specs, out_specs = repeat_specs(params["in_specs"], ins), repeat_specs(params["out_specs"], outs)
        jaxpr = params["jaxpr"]
        allowed = allowed_axes(jaxpr.out_avals, out_specs, params["manual"])
        with manual_axes(params):
            jaxpr = varying_as(jaxpr, allowed, params["check_vma"])
        return {**params, "jaxpr": jaxpr, "in_specs": in_specs, "out_specs": out_specs}

    def operand_avals(self, params: Params) -> list[ShapedArray]:
        """The avals of the jaxpr's inputs without `manual` axes; operands vary along the axes of an outer shard_map."""
        return [a.varying(a.vma - params["manual"]) for a in params["jaxpr"].in_avals]

    def checked(self, errors: frozenset[str], operands: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        from xlamini.transforms.shard_map.check import checked_shards  # for those who check only

        return checked_shards(self.run, errors, jaxpr, operands, params)

    def runs(self, params: Params) -> list[tuple[Jaxpr, int]]:
        """The program of one device, for each device along the manual axes; other axes only divide it."""
        return [(params["jaxpr"], parts_along(params["mesh"], params["manual"]))]

    def shown_params(self, params: Params) -> Params:
        return dict(sorted({**params, "manual": tuple(sorted(params["manual"], key=str))}.items()))

    def with_captured(self, operands: Values, params: Params) -> Any:
        """Captured values become operands that are replicated on every device."""
        jaxpr = params["jaxpr"]
        specs = (*(PartitionSpec(),) * len(jaxpr.consts), *params["in_specs"])
        return [*jaxpr.consts, *operands], {**params, "jaxpr": close_over(jaxpr), "in_specs": specs}

    def run(
        self,
        jaxpr: Jaxpr,
        in_specs: Sequence[Spec],
        out_specs: Sequence[Spec],
        params: Params,
        operands: Values,
    ) -> list[Any]:
        """Bind a shard_map of another jaxpr over this mesh."""
        return self.bind(*operands, **self.params_of(jaxpr, in_specs, out_specs, params))

    def params_of(
        self, jaxpr: Jaxpr, in_specs: Sequence[Spec], out_specs: Sequence[Spec], params: Params
    ) -> dict[str, Any]:
        """The params of a shard_map of another jaxpr, whose outputs vary along the axes of their specs."""
        allowed = allowed_axes(jaxpr.out_avals, out_specs, params["manual"])
        with manual_axes(params):
            fitting = varying_as(jaxpr, allowed, params["check_vma"])
        return {**params, "in_specs": tuple(in_specs), "out_specs": tuple(out_specs), "jaxpr": fitting}

    def _run_both(
        self, params: Params, first: Half, second: Half, sources: Sequence[int]
    ) -> tuple[list[Any], list[Any]]:
        """The results of two shard_maps; the second takes the residuals at `sources`, then its own operands."""
        manual, count = params["manual"], len(first.out_specs)
        with manual_axes(params):
            giving, specs = with_residuals(first.jaxpr, count, params)
            taking = taking_residuals(second.jaxpr, sources, len(first.in_specs) + count, manual)
        every_out = (*first.out_specs, *specs)
        results = self.run(giving, first.in_specs, every_out, params, first.operands)
        residuals = gather_residuals(sources, first.operands, results)
        every_in = (*gather_residuals(sources, first.in_specs, every_out), *second.in_specs)
        found = self.run(taking, every_in, second.out_specs, params, [*residuals, *second.operands])
        return results[:count], found

    def _with_zeros(
        self, jaxpr: Jaxpr, params: Params, nonzero: Sequence[bool], tangents: Values
    ) -> list[Any]:
        return with_zeros(self.shape_rule(jaxpr=jaxpr, **params), nonzero, tangents)


class Half(NamedTuple):
    """One of the two programs of linearize or partial evaluation: jaxpr, own operands, and input and output specs."""

    jaxpr: Jaxpr
    operands: Values
    in_specs: Sequence[Spec]
    out_specs: Sequence[Spec]


@rewrite
def varying_as(jaxpr: Jaxpr, wanted: tuple[frozenset[Any], ...], checked: bool) -> Jaxpr:
    """The jaxpr with outputs that vary along these axes; without checks, further axes are removed by `unvary`."""
    if tuple(a.vma for a in jaxpr.out_avals) == wanted:
        return jaxpr
    return _rebuilt(jaxpr, lambda outs: [_fitted(x, axes, checked) for x, axes in zip(outs, wanted, strict=True)])


def _fitted(x: Any, axes: frozenset[Any], checked: bool) -> Any:
    more = x.aval.vma - axes
    if more and not checked:
        x = unvary_p.bind(x, axes=tuple(sorted(more, key=str)))
    return varying_along(x, axes)


def with_residuals(jaxpr: Jaxpr, count: int, params: Params) -> tuple[Jaxpr, Specs]:
    """The first program and the specs of its residuals; a varying scalar gets a dimension, to be sharded along."""
    mesh, manual, check_vma = params["mesh"], params["manual"], params["check_vma"]
    scalars = [i for i, a in enumerate(jaxpr.out_avals) if i >= count and _is_varying_scalar(a, manual)]
    if scalars:
        jaxpr = raised(jaxpr, tuple(scalars))
    return jaxpr, tuple(stacked_spec(a, mesh, manual, check_vma) for a in jaxpr.out_avals[count:])


def _is_varying_scalar(aval: ShapedArray, manual: frozenset[Any]) -> bool:
    return bool(aval.vma & manual) and not aval.ndim and type(aval) is not HiAval


@rewrite
def raised(jaxpr: Jaxpr, which: tuple[int, ...]) -> Jaxpr:
    """The jaxpr with a leading dimension of size 1 in these outputs."""
    return _rebuilt(jaxpr, lambda outs: [expand_dims(x, (0,)) if i in which else x for i, x in enumerate(outs)])


def taking_residuals(jaxpr: Jaxpr, sources: Sequence[int], first_new: int, manual: frozenset[Any]) -> Jaxpr:
    """The second program, with a squeeze of the residuals that `with_residuals` expanded."""
    residuals = zip(jaxpr.in_avals, sources, strict=False)
    which = tuple(i for i, (a, at) in enumerate(residuals) if at >= first_new and _is_varying_scalar(a, manual))
    return _lowered(jaxpr, which) if which else jaxpr


@rewrite
def _lowered(jaxpr: Jaxpr, which: tuple[int, ...]) -> Jaxpr:
    avals = [a.update(shape=(1,)) if i in which else a for i, a in enumerate(jaxpr.in_avals)]

    def taken(*operands: Any) -> list[Any]:
        return evaluate(jaxpr, [squeeze(x, (0,)) if i in which else x for i, x in enumerate(operands)])

    return build(taken, avals, jaxpr.name)[0]


def _rebuilt(jaxpr: Jaxpr, change: Callable[[list[Any]], list[Any]]) -> Jaxpr:
    """The jaxpr with `change` applied to its outputs."""
    return build(lambda *operands: change(evaluate(jaxpr, operands)), jaxpr.in_avals, jaxpr.name)[0]


def _constrained(ctx: Any, operands: Values, mesh: AnyMesh, specs: Specs) -> list[Any]:
    """The operands, with constraints for those that are unreduced: without one, Shardy takes them for whole values."""
    each = zip(operands, specs, ctx.avals_in, strict=True)
    return [ctx.with_sharding(x, NamedSharding(mesh, s), a.ndim) if s.unreduced else x for x, s, a in each]


def _on_each(
    ctx: Any, jaxpr: Jaxpr, operands: Values, mesh: AnyMesh, manual: frozenset[Any], ins: Specs, outs: Specs
) -> list[Any]:
    """The `sdy.manual_computation` operation: a region that each device runs on its shards."""
    meshes, names = ctx.module.meshes, ", ".join(f'"{name}"' for name in mesh.axis_names if name in manual)
    is_open, leading = len(ctx.module.manual_axes) < len(mesh.axis_names), ctx.leading

    def shardings(specs: Specs, avals: Avals) -> str:
        pairs = zip(specs, avals, strict=True)
        each = (str(meshes.sharding(NamedSharding(mesh, s), a.ndim, is_open)) for s, a in pairs)
        return f"#sdy.sharding_per_value<[{', '.join(text.removeprefix('#sdy.sharding') for text in each)}]>"

    def body(*arguments: Any) -> Values:
        ctx.constants = {}  # the region is isolated: it cannot use values from outside
        ctx.leading = arguments[: len(leading)]
        outs = ctx.body(jaxpr, arguments[len(leading) :], "shard_map")
        ctx.leading = leading
        return outs

    types = [*ctx.module.leading, *[ctx.mlir.type(a) for a in jaxpr.in_avals]]
    return ctx.many(
        "sdy.manual_computation",
        [*leading, *operands],
        [ctx.mlir.type(a) for a in ctx.avals_out],
        [ctx.region(types, body, "sdy.return")],
        in_shardings=shardings((PartitionSpec(),) * len(leading) + ins, [*[_INDEX] * len(leading), *ctx.avals_in]),
        out_shardings=shardings(outs, ctx.avals_out),
        manual_axes=f"#sdy<manual_axes{{{names}}}>",
    )


shard_map_p: Final = ShardMap()
