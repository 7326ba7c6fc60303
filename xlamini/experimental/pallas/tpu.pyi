# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.pallas.check.params import InterpretParams as InterpretParams
from xlamini.transforms.pallas.specs import (
    ANY as ANY, HBM as HBM, MemorySpace as MemorySpace, PrefetchScalarGridSpec as PrefetchScalarGridSpec, SMEM as SMEM,
    VMEM as VMEM,
)
from xlamini.transforms.pallas.tpu_params import (
    ARBITRARY as ARBITRARY, PARALLEL as PARALLEL, CompilerParams as CompilerParams,
    GridDimensionSemantics as GridDimensionSemantics,
)
from xlamini.experimental.pallas.tpu_words import bitcast as bitcast, roll as roll
