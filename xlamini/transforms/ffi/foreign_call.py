"""The base class of primitives that call code outside XLA, which no rewrite can look into."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from xlamini.core import Avals, Axis, Dims, Effects, Params, Primitive, ShapedArray, Values
from xlamini.core.program.checks import Checks
from xlamini.core.program.effects import Effect, no_effects
from xlamini.core.sharding.facet import unrelated_dimensions
from xlamini.primitives import move_batch_dim
from xlamini.transforms.callbacks.vmap_methods import ONE_BY_ONE, no_method, stacked
from xlamini.transforms.scan.api import scan

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


_OPAQUE = "the code that is called is not known to the library"


class ForeignCall(Primitive):
    """A call with results of the types `result_avals`; some overwrite an operand (`input_output_aliases`)."""

    multiple_results = True
    sharding: Sharding = unrelated_dimensions()
    checks: Checks = Checks(opaque=True)
    lacks: Mapping[str, str] = {"jvp": _OPAQUE, "transpose": _OPAQUE}
    effect: Effect
    """The effect of a call with `has_side_effect`."""

    def name_of_call(self, params: Mapping[str, Any]) -> str:
        """A name for the called function, for messages."""
        raise NotImplementedError

    def shape_rule(self, *avals: ShapedArray, result_avals: Any, **params: Any) -> list[ShapedArray]:
        return list(result_avals)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> NoReturn:
        self._refuse(params)

    def transpose(self, ct: Any, *operands: Any, **params: Any) -> NoReturn:
        self._refuse(params)

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        method = params["vmap_method"]
        if method is None:
            raise no_method(self.name, self.name_of_call(params))
        if method in ONE_BY_ONE:
            outs = self._in_turn(axis.size, operands, dims, params)
        else:
            operands, dims = _with_aliased(axis.size, operands, dims, params["input_output_aliases"])
            mapped = [d is not None or method != "legacy_vectorized" for d in dims]
            params = self.stacked_params(axis.size, mapped, params)
            outs = self.bind(*stacked(method, operands, dims, axis.size), **params)
        return outs, [0] * len(outs)

    def stacked_params(self, size: int, mapped: Sequence[bool], params: Mapping[str, Any]) -> Params:
        """The params of one call for `size` examples, where the operands marked in `mapped` have an axis in front."""
        results = tuple(a.update(shape=(size, *a.shape)) for a in params["result_avals"])
        return {**params, "result_avals": results}

    def physical(self, operands: Values, avals: Avals, **params: Any) -> Any:
        """The function takes the uint32 words of a random key."""
        return self.bind(*operands, **params)

    def effects(self, avals: Avals, params: Params) -> Effects:
        return frozenset([self.effect]) if params["has_side_effect"] else no_effects

    def shown_params(self, params: Params) -> Params:
        return {k: v for k, v in sorted(params.items()) if v or k == "vmap_method"}

    def _in_turn(self, size: int, operands: Values, dims: Dims, params: Mapping[str, Any]) -> Values:
        """The results of a call for each example, in a loop."""
        unroll = params["vmap_method"] == "sequential_unrolled"
        examples = [move_batch_dim(x, size, d, 0) for x, d in zip(operands, dims, strict=True) if d is not None]

        def call(carry: tuple[()], slices: Sequence[Any]) -> tuple[tuple[()], Any]:
            rest = iter(slices)
            each = [x if d is None else next(rest) for x, d in zip(operands, dims, strict=True)]
            return carry, self.bind(*each, **params)

        return scan(call, (), examples, unroll=unroll or 1)[1]

    def _refuse(self, params: Mapping[str, Any]) -> NoReturn:
        raise ValueError(
            f"{self.name}: {self.name_of_call(params)} cannot be differentiated; give what calls it a derivative with "
            "custom_vjp or custom_jvp, or take its arguments out of the derivative with lax.stop_gradient"
        )


def _with_aliased(
    size: int, operands: Values, dims: Dims, aliases: Sequence[tuple[int, int]]
) -> tuple[list[Any], list[int | None]]:
    """The operands with each aliased one repeated for all examples, because its result is of that shape."""
    operands, dims = list(operands), list(dims)
    for i, _ in aliases:
        operands[i], dims[i] = move_batch_dim(operands[i], size, dims[i], 0), 0
    return operands, dims
