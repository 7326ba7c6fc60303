"""Operations that return their operand: copy; stage; and stop_gradient, which has no derivative."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xlamini.core import Tracer, tree_map
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.sharding.facet import broadcast_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.primitives.base.dtype_kinds import ANY, EXTENDED
from xlamini.primitives.base.elementwise import Elementwise, elementwise
from xlamini.primitives.base.linear_map import JointlyLinear

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


class Copy(JointlyLinear):
    """The result of a program never shares memory with its arguments, so there is nothing to do."""

    def lower(self, ctx: Any, x: Any) -> Any:
        return x


@elementwise(family=Copy, accepts=ANY, flops=0)
def copy(x: Any) -> Any:
    """An array with the same elements in memory of its own."""


@copy.transposed
def _(ct: Any, x: Any) -> Any:
    return (ct,)


class StagedCopy(Copy):
    """Like a copy, but that a program has no equation where the value is in it already."""


@elementwise(family=StagedCopy, accepts=ANY, flops=0)
def stage_p(x: Any) -> Any:
    """An identity that only stages its operand."""


stage_p.name = "stage"
stage_p.transposed(lambda ct, x: (ct,))


def stage(x: Any, /) -> Any:
    """A number or an ndarray as an array: as a traced value while something is traced, else on the device.

    >>> stage(1)
    Array(1, dtype=int32, weak_type=True)
    """
    return x if type(x) is Tracer else stage_p.bind(x)


class StopGradient(Elementwise):
    """The operand, held constant under differentiation."""

    sharding: Sharding = broadcast_dimensions(linear=JOINTLY)
    checks = NO_NEW_NAN

    def lower(self, ctx: Any, x: Any) -> Any:
        return x


@elementwise(family=StopGradient, accepts=ANY | EXTENDED, flops=0)
def stop_gradient_p(x: Any) -> Any:
    """An identity with zero derivative."""


stop_gradient_p.name = "stop_gradient"
stop_gradient_p.derivatives(lambda x, out: 0)


@stop_gradient_p.transposed
def _(ct: Any, x: Any) -> Any:
    return (None,)  # a derivative that was told to ignore a part of its tangent


def stop_gradient(x: Any) -> Any:
    """Treat the arrays of a pytree as constants under grad, jvp and other derivatives.

    >>> xlamini.grad(lambda x: x * stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return tree_map(stop_gradient_p, x)
