"""What backward rules put cotangents into, in place of returning them: an accumulator for each leaf of an argument."""
from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from xlamini.core import (
    ShapedArray,
    Zero,
    aval_of,
    cotangent_aval,
    flatten_from_user,
    is_zero,
    register_pytree_node,
    unflatten,
)
from xlamini.core.program.hi_types import as_written
from xlamini.primitives.base.tangent_ops import add_tangents


class GradAccum:
    """The cotangent of one leaf of an argument, whose type is `aval`; `accum(ct)` adds to it.

    None and symbolic zeros add nothing.

    >>> isinstance(ValAccum(xlamini.typeof(1.0)), GradAccum)
    True
    """

    def __init__(self, aval: ShapedArray, val: Any = None):
        self._aval = aval
        self.val: Any = Zero(cotangent_aval(aval)) if val is None else val

    @property
    def aval(self) -> Any:
        return as_written(self._aval)

    def accum(self, x: Any) -> None:
        """Add a cotangent."""
        if x is not None and not is_zero(x):
            self._add(x)

    def freeze(self) -> Any:
        """The sum, a symbolic zero if nothing was added."""
        return self.val

    def _add(self, ct: Any) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"


class ValAccum(GradAccum):
    """A cotangent that is a value.

    >>> acc = ValAccum(xlamini.typeof(1.0))
    >>> acc.accum(2.0), acc.accum(3.0), float(acc.freeze())
    (None, None, 5.0)
    """

    val: Any

    def _add(self, ct: Any) -> None:
        self.val = add_tangents(self.val, ct)


class NullAccum(GradAccum):
    """The cotangent of an argument that is not differentiated: what is added is dropped, and need not be computed.

    >>> acc = NullAccum(xlamini.typeof(1.0))
    >>> acc.accum(2.0), acc.val
    (None, Zero(f32[]))
    """

    def _add(self, ct: Any) -> None:
        pass


class RefAccum(GradAccum):
    """A cotangent that is added to a ref, `acc.ref`.

    No rule is given one: a rule adds values, and the pullback of `vjp` adds the sum to the ref of `with_refs`.

    >>> acc = RefAccum(xlamini.typeof(1.0), xlamini.new_ref(1.0))
    >>> acc.accum(2.0), acc.ref[...]
    (None, Array(3., dtype=float32))
    """

    def __init__(self, aval: ShapedArray, ref: Any):
        super().__init__(aval)
        self.ref = ref

    def _add(self, ct: Any) -> None:
        self.ref[...] += ct

    def freeze(self) -> Any:
        return self.ref[...]


class ArgumentTypes(NamedTuple):
    """The types of a call's arguments, as a pytree node without leaves, so that a rule may have it among residuals."""

    tree: Any
    avals: tuple[ShapedArray, ...]
    perturbed: tuple[bool, ...]

    @classmethod
    def of(cls, args: Sequence[Any]) -> ArgumentTypes:
        """Those of these arguments; leaves may be what `symbolic_zeros` makes of them."""
        leaves, tree = flatten_from_user(tuple(args))
        avals = tuple(aval_of(getattr(x, "value", x)) for x in leaves)
        return cls(tree, avals, tuple(getattr(x, "perturbed", True) for x in leaves))

    def cotangents(self, rule: Callable[..., Any]) -> tuple[Any, ...]:
        """Those of the arguments, which `rule(*accumulators)` puts into accumulators; None for zeros."""
        pairs = zip(self.avals, self.perturbed, strict=True)
        accumulators = [(ValAccum if perturbed else NullAccum)(aval) for aval, perturbed in pairs]
        rule(*unflatten(self.tree, accumulators))
        found = [a.freeze() for a in accumulators]
        return unflatten(self.tree, [None if is_zero(ct) else ct for ct in found])


register_pytree_node(ArgumentTypes, lambda types: ((), tuple(types)), lambda fields, _: ArgumentTypes(*fields))


def with_accumulators(
    fwd: Callable[..., Any], bwd: Callable[..., Any], nondiff: Collection[int]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The rules of a custom_vjp function whose `bwd(residuals, cotangent, *accumulators)` returns no cotangents."""

    @functools.wraps(fwd)
    def fwd_with_types(*args: Any) -> tuple[Any, Any]:
        out, residuals = fwd(*args)
        return out, (residuals, ArgumentTypes.of([x for i, x in enumerate(args) if i not in nondiff]))

    @functools.wraps(bwd)
    def bwd_to_values(*args: Any) -> tuple[Any, ...]:
        *fixed, (residuals, types), ct = args
        return types.cotangents(functools.partial(bwd, *fixed, residuals, ct))

    return fwd_with_types, bwd_to_values
