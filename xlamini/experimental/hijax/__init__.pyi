# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.core.program.avals import ShapedArray as ShapedArray
from xlamini.core.program.ref_types import AbstractRef as AbstractRef
from xlamini.core.program.tangents import Zero as Zero
from xlamini.transforms.custom.accumulators import (
    GradAccum as GradAccum, NullAccum as NullAccum, RefAccum as RefAccum, ValAccum as ValAccum,
)
from xlamini.experimental.hijax.boxes import (
    Box as Box, box_get as box_get, box_set as box_set, BoxTy as BoxTy, BoxTypeState as BoxTypeState,
    new_box as new_box,
)
from xlamini.experimental.hijax.batch_rules import (
    bdims_at_front as bdims_at_front, unmap_avals as unmap_avals, vmap_rule as vmap_rule,
)
from xlamini.experimental.hijax.derived_rules import (
    jvp_from_lin as jvp_from_lin, linearize_from_jvp as linearize_from_jvp, vjp_from_jvp as vjp_from_jvp,
    vjp_from_lin as vjp_from_lin,
)
from xlamini.experimental.hijax.low_level import HiPrimitive as HiPrimitive
from xlamini.experimental.hijax.mutable_types import (
    AvalMutableQDD as AvalMutableQDD, AvalQDD as AvalQDD, MutableHiType as MutableHiType,
    control_flow_allowed_effects as control_flow_allowed_effects,
)
from xlamini.experimental.hijax.primitive import HiPrim as HiPrim, VJPHiPrimitive as VJPHiPrimitive
from xlamini.experimental.hijax.tangents import (
    instantiate_zeros as instantiate_zeros, is_undefined_primal as is_undefined_primal,
)
from xlamini.experimental.hijax.types import (
    AbstractValue as AbstractValue, HiPspec as HiPspec, HiType as HiType, MappingSpec as MappingSpec,
    aval_method as aval_method, aval_property as aval_property, register_hitype as register_hitype,
)
from xlamini.numpy.ref_views import TransformedRef as TransformedRef
