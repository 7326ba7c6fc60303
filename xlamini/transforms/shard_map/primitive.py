"""The `shard_map` primitive: a jaxpr that every device of a mesh runs on its part of the operands.

The inputs and outputs of the jaxpr have the types of parts; `in_specs` and `out_specs` say which. Rewrites of a
shard_map are shard_maps of the rewritten jaxpr: a tangent lies as its primal does, a residual as its type says that it
varies.

Within another shard_map the mesh is the same, and `manual` are axes that are not manual there. What varies along those
that are, does so inside and outside alike.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.primitive import Axis, Cost
from xlamini.core.rewriting import rewrite
from xlamini.core.sharding.abstract_mesh import parts_along
from xlamini.core.sharding.partition_spec import PartitionSpec
from xlamini.core.tangents import is_linear
from xlamini.core.tracer import build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.jvp import jvp
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.interpreters.residuals import gather_residuals
from xlamini.interpreters.transpose import transpose
from xlamini.primitives.collectives.varying import unvary_p, varying_along
from xlamini.primitives.shape import expand_dims, squeeze
from xlamini.runtime.meshes.mesh import Mesh
from xlamini.runtime.meshes.named_sharding import NamedSharding
from xlamini.staging.call.higher_order import (
    HigherOrder,
    chosen,
    cost_of,
    given,
    inverse,
    merged,
    nonzero_of,
    with_none,
    with_zeros,
)
from xlamini.transforms.shard_map.manual_axes import manual_axes
from xlamini.transforms.shard_map.specs import Spec, allowed_axes, global_aval, moved, placed_within, stacked_spec

Specs = tuple[Spec, ...]


class ShardMap(HigherOrder):
    """A program of each device; `manual` are the axes of the mesh that it is written for."""

    name = "shard_map"

    def shape_rule(
        self, *avals: ShapedArray, jaxpr: Jaxpr, mesh: Mesh, manual: frozenset[Any], out_specs: Specs, **params: Any
    ) -> list[ShapedArray]:
        return [global_aval(a, mesh, manual, spec) for a, spec in zip(jaxpr.out_avals, out_specs, strict=True)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> Any:
        nonzero, ins, outs = nonzero_of(tangents), params["in_specs"], params["out_specs"]
        with manual_axes(params):
            both, nonzero_out = jvp(jaxpr, nonzero)
        every_in, every_out = (*ins, *chosen(ins, nonzero)), (*outs, *chosen(outs, nonzero_out))
        found = self.run(both, every_in, every_out, params, [*primals, *given(tangents)])
        return found[: len(outs)], self._with_zeros(jaxpr, params, nonzero_out, found[len(outs) :])

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> Any:
        nonzero, ins, outs = nonzero_of(tangents), params["in_specs"], params["out_specs"]
        with manual_axes(params):
            lin = linearize(jaxpr, nonzero)
        first = Half(lin.primal, primals, ins, outs)
        second = Half(lin.tangent, given(tangents), chosen(ins, nonzero), chosen(outs, lin.nonzero_out))
        results, found = self._in_halves(params, first, second, lin.sources)
        return results, self._with_zeros(jaxpr, params, lin.nonzero_out, found)

    def partial_eval(self, unknown: Sequence[bool], operands: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> Any:
        known, ins, outs = inverse(unknown), params["in_specs"], params["out_specs"]
        with manual_axes(params):
            halves = partial_eval(jaxpr, tuple(unknown))
        known_outs, later_outs = chosen(outs, inverse(halves.unknown_out)), chosen(outs, halves.unknown_out)
        first = Half(halves.known, chosen(operands, known), chosen(ins, known), known_outs)
        second = Half(halves.unknown, chosen(operands, unknown), chosen(ins, unknown), later_outs)
        results, later = self._in_halves(params, first, second, halves.sources)
        return merged(halves.unknown_out, later, results)

    def transpose(self, cts: Sequence[Any], *operands: Any, jaxpr: Jaxpr, **params: Any) -> list[Any]:
        linear, nonzero, ins = tuple(map(is_linear, operands)), nonzero_of(cts), params["in_specs"]
        with manual_axes(params):
            backward, nonzero_out = transpose(jaxpr, linear, nonzero)
        given_specs = (*chosen(ins, inverse(linear)), *chosen(params["out_specs"], nonzero))
        out_specs = tuple(chosen(chosen(ins, linear), nonzero_out))
        every = [*chosen(operands, inverse(linear)), *given(cts)]
        found = self.run(backward, given_specs, out_specs, params, every)
        return with_none(linear, with_none(nonzero_out, found))

    def batch(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], *, jaxpr: Jaxpr, **params: Any
    ) -> Any:
        if axis.name in params["manual"]:
            axis = axis._replace(name=None)  # inside, the name is that of the mesh's axis
        axis = axis._replace(placed=placed_within(axis.placed, params["mesh"], params["manual"]))
        with manual_axes(params):
            batched, out_dims = batch(jaxpr, axis, tuple(dims))
        ins, outs = (tuple(map(moved, params[name], ds)) for name, ds in (("in_specs", dims), ("out_specs", out_dims)))
        return self.run(batched, ins, outs, params, operands), out_dims

    def lower(self, ctx: Any, *operands: Any, jaxpr: Jaxpr, mesh: Mesh, manual: frozenset[Any], **params: Any) -> Any:
        ctx.forbid_repetition()
        module = ctx.module
        before = module.manual, module.manual_axes
        module.manual, module.manual_axes = mesh, module.manual_axes | manual
        try:
            if mesh.size == 1 or not manual:
                return ctx.body(jaxpr, operands, "shard_map")
            return _on_each(ctx, jaxpr, operands, mesh, manual, params["in_specs"], params["out_specs"])
        finally:
            module.manual, module.manual_axes = before

    def around(self, params: dict[str, Any]) -> AbstractContextManager[None]:
        return manual_axes(params)

    def dce(self, used: Sequence[bool], params: dict[str, Any]) -> Any:
        with manual_axes(params):
            jaxpr, used_inputs = dce(params["jaxpr"], tuple(used))
        specs = {
            "in_specs": tuple(chosen(params["in_specs"], used_inputs)),
            "out_specs": tuple(chosen(params["out_specs"], used)),
        }
        return list(used_inputs), list(used), {**params, **specs, "jaxpr": jaxpr}

    def operand_avals(self, params: dict[str, Any]) -> list[ShapedArray]:
        """Along the axes of a shard_map around operands vary as the inputs of the jaxpr do."""
        return [a.varying(a.vma - params["manual"]) for a in params["jaxpr"].in_avals]

    def cost(self, *avals: ShapedArray, jaxpr: Jaxpr, mesh: Mesh, manual: frozenset[Any], **params: Any) -> Cost:
        """What devices along the manual axes compute together; the compiler parts it among the others."""
        one, count = cost_of(jaxpr), parts_along(mesh, manual)
        return Cost(one.flops * count, one.bytes * count)

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return dict(sorted({**params, "manual": tuple(sorted(params["manual"], key=str))}.items()))

    def named_axes(self, params: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(name for name in super().named_axes(params) if name not in params["manual"])

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """What is captured is whole on every device."""
        jaxpr = params["jaxpr"]
        specs = (*(PartitionSpec(),) * len(jaxpr.consts), *params["in_specs"])
        return [*jaxpr.consts, *operands], {**params, "jaxpr": close_over(jaxpr), "in_specs": specs}

    def run(
        self,
        jaxpr: Jaxpr,
        in_specs: Sequence[Spec],
        out_specs: Sequence[Spec],
        params: dict[str, Any],
        operands: Sequence[Any],
    ) -> list[Any]:
        """A shard_map of another jaxpr over the same mesh, whose outputs vary as its specs say."""
        allowed = allowed_axes(jaxpr.out_avals, out_specs, params["manual"])
        with manual_axes(params):
            fitting = varying_as(jaxpr, allowed, params["check_vma"])
        specs = {"in_specs": tuple(in_specs), "out_specs": tuple(out_specs)}
        return self.bind(*operands, **{**params, **specs, "jaxpr": fitting})

    def _in_halves(
        self, params: dict[str, Any], first: Half, second: Half, sources: Sequence[int]
    ) -> tuple[list[Any], list[Any]]:
        """The results of two halves, the second of which first takes the residuals that `sources` finds."""
        mesh, manual, count = params["mesh"], params["manual"], len(first.out_specs)
        with manual_axes(params):
            giving, specs = with_residuals(first.jaxpr, count, mesh, manual)
            taking = taking_residuals(second.jaxpr, sources, len(first.in_specs) + count, manual)
        every_out = (*first.out_specs, *specs)
        results = self.run(giving, first.in_specs, every_out, params, first.operands)
        residuals = gather_residuals(sources, first.operands, results)
        every_in = (*gather_residuals(sources, first.in_specs, every_out), *second.in_specs)
        found = self.run(taking, every_in, second.out_specs, params, [*residuals, *second.operands])
        return results[:count], found

    def _with_zeros(
        self, jaxpr: Jaxpr, params: dict[str, Any], nonzero: Sequence[bool], tangents: Sequence[Any]
    ) -> list[Any]:
        return with_zeros(self.shape_rule(jaxpr=jaxpr, **params), nonzero, tangents)


class Half(NamedTuple):
    """The first or the second part of a program: its jaxpr, operands, and how these and its outputs lie."""

    jaxpr: Jaxpr
    operands: Sequence[Any]
    in_specs: Sequence[Spec]
    out_specs: Sequence[Spec]


@rewrite
def varying_as(jaxpr: Jaxpr, wanted: tuple[frozenset[Any], ...], checked: bool) -> Jaxpr:
    """The jaxpr with outputs that vary along these axes; what varies along more is said not to, where none checks."""
    if tuple(a.vma for a in jaxpr.out_avals) == wanted:
        return jaxpr
    return _rebuilt(jaxpr, lambda outs: [_fitted(x, axes, checked) for x, axes in zip(outs, wanted, strict=True)])


def _fitted(x: Any, axes: frozenset[Any], checked: bool) -> Any:
    more = x.aval.vma - axes
    if more and not checked:
        x = unvary_p.bind(x, axes=tuple(sorted(more, key=str)))
    return varying_along(x, axes)


def with_residuals(jaxpr: Jaxpr, count: int, mesh: Mesh, manual: frozenset[Any]) -> tuple[Jaxpr, Specs]:
    """The first half with residuals of one dimension or more, where they vary, and their specs."""
    scalars = [i for i, a in enumerate(jaxpr.out_avals) if i >= count and a.vma & manual and not a.ndim]
    if scalars:
        jaxpr = _raised(jaxpr, tuple(scalars))
    return jaxpr, tuple(stacked_spec(a, mesh, manual) for a in jaxpr.out_avals[count:])


@rewrite
def _raised(jaxpr: Jaxpr, which: tuple[int, ...]) -> Jaxpr:
    return _rebuilt(jaxpr, lambda outs: [expand_dims(x, (0,)) if i in which else x for i, x in enumerate(outs)])


def taking_residuals(jaxpr: Jaxpr, sources: Sequence[int], first_new: int, manual: frozenset[Any]) -> Jaxpr:
    """The second half, taking the residuals that `with_residuals` gave a dimension."""
    residuals = zip(jaxpr.in_avals, sources, strict=False)
    which = tuple(i for i, (a, at) in enumerate(residuals) if at >= first_new and a.vma & manual and not a.ndim)
    return _lowered(jaxpr, which) if which else jaxpr


@rewrite
def _lowered(jaxpr: Jaxpr, which: tuple[int, ...]) -> Jaxpr:
    avals = [a.update(shape=(1,)) if i in which else a for i, a in enumerate(jaxpr.in_avals)]

    def taken(*operands: Any) -> list[Any]:
        return evaluate(jaxpr, [squeeze(x, (0,)) if i in which else x for i, x in enumerate(operands)])

    return build(taken, avals, jaxpr.name)[0]


def _rebuilt(jaxpr: Jaxpr, change: Callable[[list[Any]], list[Any]]) -> Jaxpr:
    """The jaxpr with other outputs, made of those it has."""
    return build(lambda *operands: change(evaluate(jaxpr, operands)), jaxpr.in_avals, jaxpr.name)[0]


def _on_each(
    ctx: Any, jaxpr: Jaxpr, operands: Sequence[Any], mesh: Mesh, manual: frozenset[Any], ins: Specs, outs: Specs
) -> list[Any]:
    """`sdy.manual_computation`: a region that each device runs on its parts."""
    meshes, names = ctx.module.meshes, ", ".join(f'"{name}"' for name in mesh.axis_names if name in manual)
    is_open = len(ctx.module.manual_axes) < len(mesh.axis_names)

    def shardings(specs: Specs, avals: Sequence[ShapedArray]) -> str:
        pairs = zip(specs, avals, strict=True)
        each = (str(meshes.sharding(NamedSharding(mesh, s), a.ndim, is_open)) for s, a in pairs)
        return f"#sdy.sharding_per_value<[{', '.join(text.removeprefix('#sdy.sharding') for text in each)}]>"

    def body(*arguments: Any) -> Sequence[Any]:
        ctx.constants = {}  # what stands around the region cannot be used in it
        return ctx.body(jaxpr, arguments, "shard_map")

    region = ctx.region([ctx.mlir.type(a) for a in jaxpr.in_avals], body, "sdy.return")
    return ctx.many(
        "sdy.manual_computation",
        operands,
        [ctx.mlir.type(a) for a in ctx.avals_out],
        [region],
        in_shardings=shardings(ins, ctx.avals_in),
        out_shardings=shardings(outs, ctx.avals_out),
        manual_axes=f"#sdy<manual_axes{{{names}}}>",
    )


shard_map_p = ShardMap()
