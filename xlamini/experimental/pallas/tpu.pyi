# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.pallas.check.params import InterpretParams as InterpretParams
from xlamini.experimental.pallas.pipeline import emit_pipeline as emit_pipeline
from xlamini.transforms.pallas.copies import (
    AsyncCopy as AsyncCopy, SemaphoreType as SemaphoreType, async_copy as async_copy,
    make_async_copy as make_async_copy, semaphore_read as semaphore_read, semaphore_signal as semaphore_signal,
    semaphore_wait as semaphore_wait, sync_copy as sync_copy,
)
from xlamini.transforms.pallas.generator import prng_random_bits as prng_random_bits, prng_seed as prng_seed
from xlamini.transforms.pallas.specs import (
    ANY as ANY, HBM as HBM, MemorySpace as MemorySpace, PrefetchScalarGridSpec as PrefetchScalarGridSpec, SMEM as SMEM,
    VMEM as VMEM,
)
from xlamini.transforms.pallas.tpu_params import (
    ARBITRARY as ARBITRARY, PARALLEL as PARALLEL, CompilerParams as CompilerParams,
    GridDimensionSemantics as GridDimensionSemantics,
)
from xlamini.experimental.pallas.tpu_words import bitcast as bitcast, roll as roll
