"""A scan whose body reads and writes refs, by their values: those that it writes are carries, the others consts."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Jaxpr
from xlamini.staging import chosen, inverse
from xlamini.transforms.control_flow.carried_refs import carrying_refs
from xlamini.transforms.scan.rules import ScanParts


def discharged_scan(
    run: Callable[..., list[Any]], body: Jaxpr, refs: Sequence[Any], operands: ScanParts
) -> tuple[list[Any], dict[Any, Any]]:
    """The results, and the new values by ref; `run(body, operands)` binds a scan. `refs` goes with the operands."""
    of_body, changes = carrying_refs(body, len(operands.consts))
    consts, carry = chosen(operands.consts, inverse(changes)), chosen(operands.consts, changes)
    outs = run(of_body, ScanParts(consts, [*carry, *operands.carry], operands.xs))
    return outs[len(carry) :], dict(zip(chosen(refs[: len(changes)], changes), outs, strict=False))
