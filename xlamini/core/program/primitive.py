"""The contract of a primitive: a name, six rules, in this order, and three facets.

    shape_rule  avals in -> aval out (or a list of them); raises for operands that don't fit
    jvp         primals and tangents -> output and its tangent
    transpose   for linear operands: cotangent of the output -> cotangents of the operands
    batch       operands with a batch dimension -> output and where its batch dimension is
    lower       StableHLO values -> StableHLO values
    cost        flops and bytes

A facet is what one analysis asks of an operation, an object that is defined beside that analysis: `sharding`, `memory`
and `checks`. Families state them once. What only few primitives have is in bindable.py. A missing rule raises
`MissingRule`, which says what to write and where.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from xlamini.core.errors import MissingRule
from xlamini.core.errors.frames import definition
from xlamini.core.program.avals import Avals, Dims, Params, ShapedArray, Values
from xlamini.core.program.bindable import Bindable
from xlamini.core.program.checks import NONE
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import STORED
from xlamini.core.program.named_axes import Axis as Axis
from xlamini.core.sharding.facet import WHOLE


class Cost(NamedTuple):
    """The cost of one evaluation: floating-point operations, and bytes read and written.

    >>> from xlamini import extend
    >>> extend.cost_rule[lax.add_p](*[extend.ShapedArray((10,), "float32")] * 2)
    Cost(flops=10, bytes=120)
    """

    flops: int
    bytes: int


# Traits, to be combined by `|`.

PURE = 1
"""Its rules depend only on flags, params, literals and types, so their results are memoised.

A primitive with Python functions or jaxprs among its params is not pure: the memo would keep them alive.
"""
REMATERIALIZABLE = 2
"""Cheap enough that XLA should recompute it, fused into its consumers, rather than store it."""
ELEMENTWISE = 4
"""Each element of the result depends only on the elements of the operands at its position."""

RunBody = Callable[[Any, Sequence[Any], int | None], list[Any]]


class Primitive(Bindable):
    """One operation of the language. Subclass it, write the rules, make one instance.

    A new analysis gets a facet, or a table of its own, never one more member here.
    """

    name: str

    multiple_results = False
    traits = PURE
    """What holds of every equation of it, as an int: `PURE | REMATERIALIZABLE`."""
    sharding = WHOLE
    """How its results are split, summed and typed as its operands are."""
    memory = STORED
    """What XLA's loops do with its operands and results."""
    checks = NONE
    """What checked programs and the check of random keys ask of it."""
    lacks: Mapping[str, str] = {}
    """The rules that it does not have by design, each with the reason."""

    if TYPE_CHECKING:  # derived, so that no operation states them
        is_pure: bool
        expands: bool

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.is_pure = bool(cls.traits & PURE)
        cls.expands = cls.expand is not Primitive.expand

    def shape_rule(self, *avals: ShapedArray, **params: Any) -> Any:
        self._missing("shape_rule", "(self, *avals, **params) -> aval")

    def jvp(self, primals: Values, tangents: Values, /, **params: Any) -> Any:
        self._missing("jvp", "(self, primals, tangents, **params) -> (out, tangent_out)")

    def transpose(self, ct: Any, *operands: Any, **params: Any) -> Values:
        self._missing("transpose", "(self, ct, *operands, **params) -> cotangents")

    def batch(self, axis: Axis, operands: Values, dims: Dims, /, **params: Any) -> Any:
        self._missing("batch", "(self, axis, operands, dims, **params) -> (out, dim)")

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        self._missing("lower", "(self, ctx, *operands, **params) -> value")

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        """How a platform computes it, in terms of other primitives; None if `lower` emits it as it is."""
        return None

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        """By default one operation per output element, none if opaque; operands are read and outputs written once."""
        out = self.shape_rule(*avals, **params)
        outs = out if self.multiple_results else [out]
        moved = sum(a.nbytes for a in avals) + sum(a.nbytes for a in outs)
        return Cost(0 if self.checks.opaque else sum(a.size for a in outs), moved)

    def next_derivative(self, operands: Sequence[Values], out: Values, **params: Any) -> Any:
        """In Taylor mode, the result's derivative of order `len(out)`, where the jvp would make too long a program.

        Given are the derivatives from order 0 on: of each operand (only order 0 for a constant), and of the result.
        """
        self._missing("next_derivative", "(self, operands, out, **params) -> derivative")

    def expand(self, *operands: Any, **params: Any) -> Any:
        """The results, by other primitives; what the rule captures becomes an input of the program."""
        self._missing("expand", "(self, *operands, **params) -> results")

    def shown_params(self, params: Params) -> Params:
        """The params that a printed equation shows, in order; a rule may leave out those that the types imply."""
        return dict(sorted(params.items()))

    def written(self, rule: str) -> Callable[..., Any] | None:
        """The function that implements a rule; None if it is missing, or only raises (`-> NoReturn`).

        A form on every platform (`-> Form`) stands in for `lower`.
        """
        found = getattr(type(self), rule, None)
        if found is Primitive.lower and type(self).form.__annotations__["return"] == "Form":
            return type(self).form
        refuses = getattr(found, "__annotations__", {}).get("return") == "NoReturn"
        return None if refuses or found is getattr(Primitive, rule, None) else found

    def _missing(self, rule: str, signature: str) -> NoReturn:
        file, line = definition(type(self))
        raise MissingRule(
            f"primitive '{self.name}' has no {rule} rule; write `def {rule}{signature}` "
            f"in class {type(self).__name__} at {file}:{line}"
        )


class CallLike(Primitive):
    """A primitive that calls one jaxpr, on its operands as they are, and returns the jaxpr's outputs."""

    called: str
    """The param that holds the jaxpr."""
    shares_names = False
    """Whether the jaxpr is printed with the call site's variable names for its inputs and outputs."""

    def operand_avals(self, params: Params) -> Avals:
        return params[self.called].in_avals

    def is_nested(self, params: Params) -> bool:
        return False

    def widened(self, ins: Sequence[int], outs: Sequence[int], params: Params) -> Params:
        return params

    def has_own_jvp(self, params: Params) -> bool:
        """Whether its tangents are what a rule says, not those of the jaxpr."""
        return False

    def unroll(self, run: RunBody, operands: Values, params: Params) -> Sequence[Any] | None:
        return run(params[self.called], operands, None)
