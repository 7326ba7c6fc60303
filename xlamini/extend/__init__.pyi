# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.extend.primitive import Primitive as Primitive
from xlamini.extend.rules import (
    batch_rule as batch_rule, cost_rule as cost_rule, dce_rule as dce_rule, effects_rule as effects_rule,
    expand_rule as expand_rule, implementation as implementation, jvp_rule as jvp_rule, lower_rule as lower_rule,
    shape_rule as shape_rule, sharding_rule as sharding_rule, transpose_rule as transpose_rule,
)
