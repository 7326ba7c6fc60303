"""The contract of a primitive: a name and six rules, in this order.

    shape_rule  avals in -> aval out (or a list of them); raises for operands that don't fit
    jvp         primals and tangents -> output and its tangent
    transpose   for linear operands: cotangent of the output -> cotangents of the operands
    batch       operands with a batch dimension -> output and where its batch dimension is
    lower       StableHLO values -> StableHLO values
    cost        flops and bytes

A missing rule raises `MissingRule`, which says what to write and where.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, NoReturn

from xlamini.core import hooks
from xlamini.core.avals import Avals, Dims, Params, ShapedArray, Values
from xlamini.core.effects import Effects, no_effects
from xlamini.core.errors import MissingRule
from xlamini.core.failures import Failure
from xlamini.core.form import Form, Platform
from xlamini.core.frames import definition
from xlamini.core.key_uses import NO_USES, KeyUses
from xlamini.core.memory_space import Space, common_space
from xlamini.core.named_axes import Axis as Axis
from xlamini.core.sharding.factors import Factors
from xlamini.core.sharding.partial_sums import Groups, Sums, sums_of_results
from xlamini.core.sharding.propagation import Splits, split_results
from xlamini.core.state import state


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
HAS_OWN_SHARDING_RULE = 8
"""It chooses its results' sharding itself, whatever the operands' shardings are."""
IS_VMA_CAST = 16
"""It changes the manual axes along which a value varies (vma), so its operands are never cast."""
MOVES = 64
"""Each element of the result is one of an operand's, or a constant, so that a loop may compute it where it reads it."""
READS = 128
"""A loop over its operands: XLA computes these inside of it where that is cheap."""
VIEW = 256
"""Its result is its operand's memory in another shape."""
PERMUTES = 512
"""Its result is its operand with the dimensions in another order, which a product reads as it lies in memory."""
PRODUCT = 1024
"""It reads an operand that `PERMUTES` made without a copy."""
CONTRACTS = 2048
"""A sum of products, for which accelerators have matrix units; its param `precision` says how operands are rounded."""

UPDATES = 4096
"""It writes into its first operand, whose memory the result takes if nothing reads the operand later."""

INDEXES = 8192
"""It reads its first operand at places that the other operands say."""
JOINS = 16384
"""Its result consists of its operands, side by side."""
DIVIDES = 65536
"""It divides its first operand by the second one."""

primitives: list[Primitive] = []
RunBody = Callable[[Any, Sequence[Any], int | None], list[Any]]


class Primitive:
    """One operation of the language. Subclass it, write the rules, make one instance."""

    name: str
    multiple_results = False
    higher_order = False
    jaxpr_names: Mapping[str, str] = {}
    """In an equation's id, what stands for each param that is a jaxpr or a tuple of jaxprs, in the order of a run."""
    """Whether its params contain jaxprs."""
    traits = PURE
    """What holds of every equation of it, as an int: `PURE | REMATERIALIZABLE`."""
    call_primitive = map_primitive = False
    """JAX's marks of older kinds of calls, of which there are none."""
    linear: Groups = ()
    """The groups of operands in each of which it is linear jointly, and so takes unreduced ones (partial_sums.py)."""
    maps_each = False
    """Whether it returns each operand, in order, so that none has to fit another."""
    mixes_reduced = False
    """Whether its operands may be reduced along different axes; its results are then reduced along none."""
    lacks: Mapping[str, str] = {}
    """The rules that it does not have by design, each with the reason."""

    consumes_keys = False
    """Whether its rule `key_uses` says that it consumes random keys."""

    expands = False
    """Whether its rule `expand` replaces its equations before lowering (interpreters/expand.py)."""
    makes_nan = True
    """Whether a result may be NaN, or infinite, where no operand is; what only moves or picks elements makes none."""
    keeps_nan = False
    """Whether some result is NaN wherever an operand has a NaN, so that a check of the results is one of the operands.

    That is said of results that are floating-point numbers and not empty.
    """
    eager_only = False
    """Whether it has only an implementation in Python, so that no program with it can be compiled."""
    given: Mapping[str, Any] = {}
    """The rules that were given to this instance from outside of its class, by name (xlamini/extend)."""

    is_bound = False
    """Whether there has been an equation of it, from which rewrites may have been derived."""
    is_pure = True
    """Whether the class's traits include PURE."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.is_pure = bool(cls.traits & PURE)  # for `Builder.emit`, which reads it for every equation

    def __init__(self, name: str | None = None):
        if name is not None:
            self.name = name
        self.executables: dict[Any, Any] = {}
        primitives.append(self)
        hooks.primitive_made(self)

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Apply the primitive: add an equation to the active builder, or evaluate eagerly without one."""
        builder = state.builder
        if builder is None:
            return hooks.evaluate(self, operands, params)
        return builder.emit(self, operands, params)

    def get_bind_params(self, params: Params) -> Params:
        """The params that `bind` takes after an equation's operands, to evaluate the equation again."""
        return dict(params)

    def varying(self, vma: frozenset[Any], params: Params) -> frozenset[Any] | None:
        """The results' varying manual axes, where `vma` are the operands'; None: those of `shape_rule`'s types."""
        return vma

    def factors(self, avals: Avals, outs: Avals, params: Params) -> Factors:
        """Which dimensions of operands and results share a sharding; by default, no operand may be split."""
        return Factors([(None,) * a.ndim for a in avals], [(None,) * a.ndim for a in outs])

    def splits(self, avals: Avals, outs: Avals, params: Params) -> Splits:
        """The results' shardings, where an operand is sharded along explicit axes."""
        return split_results(self, avals, outs, params)

    def memory_space(self, avals: Avals, params: Params) -> Space | None:
        """The results' memory space, if an operand is not in the device's; None: those of `shape_rule`'s types."""
        return common_space(avals)

    def is_nested(self, params: Params) -> bool:
        """Whether the jaxprs among the params are compiled as the body of a loop or a branch, not inlined."""
        return self.higher_order

    def linear_groups(self, avals: Avals, params: Params) -> Groups:
        """`linear`, where it depends on the types of the operands or on params."""
        return self.linear

    def sums(self, avals: Avals, outs: Avals, params: Params) -> Sequence[Sums]:
        """The axes along which each result is unreduced and reduced, for operands that fit."""
        return [sums_of_results(self, avals)] * len(outs)

    def around(self, params: Params) -> AbstractContextManager[None]:
        """The context in which the jaxprs among the params are rewritten."""
        return nullcontext()

    def operand_avals(self, params: Params) -> Avals:
        """The input types of a higher-order primitive's jaxprs; none if their vma may differ from the operands'."""
        return ()

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

    def form(self, platform: Platform, avals: Avals, params: Params) -> Form | None:
        """How it is computed on a platform, in terms of other primitives; None if `lower` emits it as it is."""
        return None

    def workspace(self, platform: str, avals: Avals, outs: Avals, /, **params: Any) -> int:
        """The bytes that XLA's implementation takes beside operands and results."""
        return 0

    opaque = False
    """Whether it runs code that is not known here, such as a callback, so that its operations cannot be counted."""

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        """By default one operation per output element, none if opaque; operands are read and outputs written once."""
        out = self.shape_rule(*avals, **params)
        outs = out if self.multiple_results else [out]
        moved = sum(a.nbytes for a in avals) + sum(a.nbytes for a in outs)
        return Cost(0 if self.opaque else sum(a.size for a in outs), moved)

    def linearize(self, primals: Values, tangents: Values, /, **params: Any) -> Any:
        """jvp under a `TangentBuilder`, which separates the linear program from the primal one.

        A higher-order primitive overrides it, because its jaxprs must be split too.
        """
        return self.jvp(primals, tangents, **params)

    def partial_eval(self, unknown: Sequence[bool], operands: Values, /, **params: Any) -> Any:
        """Apply under a `TangentBuilder` with some operands unknown; a jaxpr among the params may be split in two."""
        return self.bind(*operands, **params)

    def physical(self, operands: Values, avals: Avals, /, **params: Any) -> Any:
        """Apply to the physical arrays of random keys, which have the words of a key along a last dimension.

        `avals` are the logical types of the operands. None means that the batch rule applies the primitive to each
        word, which is right for all primitives that only move elements.
        """
        return None

    def dce(self, used: Sequence[bool], params: Params) -> tuple[list[bool], list[bool], dict] | None:
        """With some outputs unused: (operands that stay, outputs that stay, new params); None if all stay."""
        return None

    def next_derivative(self, operands: Sequence[Values], out: Values, **params: Any) -> Any:
        """In Taylor mode, the result's derivative of order `len(out)`, where the jvp would make too long a program.

        Given are the derivatives from order 0 on: of each operand (only order 0 for a constant), and of the result.
        """
        self._missing("next_derivative", "(self, operands, out, **params) -> derivative")

    def failures(self, operands: Values, outs: Values, /, **params: Any) -> Sequence[Failure]:
        """What a checked program looks at beside NaN: a division by zero, an index out of bounds."""
        return ()

    def checked(self, errors: frozenset[str], operands: Values, /, **params: Any) -> Any:
        """The results and the errors (interpreters/check.py), for a primitive whose jaxprs are checked too."""
        self._missing("checked", "(self, errors, operands, **params) -> (outs, part)")

    def effects(self, params: Params) -> Effects:
        return no_effects

    def expand(self, *operands: Any, **params: Any) -> Any:
        """The results, by other primitives; what the rule captures becomes an input of the program."""
        self._missing("expand", "(self, *operands, **params) -> results")

    def widened(self, ins: Sequence[int], outs: Sequence[int], params: Params) -> Params:
        """The params where operands and results of users' types become the arrays that they are made of.

        `ins` and `outs` are the numbers of arrays in place of each operand and result (interpreters/expand.py).
        """
        self._missing("widened", "(self, ins, outs, params) -> params")

    def expands_on(self, avals: Avals, params: Params) -> bool:
        """Whether it `expands` for these operands and params."""
        return True

    def unroll(self, run: RunBody, operands: Values, params: Params) -> Sequence[Any] | None:
        """The results, from its jaxprs run one after another for operands whose values are known; None if it has none.

        `run(jaxpr, operands, iteration)` gives the results of a jaxpr; `iteration` is that of a loop, else None.
        """
        return None

    def effects_on(self, avals: Avals, params: Params) -> Effects:
        """`effects`, where they depend on the types of the operands."""
        return self.effects(params)

    def reads_cotangents(self, params: Params) -> bool:
        """Whether the transpose rule takes cotangents as arrays, where they are known."""
        return False

    def named_axes(self, params: Params) -> tuple[Any, ...]:
        """The named axes that the equation refers to."""
        return ()

    def key_uses(self, eqn: Any) -> KeyUses:
        """Which random keys among its operands an equation consumes, and which results are parts of them."""
        return NO_USES

    def shown_name(self, params: Params) -> str:
        """The name that a printed equation shows."""
        return self.name

    def shown_params(self, params: Params) -> Params:
        """The params that a printed equation shows, in order; a rule may leave out those that the types imply."""
        return dict(sorted(params.items()))

    def written(self, rule: str) -> Callable[..., Any] | None:
        """The function that implements a rule; None if it is missing, or only raises (`-> NoReturn`).

        A form on every platform (`-> Form`) stands in for `lower`.
        """
        found = getattr(type(self), rule)
        if found is Primitive.lower and type(self).form.__annotations__["return"] == "Form":
            return type(self).form
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
