# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.pallas.check.params import InterpretParams as InterpretParams
from xlamini.transforms.pallas.triton_barrier import debug_barrier as debug_barrier
from xlamini.transforms.pallas.triton_hints import max_contiguous as max_contiguous
from xlamini.transforms.pallas.triton_memory import (
    atomic_add as atomic_add, atomic_and as atomic_and, atomic_cas as atomic_cas, atomic_max as atomic_max,
    atomic_min as atomic_min, atomic_or as atomic_or, atomic_xchg as atomic_xchg, atomic_xor as atomic_xor,
    load as load, store as store,
)
from xlamini.transforms.pallas.triton_params import CompilerParams as CompilerParams
from xlamini.transforms.pallas.triton_values import approx_tanh as approx_tanh, dot as dot
