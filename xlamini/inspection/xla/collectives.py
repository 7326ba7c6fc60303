"""The collectives of a program with the equations that they come from, and who asked for them."""
from __future__ import annotations

from xlamini.inspection.xla.examined import ExchangedData
from xlamini.inspection.xla.hlo import labels_of
from xlamini.runtime.hlo.collectives import Collective, collectives_of

ASKED_BY = frozenset(
    "all_gather all_gather_invariant all_to_all device_put pbroadcast pmax pmin ppermute psum ragged_all_to_all "
    "reduce_scatter reshard sharding_constraint".split()
)
"""Primitives by which a program asks for an exchange of data between devices."""


def exchanges_of(text: str) -> tuple[ExchangedData, ...]:
    """The collectives in the text of an optimized program, those that move most first."""
    found = sorted(collectives_of(text), key=lambda each: -each.bytes * each.times)
    return tuple(map(_exchange, found))


def _exchange(each: Collective) -> ExchangedData:
    labels = labels_of(each.op)
    primitives = {label.rpartition("/")[2].partition("#")[0] for label in labels}
    label = labels[0] if labels else None
    asked = bool(primitives & ASKED_BY)
    return ExchangedData(each.kind, each.bytes, each.times, each.group, label, each.op, each.line, asked)
