"""The errors and warnings for operands that do not fit together: in different memories, or split differently."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from xlamini.core.program.jaxpr import Atom, Equation, EquationKind, Var
from xlamini.core.program.memory_space import DEVICE
from xlamini.core.sharding.propagation import report

Producers = dict[Var, Equation]


def report_conflicts(
    kind: EquationKind, multiple_results: bool, atoms: Sequence[Atom], producers: Callable[[], Producers]
) -> None:
    """Report the conflicts of an equation that a user wrote; `producers()` are the equations that computed operands.

    ValueError for different memories, except for constants, which are in no memory.
    """
    if kind.memory_conflict is not None:
        others = [a for a in atoms if a.aval.shape and a.aval.memory_space is DEVICE]
        if not _are_constants(others, producers()):
            raise ValueError(kind.memory_conflict)
    if kind.sharding_conflict is not None:
        first = kind.result_types[0] if multiple_results else kind.result_types
        report(kind.sharding_conflict, first.explicit_sharding, first.ndim)


def _are_constants(atoms: Sequence[Atom], producers: Producers) -> bool:
    """Whether these are computed without any input or captured value."""
    pending = list(atoms)
    while pending:
        atom = pending.pop()
        if type(atom) is Var:
            if atom not in producers:
                return False
            pending += producers[atom].invars
    return True
