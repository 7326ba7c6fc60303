# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.experimental.pallas import ops as ops, tpu as tpu, triton as triton
from xlamini.experimental.pallas.memory import load as load, store as store
from xlamini.core.program.kernels import (
    BlockDim as BlockDim, Blocked as Blocked, BoundedSlice as BoundedSlice, CostEstimate as CostEstimate,
    Element as Element, Squeezed as Squeezed,
)
from xlamini.numpy.creation import empty as empty, empty_like as empty_like
from xlamini.numpy.indexing.slices import Slice as Slice, ds as ds, dslice as dslice
from xlamini.numpy.refs import addupdate as addupdate, swap as swap
from xlamini.transforms.pallas.api import pallas_call as pallas_call
from xlamini.transforms.pallas.control_flow import loop as loop, when as when
from xlamini.transforms.pallas.cost import estimate_cost as estimate_cost
from xlamini.transforms.pallas.debug import debug_check as debug_check, debug_print as debug_print
from xlamini.transforms.pallas.grid import num_programs as num_programs, program_id as program_id
from xlamini.transforms.pallas.kernel import kernel as kernel
from xlamini.transforms.pallas.primitive import pallas_call_p as pallas_call_p
from xlamini.transforms.pallas.scratch import run_scoped as run_scoped
from xlamini.transforms.pallas.sizes import (
    align_to as align_to, cdiv as cdiv, next_power_of_2 as next_power_of_2,
)
from xlamini.transforms.pallas.specs import (
    ANY as ANY, BlockSpec as BlockSpec, Buffered as Buffered, GridSpec as GridSpec, MemoryRef as MemoryRef,
    MemorySpace as MemorySpace, no_block_spec as no_block_spec, squeezed as squeezed,
)
from xlamini.experimental.pallas.words import (
    broadcast_to as broadcast_to, reciprocal as reciprocal,
)
from xlamini.transforms.pallas.triton_hints import multiple_of as multiple_of
from xlamini.transforms.pallas.tune import Trial as Trial, Tuning as Tuning, tune as tune
