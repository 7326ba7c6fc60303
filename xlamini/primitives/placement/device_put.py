"""The primitive behind `device_put` in a program: it moves a value between the device's memory and the host's."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from xlamini.core import ELEMENTWISE, PURE, Avals, Dims, Params, ShapedArray, Values, aval_of
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory_space import Space
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.primitives.base.linear_unary import LinearUnary
from xlamini.primitives.placement.reshard import reshard_as

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


class DevicePut(LinearUnary):
    """The operand in another memory space.

    Compilers of GPUs and TPUs insert the copy. On the CPU both memories are the same RAM, so only the results of a
    program are labelled, by its types (lowering/module.py).
    """

    traits = PURE | ELEMENTWISE
    name = "device_put"
    sharding: Sharding = same_dimensions(linear=JOINTLY, chooses_memory=True)

    def shape_rule(self, x: ShapedArray, *, memory_space: Space) -> ShapedArray:
        return x.in_space(memory_space)

    def transpose(self, ct: Any, x: Any, *, memory_space: Space) -> Values:
        return [in_space(ct, x.aval.memory_space)]

    def batch(self, axis: Any, operands: Values, dims: Dims, *, memory_space: Space) -> tuple[Any, int | None]:
        return self.bind(*operands, memory_space=memory_space), dims[0]

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        return Form(lambda x: x) if platform.name == "cpu" else None

    def lower(self, ctx: Any, x: Any, *, memory_space: Space) -> Any:
        return ctx.op(
            "stablehlo.custom_call",
            x,
            call_target_name='"annotate_device_placement"',
            has_side_effect=True,  # so that it is not removed, as an identity would be
            **{"mhlo.frontend_attributes": f'{{_xla_buffer_placement = "{memory_space.value}"}}'},
        )

    def shown_params(self, params: Params) -> Params:
        return {"memory_space": params["memory_space"].name}


device_put_p: Final = DevicePut()


def in_space(x: Any, space: Space) -> Any:
    """A value of a program in a memory space; itself if it is there."""
    return x if aval_of(x).memory_space is space else device_put_p.bind(x, memory_space=space)


def placed_as(x: Any, aval: ShapedArray) -> Any:
    """A value with the sharding and the memory space of a type."""
    own = aval_of(x)
    if own.explicit_sharding is aval.explicit_sharding and own.memory_space is aval.memory_space:
        return x
    return in_space(reshard_as(x, aval.explicit_sharding), aval.memory_space)
