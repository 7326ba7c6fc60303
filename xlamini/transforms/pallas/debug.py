"""What helps to debug kernels: values printed, and conditions that the checking interpreter checks."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Axis, Cost, Dims, Effects, Params, Primitive, ShapedArray, Values, aval_of
from xlamini.core.program.effects import Effect
from xlamini.transforms.callbacks.debug import debug_print as _debug_print

_effect = Effect("DebugCheck", observing=True)


def debug_print(fmt: str, *args: Any) -> None:
    """Print values from inside of a kernel, where it runs on the CPU.

    The format has a `{}` for each value; without any, the values come after it.

    >>> def kernel(x, o):
    ...     debug_print("x is", x[0])
    ...     o[...] = x[...]
    >>> pl.pallas_call(kernel, xlamini.ShapeDtypeStruct((2,), "float32"))(jnp.float32([3.0, 4.0]))
    x is 3.0
    Array([3., 4.], dtype=float32)
    """
    has_places = "{" in fmt.replace("{{", "")
    _debug_print(fmt if has_places else " ".join([fmt, *["{}"] * len(args)]), *args)


def debug_check(condition: Any, message: str) -> None:
    """State that a condition holds in a kernel: with `interpret=InterpretParams()` a KernelCheckError if it does not.

    Other runs ignore it.

    >>> def kernel(x, o):
    ...     debug_check(x[0] > 0, "x begins with a positive number")
    ...     o[...] = x[...]
    >>> out = xlamini.ShapeDtypeStruct((2,), "float32")
    >>> pl.pallas_call(kernel, out, interpret=pltpu.InterpretParams())(jnp.float32([-1.0, 2.0]))
    Traceback (most recent call last):
        ...
    xlamini.core.errors.kernel_errors.KernelCheckError: kernel kernel, program (): debug_check failed: x begins with ...
    """
    aval = aval_of(condition)
    if aval.dtype != np.bool_:
        raise TypeError(f"debug_check: the condition must be a bool, got {aval.str_short(short_dtypes=False)}; compare")
    debug_check_p.bind(condition, message=str(message))


class DebugCheck(Primitive):
    """A condition that holds, which only the checking interpreter looks at."""

    name = "debug_check"
    multiple_results = True
    lacks: Mapping[str, str] = {"transpose": "it has no results"}

    def shape_rule(self, condition: ShapedArray, *, message: str) -> list[ShapedArray]:
        return []

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        return self.bind(*primals, **params), []

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        return self.bind(*operands, **params), []

    def lower(self, ctx: Any, condition: Any, *, message: str) -> list[Any]:
        return []

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        return Cost(0, 0)

    def effects(self, avals: Avals, params: Params) -> Effects:
        return frozenset([_effect])


debug_check_p: Final = DebugCheck()
