"""The base class of callback primitives, whose equations call a Python function on the host.

A batched callback is one host call of the program, which loops over the examples in Python. The param `mapped` has, for
each vmap, innermost first, the batch size and a mask of the operands that are stacked along axis 0.
"""
from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from xlamini.core import Avals, Axis, Dims, Literal, Params, Primitive, ShapedArray, Tracer, Values, leaked
from xlamini.core.errors.frames import user_line
from xlamini.core.program.checks import Checks
from xlamini.core.sharding.facet import unrelated_dimensions
from xlamini.core.tracing.state import state
from xlamini.lowering.host_calls import host_call
from xlamini.primitives import with_batch_first
from xlamini.runtime import device_put_value, key_words
from xlamini.runtime.execution.callbacks import HostCall
from xlamini.runtime.meshes.program_placement import replicated_on
from xlamini.staging import ArgNames
from xlamini.staging.compile.placement import placement
from xlamini.transforms.callbacks.host_function import HostFunction

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


Mapped = tuple[tuple[int, tuple[bool, ...]], ...]


class Callback(Primitive):
    """A call of `callback`, whose results are of the types `result_avals` for each example."""

    traits = 0
    multiple_results = True
    sharding: Sharding = unrelated_dimensions()
    checks: Checks = Checks(opaque=True)
    lacks: Mapping[str, str] = {"jvp": "a Python function has no derivative", "transpose": "not linear"}
    side_effect = True
    face: str
    """The API name, for error messages."""

    def bind(self, *operands: Any, **params: Any) -> list[Any]:
        return super().bind(*operands, **params) if state.builder is not None else self._now(operands, **params)

    def shape_rule(self, *avals: ShapedArray, result_avals: Any, mapped: Mapped, **params: Any) -> list[ShapedArray]:
        sizes = tuple(size for size, _ in reversed(mapped))
        return [a.update(shape=(*sizes, *a.shape)) for a in result_avals]

    def jvp(self, primals: Any, tangents: Any, *, callback: HostFunction, **params: Any) -> NoReturn:
        raise ValueError(
            f"{self.face}: {callback} is a Python function, which cannot be differentiated; give what calls it a "
            "derivative with custom_jvp or custom_vjp, or take its arguments out of the derivative with "
            "lax.stop_gradient"
        )

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, mapped: Mapped, **params: Any
    ) -> Any:
        stacked = tuple(d is not None for d in dims)
        first = with_batch_first(operands, dims, axis.size, stacked)
        outs = self.bind(*first, mapped=(*mapped, (axis.size, stacked)), **params)
        return outs, [0] * len(outs)

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        place = ctx.eqn.provenance.describe()
        call = self.host_call(place, **params)
        return host_call(ctx, call, operands, params.get("ordered", False), self.side_effect)

    def physical(self, operands: Values, avals: Avals, **params: Any) -> Any:
        """The callback takes the uint32 words of a random key."""
        return self.bind(*operands, **params)

    def shown_params(self, params: Params) -> Params:
        return {k: v for k, v in sorted(params.items()) if k not in ("mapped", "result_avals") or (k == "mapped" and v)}

    def _now(self, operands: Values, **params: Any) -> list[Any]:
        """Call the function eagerly, and put its results on the operands' device."""
        names = ArgNames(params["callback"].fun, params["callback"].in_tree)
        where = placement(operands, names, self.face)
        call = self.host_call(user_line(), **params)
        results = call.now([_value(x) for x in operands])
        return [device_put_value(x, replicated_on(where.device), committed=where.committed) for x in results]

    def host_call(self, place: str, *, callback: Any, result_avals: Any, mapped: Mapped, **params: Any) -> HostCall:
        """The host call for XLA; `place` is the user's source line, for error messages."""
        run = functools.partial(_looped, callback, result_avals, mapped)
        return HostCall(run, f"{self.face}: {callback}", place)


def _value(x: Any) -> np.ndarray:
    """The value of an operand as a NumPy array."""
    if type(x) is Tracer:
        raise leaked(x)
    if type(x) is Literal:
        return np.asarray(x.val, x.aval.dtype)
    return np.asarray(key_words(x) if isinstance(x, np.ndarray) or hasattr(x, "aval") else device_put_value(x))


def _looped(
    callback: HostFunction, avals: Avals, mapped: Mapped, operands: Values
) -> list[np.ndarray]:
    """The results of the callback for all examples, stacked."""
    if not mapped:
        return callback(operands, avals)
    *inner, (size, stacked) = mapped
    sizes = tuple(n for n, _ in reversed(mapped))
    outs = [np.empty((*sizes, *a.shape), a.dtype) for a in avals]
    for i in range(size):
        example = [x[i] if s else x for x, s in zip(operands, stacked, strict=True)]
        for out, result in zip(outs, _looped(callback, avals, tuple(inner), example), strict=True):
            out[i] = result
    return outs
