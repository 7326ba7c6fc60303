"""The contract of a primitive: a name and six rules, in this order.

    shape_rule  avals in -> aval out (or a list of them); raises for operands that don't fit
    jvp         primals and tangents -> output and its tangent
    transpose   for linear operands: cotangent of the output -> cotangents of the operands
    batch       operands with a batch dimension -> output and where its batch dimension is
    lower       StableHLO values -> StableHLO values
    cost        flops and bytes

A rule that is not written raises `MissingRule`, which says what to write and where.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, NoReturn

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import MissingRule
from xlamini.core.jaxpr import Effects, no_effects
from xlamini.core.named_axes import Axis as Axis
from xlamini.core.sharding.factors import Factors
from xlamini.core.sharding.propagation import Splits, split_results
from xlamini.core.tracer import evaluator, state


class Cost(NamedTuple):
    """What one evaluation takes: floating-point operations, and bytes read and written."""

    flops: int
    bytes: int


primitives: list[Primitive] = []


class Primitive:
    """One operation of the language. Subclass it, write the rules, make one instance."""

    name: str
    multiple_results = False
    higher_order = False
    """Whether jaxprs are among its params."""
    pure = True
    """Whether its rules look at nothing but flags, params, literals and types, so that what they say is remembered.

    A primitive that has Python functions or jaxprs among its params is not: it would keep them alive.
    """
    called: str | None = None
    """The param with the jaxpr that takes the operands as they are and gives the results, if there is one."""
    shares_names = False
    """Whether that jaxpr is printed with the names that its inputs and outputs have outside."""
    cheap = False
    """Whether XLA rather computes it again, fused into what reads it, than keep it in memory."""
    divides = False
    """Whether it says how its results are split over a mesh, whatever its operands are."""
    casts = False
    """Whether it says of a value along which manual axes it varies."""
    in_place = False
    """Whether each element of the result is made of the elements at its place."""
    on_cpu: Any = None
    """What stands in for it on the CPU, put together of simpler operations, if something does."""
    lacks: Mapping[str, str] = {}
    """The rules it rightly has not, and why."""

    def __init__(self, name: str | None = None):
        if name is not None:
            self.name = name
        self.executables: dict[Any, Any] = {}
        primitives.append(self)

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Apply the primitive: add an equation to the active builder, or run it now if there is none."""
        builder = state.builder
        if builder is None:
            return evaluator[0](self, operands, params)
        return builder.emit(self, operands, params)

    def varying(self, vma: frozenset[Any], params: dict[str, Any]) -> frozenset[Any] | None:
        """The manual axes along which the results vary, if the operands do along `vma`; None: as `shape_rule` says."""
        return vma

    def factors(self, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: dict[str, Any]) -> Factors:
        """Which dimensions of operands and results are split alike over a mesh; here: every operand must be whole."""
        return Factors([(None,) * a.ndim for a in avals], [(None,) * a.ndim for a in outs])

    def splits(self, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: dict[str, Any]) -> Splits:
        """How the results are split over a mesh, if an operand is."""
        return split_results(self, avals, outs, params)

    def around(self, params: dict[str, Any]) -> AbstractContextManager[None]:
        """What must hold while jaxprs among the params are rewritten."""
        return nullcontext()

    def operand_avals(self, params: dict[str, Any]) -> Sequence[ShapedArray]:
        """The types that the jaxprs of a higher-order primitive take; none if they need not vary as the operands do."""
        return params[self.called].in_avals if self.called else ()

    def shape_rule(self, *avals: ShapedArray, **params: Any) -> Any:
        self._missing("shape_rule", "(self, *avals, **params) -> aval")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        self._missing("jvp", "(self, primals, tangents, **params) -> (out, tangent_out)")

    def transpose(self, ct: Any, *operands: Any, **params: Any) -> Sequence[Any]:
        self._missing("transpose", "(self, ct, *operands, **params) -> cotangents")

    def batch(self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        self._missing("batch", "(self, axis, operands, dims, **params) -> (out, dim)")

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        self._missing("lower", "(self, ctx, *operands, **params) -> value")

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        """One operation an output element, every operand read and every output written once."""
        out = self.shape_rule(*avals, **params)
        outs = out if self.multiple_results else [out]
        moved = sum(a.nbytes for a in avals) + sum(a.nbytes for a in outs)
        return Cost(sum(a.size for a in outs), moved)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        """Like jvp, under a `TangentBuilder`, which parts known from linear by itself; so jvp's rule serves.

        A primitive with a jaxpr inside overrides it, to part that jaxpr too.
        """
        return self.jvp(primals, tangents, **params)

    def partial_eval(self, unknown: Sequence[bool], operands: Sequence[Any], **params: Any) -> Any:
        """Apply under a `TangentBuilder` when some operands are unknown; a jaxpr inside may be parted in two."""
        return self.bind(*operands, **params)

    def physical(self, operands: Sequence[Any], avals: Sequence[ShapedArray], **params: Any) -> Any:
        """Apply to random keys laid out as arrays of words, the words along a last dimension; outputs likewise.

        `avals` are the operands' types, keys as keys. None, as for all that only moves elements about, means: word by
        word, by the batch rule.
        """
        return None

    def dce(self, used: Sequence[bool], params: dict[str, Any]) -> tuple[list[bool], list[bool], dict] | None:
        """For some outputs unused: (operands kept, outputs kept, new params), or None to keep all."""
        return None

    def effects(self, params: dict[str, Any]) -> Effects:
        return no_effects

    def named_axes(self, params: dict[str, Any]) -> tuple[Any, ...]:
        """The named axes that the equation refers to."""
        return ()

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """What a printed equation shows of its params, in this order; what the types say already may be left out."""
        return dict(sorted(params.items()))

    def written(self, rule: str) -> Callable[..., Any] | None:
        """The function that gives a rule; None if there is none, or only one (`-> NoReturn`) that says why."""
        found = getattr(type(self), rule)
        refuses = found.__annotations__.get("return") == "NoReturn"
        return None if refuses or found is getattr(Primitive, rule) else found

    def _missing(self, rule: str, signature: str) -> NoReturn:
        file, line = definition(type(self))
        raise MissingRule(
            f"primitive '{self.name}' has no {rule} rule; write `def {rule}{signature}` "
            f"in class {type(self).__name__} at {file}:{line}"
        )

    def __repr__(self) -> str:
        return self.name


def definition(thing: Any) -> tuple[str, int]:
    """File and line where a class or function is written."""
    try:
        return inspect.getsourcefile(thing) or "?", inspect.getsourcelines(thing)[1]
    except (OSError, TypeError):
        return "?", 0
