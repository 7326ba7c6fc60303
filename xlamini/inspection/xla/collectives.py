"""The collectives of a program with the equations that they come from, and who asked for them."""
from __future__ import annotations

from collections.abc import Callable

from xlamini.inspection.xla.examined import ExchangedData
from xlamini.inspection.xla.hlo import labels_of
from xlamini.runtime.hlo.collectives import Collective, collectives_of

ASKED_BY = frozenset(
    "all_gather all_gather_invariant all_to_all device_put pbroadcast pmax pmin ppermute psum ragged_all_to_all "
    "reduce_scatter reshard sharding_constraint".split()
)
"""Primitives by which a program asks for an exchange of data between devices."""


def exchanges_of(text: str, label_of: Callable[[str], str | None]) -> tuple[ExchangedData, ...]:
    """The collectives in the text of an optimized program, those that move most first.

    `label_of` gives the first label of an instruction by its name, for one whose op name holds none.
    """
    found = sorted(collectives_of(text), key=lambda each: -each.bytes * each.times)
    return tuple(_exchange(each, label_of(each.name)) for each in found)


def _exchange(each: Collective, inherited: str | None) -> ExchangedData:
    labels = labels_of(each.op)
    primitives = {label.rpartition("/")[2].partition("#")[0] for label in labels}
    label = labels[0] if labels else inherited
    asked = bool(primitives & ASKED_BY)
    return ExchangedData(each.kind, each.bytes, each.times, each.group, label, each.op, each.line, asked)
