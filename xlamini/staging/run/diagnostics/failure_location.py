"""Where a check failed: the user's line, the iteration, the lane, and what kind of value it was."""
from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Equation, Shape
from xlamini.core.program.jaxpr import Provenance
from xlamini.interpreters.error_values import ErrorLoop, ErrorPart, Site
from xlamini.interpreters.roles import COTANGENT, PRIMAL, TANGENT

_PASSES = {PRIMAL: "", TANGENT: "in the derivative (a tangent)", COTANGENT: "in the backward pass (a cotangent)"}


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a program first failed. What is unknown, or does not apply, is None or empty.

    >>> from xlamini.experimental import checkify
    >>> def decay(x):
    ...     return xlamini.lax.fori_loop(0, 5, lambda i, x: xlamini.numpy.sqrt(x - 1), x)
    >>> err, _ = checkify.checkify(decay, errors=checkify.nan_checks)(5.0)
    >>> place = err.place()
    >>> place.category, place.primitive, place.iterations
    ('nan', 'sqrt', (3,))
    """

    category: str
    """"nan", "inf", "div", "index" or "user"."""
    primitive: str
    file: str | None
    line: int | None
    function: str | None
    variable: str | None
    """The name that the user's line assigns the value to."""
    iterations: tuple[int, ...]
    """The iteration of each loop around the line, outermost first, counted from 0."""
    lanes: tuple[int, ...]
    """The index along the batch dimension of each vmap around the line, outermost first."""
    devices: tuple[dict[str, int], ...]
    """The position in the mesh of the device, for each shard_map around the line."""
    index: tuple[int, ...]
    """The index of the first bad element, without batch dimensions."""
    role: str
    """"primal", "tangent" or "cotangent"."""
    rewrites: tuple[str, ...]
    """The path of rewrites that made the equation, oldest first."""

    def as_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        return "\n".join(f"  {line}" for line in self._lines())

    def _lines(self) -> list[str]:
        where = f"{self.file}:{self.line} ({self.function})" if self.file else "an unknown place"
        named = f", in the value of {self.variable!r}" if self.variable else ""
        lines = [f"Occurred at {where}{named}", _PASSES[self.role]]
        lines += [f"in iteration {', '.join(map(str, self.iterations))} of the loop"] if self.iterations else []
        lines += [f"in lane {', '.join(map(str, self.lanes))} of vmap"] if self.lanes else []
        lines += [f"on the device at {', '.join(f'{k}={i}' for k, i in at.items())}" for at in self.devices]
        lines += [f"at element {self.index}"] if self.index and self.category in ("nan", "inf") else []
        return [line for line in lines if line]


class Lane(NamedTuple):
    """An index along the batch dimension of one vmap, and its size."""

    index: int
    size: int


def message_of(error: ErrorPart) -> str:
    """The message of an error that there is, as values of NumPy."""
    site = _site(error)
    payload = error.payload[site.start : site.start + site.count]
    return site.message(unraveled(int(error.at), site.shape), payload)


def place_of(error: ErrorPart) -> Place:
    """The place of an error that there is, as values of NumPy."""
    site = _site(error)
    assert site.eqn is not None
    provenance = site.eqn.provenance
    within, index = _without_lanes(site.eqn, site.shape, unraveled(int(error.at), site.shape))
    trips = error.trips[0] if error.trips else ()
    turns = [(loop, int(trip)) for loop, trip in zip(site.loops, trips, strict=False)]
    outer = [lane for loop, trip in turns if loop.turn == "lane" for lane in _lanes(loop, trip)]
    lanes = _of_active(turns, [*outer, *within])
    source = provenance.source
    return Place(
        site.category,
        site.eqn.primitive.name,
        source and source.file,
        source and source.line,
        source and source.function,
        source and source.target,
        tuple(trip for loop, trip in turns if loop.turn == "iteration"),
        tuple(lane.index for lane in lanes),
        tuple(_device(loop, trip) for loop, trip in turns if loop.turn == "device"),
        index,
        site.role or PRIMAL,
        tuple(provenance.path),
    )


def _site(error: ErrorPart) -> Site:
    return error.sites[int(error.code) - 1]


def unraveled(at: int, shape: Shape) -> tuple[int, ...]:
    """A flat index as one for each dimension."""
    return tuple(int(i) for i in np.unravel_index(min(at, math.prod(shape) - 1), shape)) if shape else ()


def _position(loop: ErrorLoop, turn: int) -> tuple[int, ...]:
    return unraveled(turn, tuple(size for _, size in loop.sizes))


def _device(loop: ErrorLoop, turn: int) -> dict[str, int]:
    return dict(zip([name for name, _ in loop.sizes], _position(loop, turn), strict=True))


def _lanes(loop: ErrorLoop, turn: int) -> list[Lane]:
    return [Lane(i, size) for i, (_, size) in zip(_position(loop, turn), loop.sizes, strict=True)]


def _of_active(turns: Sequence[tuple[ErrorLoop, int]], lanes: list[Lane]) -> list[Lane]:
    """The lanes, with the active one in place of one that was idle; none where it is not clear which they are."""
    for loop, turn in turns:
        if loop.turn == "active":
            active = _lanes(loop, turn)
            sizes, count = [lane.size for lane in active], len(active)
            starts = [i for i in range(len(lanes)) if [lane.size for lane in lanes[i : i + count]] == sizes]
            if len(starts) != 1:
                return []
            here = slice(starts[0], starts[0] + count)
            lanes[here] = max(lanes[here], active)
    return lanes


def _without_lanes(eqn: Equation, shape: Shape, index: tuple[int, ...]) -> tuple[list[Lane], tuple[int, ...]]:
    """The lanes in an index, and the index without them: one for each vmap whose batch dimension the rewrites tell."""
    lanes: list[Lane] = []
    here: Provenance = eqn.provenance
    while here.origin is not None:
        if here.lanes is not None:
            dim = _batch_dim(here, shape)
            if dim is None:
                return lanes, index
            lanes.append(Lane(index[dim], shape[dim]))
            shape, index = shape[:dim] + shape[dim + 1 :], index[:dim] + index[dim + 1 :]
        here = here.origin.provenance
    return lanes, index


def _batch_dim(made: Provenance, shape: Shape) -> int | None:
    """The batch dimension of a value of this shape among the operands and results of a batched equation."""
    assert made.lanes is not None and made.origin is not None
    size, of_operands, of_results = made.lanes
    for atoms, dims in ((made.origin.outvars, of_results), (made.origin.invars, of_operands)):
        fitting = {d for a, d in zip(atoms, dims, strict=True) if d is not None and _batched(a, d, size) == shape}
        if len(fitting) == 1:
            return fitting.pop()
    return None


def _batched(atom: Any, dim: int, size: int) -> Shape:
    shape = atom.aval.shape
    return (*shape[:dim], size, *shape[dim:])
