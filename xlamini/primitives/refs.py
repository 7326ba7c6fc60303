"""Reads and writes of refs, as equations: `b:f32[2] <- a[1:3]`, `a[0] <- c`, `a[...] += d`.

The first operand is the ref, a variable of type `Ref{…}`. `view` says which part of it, by functions of the value of
the ref and of the last operands, the numbers and arrays in indices (numpy/indexing/ref_steps.py). No transformation
meets these equations: `discharge` (interpreters/discharge.py) makes of a program with refs one of their values first.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from xlamini.core import (
    Avals,
    Cost,
    Jaxpr,
    Params,
    ShapedArray,
    Values,
    Zero,
    aval_of,
    hooks,
    is_zero,
    memoised,
    tangent_aval,
)
from xlamini.core.program.ref_parts import Part, has_arrays, shape_of, whole
from xlamini.core.program.ref_types import AbstractRef, RefPrimitive
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sharding.partial_sums import sums_of
from xlamini.core.sharding.propagation import Splits
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import build
from xlamini.primitives.base.promotion import convert
from xlamini.primitives.base.tangent_ops import instantiated


class WholeView(NamedTuple):
    """The view of all of a ref."""

    def read(self, x: Any, *indices: Any) -> Any:
        """The part of the value."""
        return x

    def write(self, x: Any, new: Any, *indices: Any) -> Any:
        """The value with another part."""
        return new

    def part(self, shape: Sequence[int], avals: Avals) -> Part | None:
        """The part of a ref of this shape."""
        return whole(shape)

    def notation(self, *names: str) -> str:
        """The part, as a program shows it, with the names of the further operands."""
        return "[...]"


class OnView(RefPrimitive):
    """An equation on the part of a ref that the param `view` says."""

    sharding: Sharding = Sharding(
        splits=lambda avals, outs, params: Splits([a.explicit_sharding for a in outs], None),
        sums=lambda avals, outs, params: list(map(sums_of, outs)),
        chooses_axes=True, casts=True, chooses_memory=True,
    )  # fmt: skip

    def bind(self, ref: Any, *operands: Any, view: Any) -> Any:
        if type(aval_of(ref)) is not AbstractRef:
            raise TypeError(f"{self.name} takes a ref, got {aval_of(ref).str_long()}; pass xlamini.new_ref(x)")
        return super().bind(ref, *operands, view=view)

    def by_values(self, x: Any, operands: Values, view: Any) -> tuple[list[Any], Any]:
        """The results for a ref with the value `x`, and its next value."""
        self._missing("by_values", "(self, x, operands, view) -> (outs, new)")

    def discharge(self, refs: Sequence[Any], operands: Values, *, view: Any) -> tuple[list[Any], dict[Any, Any]]:
        program, target = _program(self, tuple(map(aval_of, operands)), view), state.builder
        assert target is not None
        *outs, new = target.copied(program, operands, target.provenance)
        return outs, {refs[0]: new} if self.writes else {}

    def shape_rule(self, ref: AbstractRef, *avals: ShapedArray, view: Any) -> Avals:
        *outs, _ = _program(self, (ref.inner_aval, *avals), view).out_avals
        return outs

    def jvp(self, primals: Values, tangents: Values, *, view: Any) -> Any:
        """The same equation on the ref of the tangent, which a ref that takes tangents has."""
        outs, count = self.bind(*primals, view=view), 1 + self.writes
        along, *written = tangents[:count]
        if is_zero(along):
            return outs, [Zero(tangent_aval(aval_of(out))) for out in outs]
        return outs, self.bind(along, *map(instantiated, written), *primals[count:], view=view)

    def on_whole(self, ctx: Any, ref: Any, operands: Values, view: Any) -> list[Any]:
        """In a kernel, the results by the value of the whole ref, which is written back if it changes."""
        aval, *avals = ctx.avals_in
        every = whole(aval.shape)
        program = _program(self, (aval.inner_aval, *avals), view)
        *outs, new = ctx.part(program, [ctx.load(ref, every, ()), *operands], self.name)
        if self.writes:
            ctx.store(ref, every, (), new)
        return outs

    def part(self, ctx: Any, view: Any) -> Part | None:
        """In a kernel, the part that the equation is on; None if the kernel has no such parts."""
        ref, *avals = ctx.avals_in
        part = view.part(ref.shape, avals[self.writes :])
        return part if part is not None and (ctx.takes_arrays or not has_arrays(part)) else None

    def cost(self, ref: AbstractRef, *avals: ShapedArray, view: Any) -> Cost:
        """The part is read or written, and the rest of the ref stays where it is."""
        moved = sum(a.nbytes for a in (*avals, *self.shape_rule(ref, *avals, view=view)))
        return Cost(0, 2 * moved)


@memoised("helper: equations on refs as programs of values", 4096)
def _program(primitive: OnView, avals: tuple[ShapedArray, ...], view: Any) -> Jaxpr:
    """The results for the value of the ref and the operands, then the next value of the ref."""

    def results(x: Any, *operands: Any) -> list[Any]:
        outs, new = primitive.by_values(x, operands, view)
        typed = convert(new, x.dtype, x.weak_type)
        return [*outs, hooks.cast_varying(typed, x.aval.vma) if x.aval.vma else typed]

    program, captured = build(results, avals, primitive.name)
    assert not captured
    return program


class RefGet(OnView):
    name = "get"

    def lower(self, ctx: Any, ref: Any, *indices: Any, view: Any) -> list[Any]:
        part = self.part(ctx, view)
        return self.on_whole(ctx, ref, indices, view) if part is None else [ctx.load(ref, part, indices)]

    def by_values(self, x: Any, operands: Values, view: Any) -> tuple[list[Any], Any]:
        return [view.read(x, *operands)], x

    def notation(self, outs: str, names: list[str], params: Params) -> str:
        ref, *indices = names
        return f"{outs} <- {ref}{params['view'].notation(*indices)}"


class RefSet(OnView):
    name = "set"
    writes = True

    def lower(self, ctx: Any, ref: Any, new: Any, *indices: Any, view: Any) -> list[Any]:
        part = self.part(ctx, view)
        if part is None:
            return self.on_whole(ctx, ref, (new, *indices), view)
        ctx.store(ref, part, indices, _spread(ctx, new, part))
        return []

    def by_values(self, x: Any, operands: Values, view: Any) -> tuple[list[Any], Any]:
        new, *indices = operands
        return [], view.write(x, new, *indices)

    def notation(self, outs: str, names: list[str], params: Params) -> str:
        ref, new, *indices = names
        return f"{ref}{params['view'].notation(*indices)} <- {new}"


def _spread(ctx: Any, new: Any, part: Part) -> Any:
    """The value to write to a part, in its shape."""
    aval, shape = ctx.avals_in[1], shape_of(part)
    if aval.shape == shape:
        return new
    return ctx.broadcast(new, range(len(shape) - aval.ndim, len(shape)), ShapedArray(shape, aval.dtype))


class RefAddupdate(OnView):
    name = "addupdate"
    writes = True

    def lower(self, ctx: Any, ref: Any, term: Any, *indices: Any, view: Any) -> list[Any]:
        part = self.part(ctx, view)
        if part is None:
            return self.on_whole(ctx, ref, (term, *indices), view)
        typed, now = ShapedArray(shape_of(part), ctx.avals_in[0].dtype), ctx.load(ref, part, indices)
        ctx.store(ref, part, indices, ctx.op("stablehlo.add", now, _spread(ctx, term, part), avals=[typed]))
        return []

    def cost(self, ref: AbstractRef, *avals: ShapedArray, view: Any) -> Cost:
        return Cost(avals[0].size, 3 * avals[0].nbytes)

    def by_values(self, x: Any, operands: Values, view: Any) -> tuple[list[Any], Any]:
        term, *indices = operands
        return [], view.write(x, view.read(x, *indices) + term, *indices)

    def notation(self, outs: str, names: list[str], params: Params) -> str:
        ref, term, *indices = names
        return f"{ref}{params['view'].notation(*indices)} += {term}"


get_p: Final = RefGet()
set_p: Final = RefSet()
addupdate_p: Final = RefAddupdate()


hooks.install(
    read_ref=lambda ref: get_p.bind(ref, view=WholeView())[0],
    write_ref=lambda ref, value: set_p.bind(ref, value, view=WholeView()),
)
