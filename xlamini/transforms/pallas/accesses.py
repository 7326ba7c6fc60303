"""Accesses of a GPU's kernel to refs: loads and stores with a mask, and atomic updates, as equations on refs.

They mean what they do to the ref's value (points.py), one program after the other. A kernel on a GPU has them as
instructions; a context without these computes their meaning on the whole ref.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from xlamini.core import Avals, Params, Values, Zero, aval_of, is_zero, tangent_aval
from xlamini.core.program.literals import literal
from xlamini.core.program.ref_parts import Part, has_arrays, shape_of
from xlamini.primitives import bitwise_and, bitwise_or, where
from xlamini.primitives.base.tangent_ops import instantiated
from xlamini.primitives.elementwise.arithmetic import add, max, min
from xlamini.primitives.elementwise.bitwise import bitwise_xor
from xlamini.primitives.refs import OnView
from xlamini.primitives.shape.shape import reshape
from xlamini.transforms.pallas.points import flat, points_of, spread
from xlamini.transforms.scan.api import scan


class Access(NamedTuple):
    """How an equation accesses a ref: the view of the part, and which operands come before those in the indices.

    `values` is the number of values, `masked` says whether a mask follows; `operation` is the name of an atomic update.
    """

    view: Any
    values: int = 0
    masked: bool = False
    operation: str = ""

    @property
    def first(self) -> int:
        """The number of operands before those in the indices."""
        return self.values + self.masked

    def parted(self, operands: Sequence[Any]) -> tuple[Sequence[Any], Any | None, Sequence[Any]]:
        """The values, the mask (None: all), and the operands in the indices."""
        return operands[: self.values], operands[self.values] if self.masked else None, operands[self.first :]

    def part(self, shape: Sequence[int], avals: Avals) -> Part:
        """The part of a ref of this shape, for all of the operands' types; TypeError where it is none."""
        found = self.view.part(shape, avals[self.first :])
        if found is None:
            raise TypeError(
                "an access with a mask, or an atomic one, takes a part of a ref by ints, slices, or arrays of ints "
                "side by side; write ref.at[i, pl.ds(start, size)], without reshape or transpose"
            )
        return found

    def notation(self, names: Sequence[str]) -> str:
        """The part, and the mask, as a program shows them, from the names of the operands."""
        _, mask, indices = self.parted(names)
        return f"{self.view.notation(*indices)}{f' if {mask}' if mask else ''}"


class AccessedPart(NamedTuple):
    """In a kernel, the part that is accessed, the operands in its indices, and the mask, None for all of it."""

    part: Part
    indices: Sequence[Any]
    mask: Any


class OnPart(OnView):
    """An equation on a part of a ref that the param `view`, an `Access`, says."""

    writes = True

    def by_points(self, x: Any, points: Any, values: Sequence[Any], view: Access, part: Part) -> tuple[list[Any], Any]:
        """The results for a flat value and the places in it, and its next value."""
        self._missing("by_points", "(self, x, points, values, view, part) -> (outs, new)")

    def in_kernel(self, ctx: Any, ref: Any, at: AccessedPart, values: Any, view: Access) -> Any:
        """The results, by the instructions of a GPU."""
        self._missing("in_kernel", "(self, ctx, ref, at, values, view) -> outs")

    def is_linear(self, params: Params) -> bool:
        return params["view"].operation in ("", "add", "xchg")

    def jvp(self, primals: Values, tangents: Values, *, view: Access) -> Any:
        outs, count = self.bind(*primals, view=view), 1 + view.values
        along, *values = tangents[:count]
        if is_zero(along):
            return outs, [Zero(tangent_aval(aval_of(out))) for out in outs]
        return outs, self.bind(along, *map(instantiated, values), *primals[count:], view=view)

    def by_values(self, x: Any, operands: Values, view: Access) -> tuple[list[Any], Any]:
        values, mask, indices = view.parted(operands)
        shape = aval_of(x).shape
        part = view.part(shape, list(map(aval_of, operands)))
        outs, new = self.by_points(flat(x), points_of(part, shape, indices, mask), values, view, part)
        return outs, reshape(new, shape)

    def lower(self, ctx: Any, ref: Any, *operands: Any, view: Access) -> list[Any]:
        aval, *avals = ctx.avals_in
        if ctx.takes_arrays:
            values, mask, indices = view.parted(operands)
            return self.in_kernel(ctx, ref, AccessedPart(view.part(aval.shape, avals), indices, mask), values, view)
        return self.on_whole(ctx, ref, operands, view)


class MaskedLoad(OnPart):
    """The part where the mask is true, elsewhere the value `other`, by default 0."""

    name = "masked_load"
    writes = False

    def by_points(self, x: Any, points: Any, values: Sequence[Any], view: Access, part: Part) -> tuple[list[Any], Any]:
        found = x.at[points].get(mode="fill", fill_value=0)
        if values:
            outside = points >= literal(aval_of(x).size, aval_of(points).dtype)
            found = where(outside, spread(values[0], shape_of(part)), found)
        return [found], x

    def in_kernel(self, ctx: Any, ref: Any, at: AccessedPart, values: Any, view: Access) -> Any:
        return [ctx.masked_load(ref, *at, *values)]

    def notation(self, outs: str, names: list[str], params: Params) -> str:
        ref, *rest = names
        other = f" else {rest[0]}" if params["view"].values else ""
        return f"{outs} <- {ref}{params['view'].notation(rest)}{other}"


class MaskedStore(OnPart):
    """Writes values to the part where the mask is true."""

    name = "masked_store"

    def by_points(self, x: Any, points: Any, values: Sequence[Any], view: Access, part: Part) -> tuple[list[Any], Any]:
        return [], x.at[points].set(values[0], mode="drop")

    def in_kernel(self, ctx: Any, ref: Any, at: AccessedPart, values: Any, view: Access) -> Any:
        ctx.masked_store(ref, *at, *values)
        return []

    def notation(self, outs: str, names: list[str], params: Params) -> str:
        ref, *rest = names
        return f"{ref}{params['view'].notation(rest)} <- {rest[0]}"


COMBINATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": add, "max": max, "min": min, "and": bitwise_and, "or": bitwise_or, "xor": bitwise_xor,
    "xchg": lambda old, new: new,
}  # fmt: skip
"""By the name of an atomic operation: the new element from the old one and the value."""


class Atomic(OnPart):
    """Combines the elements of the part with values; returns the elements before."""

    name = "atomic"

    def by_points(self, x: Any, points: Any, values: Sequence[Any], view: Access, part: Part) -> tuple[list[Any], Any]:
        value, combine = values[0], COMBINATIONS[view.operation]
        if has_arrays(part):
            old, new = _one_by_one(combine, x, points, value)
            direct = view.operation in ("add", "max", "min")
            return [old], getattr(x.at[points], view.operation)(value, mode="drop") if direct else new
        old = x.at[points].get(mode="fill", fill_value=0)
        return [old], x.at[points].set(combine(old, value), mode="drop")

    def in_kernel(self, ctx: Any, ref: Any, at: AccessedPart, values: Any, view: Access) -> Any:
        return [ctx.atomic(ref, *at, view.operation, *values)]

    def notation(self, outs: str, names: list[str], params: Params) -> str:
        ref, *rest = names
        return f"{outs} <- {ref}{params['view'].notation(rest)} {params['view'].operation}= {rest[0]}"


def _one_by_one(combine: Any, x: Any, points: Any, value: Any) -> tuple[Any, Any]:
    """The elements before each update, and the value after all, where several may be of one element."""

    def step(x: Any, update: Any) -> tuple[Any, Any]:
        point, value = update
        old = x.at[point].get(mode="fill", fill_value=0)
        return x.at[point].set(combine(old, value), mode="drop"), old

    shape = aval_of(points).shape
    new, old = scan(step, x, (flat(points), flat(value)))
    return reshape(old, shape), new


class CompareAndSwap(OnPart):
    """Writes the second value to an element that equals the first one; returns the element before."""

    name = "atomic_cas"

    def is_linear(self, params: Params) -> bool:
        return False

    def by_points(self, x: Any, points: Any, values: Sequence[Any], view: Access, part: Part) -> tuple[list[Any], Any]:
        expected, value = values
        old = x.at[points].get(mode="fill", fill_value=0)
        return [old], x.at[points].set(where(old == expected, value, old), mode="drop")

    def in_kernel(self, ctx: Any, ref: Any, at: AccessedPart, values: Any, view: Access) -> Any:
        return [ctx.compare_and_swap(ref, at.part, at.indices, *values)]

    def notation(self, outs: str, names: list[str], params: Params) -> str:
        ref, expected, value, *_ = names
        return f"{outs} <- {ref}{params['view'].notation(names[1:])} = {value} if it was {expected}"


masked_load_p: Final = MaskedLoad()
masked_store_p: Final = MaskedStore()
atomic_p: Final = Atomic()
atomic_cas_p: Final = CompareAndSwap()
