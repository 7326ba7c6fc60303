"""The generator of random bits that a TPU's core has: `prng_seed`, `prng_random_bits`.

Elsewhere the bits are hashes of the seeds and of how many arrays were drawn, which the kernel keeps in a buffer. So the
bits differ from those of a TPU, and are as good.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Cost, Params, ShapedArray, Values, Zero, aval_of, tangent_aval
from xlamini.core.errors.kernel_errors import KernelError
from xlamini.core.program.literals import literal
from xlamini.core.program.ref_types import RefPrimitive
from xlamini.primitives.base.promotion import convert
from xlamini.primitives.elementwise.convert_element_type import bitcast_convert_type
from xlamini.primitives.random.threefry import threefry2x32
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.shape import reshape
from xlamini.runtime import Array
from xlamini.transforms.pallas.grid import kernel_builder
from xlamini.transforms.pallas.specs import MemoryRef
from xlamini.transforms.pallas.trace import ref_of_tracer

_STATE: Any = object()
"""The entry in the memo of a kernel's builder that is the ref of its generator: the key, and the number of draws."""

_UINT32 = np.dtype(np.uint32)


class OnGenerator(RefPrimitive):
    """An equation on the state of the generator, the first operand."""

    writes = True

    def next(self, state: Any, *operands: Any, **params: Any) -> tuple[list[Any], Any]:
        """The results, and the next state."""
        self._missing("next", "(self, state, *operands, **params) -> (outs, new)")

    def in_kernel(self, generator: Any, *operands: Any, **params: Any) -> list[Any]:
        """The results by the instructions of a TPU."""
        self._missing("in_kernel", "(self, generator, *operands, **params) -> outs")

    def discharge(self, refs: Sequence[Any], operands: Values, **params: Any) -> tuple[list[Any], dict[Any, Any]]:
        outs, new = self.next(*operands, **params)
        return outs, {refs[0]: new}

    def lower(self, ctx: Any, state: Any, *operands: Any, **params: Any) -> list[Any]:
        generator = getattr(ctx, "generator", None)
        if generator is None:
            raise KernelError(f"{self.name}: only a TPU has a generator; use xlamini.random outside of the kernel")
        return self.in_kernel(generator(), *operands, **params)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        outs = self.bind(*primals, **params)
        return outs, [Zero(tangent_aval(aval_of(out))) for out in outs]

    def cost(self, state: Any, *avals: Any, **params: Any) -> Cost:
        return Cost(0, sum(a.nbytes for a in self.shape_rule(state, *avals, **params)))

    def notation(self, outs: str, names: list[str], params: Params) -> str:
        return f"{outs + ' <- ' if outs else ''}{self.name} {' '.join(names)}"


class PrngSeed(OnGenerator):
    name = "prng_seed"

    def shape_rule(self, state: Any, *seeds: Any) -> Avals:
        return []

    def next(self, state: Any, *seeds: Any) -> tuple[list[Any], Any]:
        key = [_word(0), _word(0)]
        for seed in seeds:
            key = threefry2x32(key, [bitcast_convert_type(seed, _UINT32), _word(1)])
        return [], state.at[0].set(key[0]).at[1].set(key[1]).at[2].set(_word(0))

    def in_kernel(self, generator: Any, *seeds: Any) -> list[Any]:
        generator.seed(seeds)
        return []


class PrngRandomBits(OnGenerator):
    name = "prng_random_bits"

    def shape_rule(self, state: Any, *, shape: tuple[int, ...]) -> Avals:
        return [ShapedArray(shape, np.dtype(np.int32))]

    def next(self, state: Any, *, shape: tuple[int, ...]) -> tuple[list[Any], Any]:
        places = broadcasted_iota(_UINT32, (math.prod(shape),), 0)
        bits = threefry2x32([state[0], state[1]], [places, places * _word(0) + state[2]])[0]
        return [bitcast_convert_type(reshape(bits, shape), np.dtype(np.int32))], state.at[2].add(_word(1))

    def in_kernel(self, generator: Any, *, shape: tuple[int, ...]) -> list[Any]:
        return [generator.bits(shape)]


prng_seed_p: Final = PrngSeed()
prng_random_bits_p: Final = PrngRandomBits()


def _word(number: int) -> Any:
    return literal(number, _UINT32)


def _state(what: str) -> Any:
    """The variable of the ref of the generator's state, in the kernel that is being traced."""
    builder = kernel_builder(what)
    if _STATE not in builder.memo:
        builder.memo[_STATE] = ref_of_tracer(builder.input(MemoryRef((3,), _UINT32, "smem").ref_type()))
    return builder.memo[_STATE].cell.variable()


def prng_seed(*seeds: Any) -> None:
    """Seed the generator of the core with ints, in a kernel; each program that draws bits should seed it first.

    Raises RuntimeError outside of kernels.

    >>> def kernel(o):
    ...     prng_seed(0, pl.program_id(0))
    ...     o[...] = prng_random_bits(o.shape)
    >>> pl.pallas_call(kernel, xlamini.ShapeDtypeStruct((8, 128), "int32"), grid=1)().shape
    (8, 128)
    """
    prng_seed_p.bind(_state("prng_seed"), *(convert(seed, np.dtype(np.int32), weak_type=False) for seed in seeds))


def prng_random_bits(shape: Sequence[int]) -> Array:
    """Random bits by the generator of the core, an array of int32s, in a kernel.

    Raises RuntimeError outside of kernels.

    >>> def coins(o):
    ...     prng_seed(0)
    ...     o[...] = prng_random_bits(o.shape) % 2
    >>> int(pl.pallas_call(coins, xlamini.ShapeDtypeStruct((8, 128), "int32"))().max())
    1
    """
    return prng_random_bits_p.bind(_state("prng_random_bits"), shape=tuple(shape))[0]
