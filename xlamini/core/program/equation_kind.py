"""The kind of an equation: what all equations of one primitive, with equal params and operand types, share.

There is one `EquationKind` for all of them, in every program. It has the types of their results, so that a shape rule
runs once; and what rewrites derive from one such equation, so that a derivative rule runs once too (rule_cache.py).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from xlamini.core.caching.ambiguity import is_ambiguous
from xlamini.core.caching.memo import Memo, OwnedMemo
from xlamini.core.program.avals import Avals, Params, space_of, split_of, vma_of
from xlamini.core.program.bindable import effects_of
from xlamini.core.program.jaxpr import Equation, EquationKind, Jaxpr, Provenance, Var
from xlamini.core.program.memory_space import in_memory, is_elsewhere
from xlamini.core.program.primitive import Cost
from xlamini.core.sharding.forbidden import communicates
from xlamini.core.sharding.manual_axes import named_axes, result_types
from xlamini.core.sharding.propagation import propagate_sharding

kinds: Final = Memo("kind: equations", 4096, counted=False)
"""By primitive, operand types and params; of pure primitives only. `Builder.emit` looks up in the table itself."""

derived: Final = OwnedMemo("kind: rewrites of one equation", 64, "derived", counted=True)
"""On each kind; the limit is there because an equation may have another literal each time."""


_COST = ("cost",)


def new_kind(
    primitive: Any, key: Sequence[Any], params: Params, avals: Avals
) -> EquationKind:
    """The kind of an equation that is not in `kinds`, added there if other equations may share it."""
    primitive.is_bound = True
    out = result_types(primitive, primitive.shape_rule(*avals, **params), avals, params)
    conflict = memory_conflict = None
    undone = False
    if any(map(is_elsewhere, map(space_of, avals))):
        out, memory_conflict = in_memory(primitive, out, avals, params)
    if primitive.sharding.chooses or any(map(split_of, avals)):
        out, conflict = propagate_sharding(primitive, out, avals, params)
        undone = communicates(primitive, avals, out if primitive.multiple_results else [out])
    kind = EquationKind(out, effects_of(primitive, avals, params), conflict, memory_conflict)
    # A number goes with values that vary, but a variable of its type would have to be cast.
    shareable = primitive.is_pure and not (conflict or memory_conflict or undone) and len({*map(vma_of, avals)}) < 2
    if shareable and not kind.effects and not named_axes(primitive, params):
        kind.shared = not (params and is_ambiguous((*params.values(),)))
    return kinds.keep(tuple(key), kind) if kind.shared else kind


def equation_cost(eqn: Equation) -> Cost:
    """The operations and bytes of an equation, counted once for its kind."""
    kind = eqn.kind
    if kind is None or not kind.shared:
        return eqn.primitive.cost(*[a.aval for a in eqn.invars], **eqn.params)
    found = kind.derived.get(_COST)
    if found is None:
        found = derived.keep(kind, _COST, eqn.primitive.cost(*[a.aval for a in eqn.invars], **eqn.params))
    return found


def as_jaxpr(eqn: Equation) -> Jaxpr:
    """The program of this equation only: its variables are the inputs, its literals stay."""
    operands = [Var(a.aval) if type(a) is Var else a for a in eqn.invars]
    results = [Var(v.aval) for v in eqn.outvars]
    # Without its kind, so that rewrites of this program run the rule.
    only = Equation(eqn.primitive, operands, results, eqn.params, eqn.effects, Provenance(None), 0)
    return Jaxpr([], [v for v in operands if type(v) is Var], results, [only])
