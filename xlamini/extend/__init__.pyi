# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.core.program.avals import ShapedArray as ShapedArray
from xlamini.core.program.effects import Effect as Effect
from xlamini.core.program.evaluation import eval_jaxpr as eval_jaxpr, jaxpr_as_fun as jaxpr_as_fun
from xlamini.core.program.jaxpr import (
    Atom as Atom, ClosedJaxpr as ClosedJaxpr, Equation as Equation, Jaxpr as Jaxpr, jaxprs_in as jaxprs_in,
    Literal as Literal, Var as Var,
)
from xlamini.core.program.primitive import Axis as Axis, Cost as Cost
from xlamini.core.sharding.factors import (
    alike as alike, broadcasting as broadcasting, Factors as Factors, in_front as in_front, reducing as reducing,
)
from xlamini.core.caching.memo import clear_caches as clear_caches
from xlamini.core.tracing.tracer import Tracer as Tracer
from xlamini.core.dtypes.table import ExtendedDType as ExtendedDType
from xlamini.extend.dtypes import define_dtype as define_dtype, packed as packed, unpacked as unpacked
from xlamini.extend.interface import version as version
from xlamini.extend.key_impls import define_key_impl as define_key_impl
from xlamini.extend.primitive import Primitive as Primitive
from xlamini.extend.rule_tables import RuleTable as RuleTable
from xlamini.extend.rules import (
    batch_rule as batch_rule, cost_rule as cost_rule, dce_rule as dce_rule, effects_rule as effects_rule,
    expand_rule as expand_rule, implementation as implementation, jvp_rule as jvp_rule,
    linearize_rule as linearize_rule, lower_rule as lower_rule, partial_eval_rule as partial_eval_rule,
    shape_rule as shape_rule, sharding_rule as sharding_rule, transpose_rule as transpose_rule,
)
from xlamini.extend.tangents import (
    instantiated as instantiated, is_differentiated as is_differentiated, is_linear as is_linear, is_zero as is_zero,
    Linear as Linear, sum_of_tangents as sum_of_tangents, Zero as Zero,
)
from xlamini.extend.tracing import (
    PartialTrace as PartialTrace, program_of as program_of, trace_is_clean as trace_is_clean, trace_of as trace_of,
    trace_partly as trace_partly, trace_state as trace_state, TraceState as TraceState, Unknown as Unknown,
)
from xlamini.staging.call.call import jit_p as jit_p
