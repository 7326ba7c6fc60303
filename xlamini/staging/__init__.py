"""Private: the life of a program. It is traced, called, compiled and run, or compiled ahead of time."""

from xlamini.staging.call.higher_order import (
    HigherOrder,
    Mask,
    chosen,
    cost_of,
    given,
    inverse,
    merged,
    nonzero_of,
    with_none,
    with_zeros,
)
from xlamini.staging.run.eager.composite import composite
from xlamini.staging.run.eager.program_cache import transformed
from xlamini.staging.run.jit.jit_api import jit
from xlamini.staging.trace.arguments import (
    ArgNames,
    LeafNames,
    avals_of,
    check_callable,
    check_values,
    checked_avals,
    describe_as,
    has_refs,
    name_of,
    replaced,
)
from xlamini.staging.trace.ref_threading import Cells, retry_with_refs, store, threaded, values_of
from xlamini.staging.trace.tracing import Trace, rebuilt
