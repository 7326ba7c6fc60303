"""`jax.extend.random`: random generators of a library's own, and the impls of those that there are."""
from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

from xlamini import random
from xlamini.as_jax.missing_names import fall_through
from xlamini.extend import define_key_impl
from xlamini.primitives.random.generators import GENERATORS
from xlamini.runtime import KeyType

__getattr__: Final = fall_through(__name__)

rbg_prng_impl: KeyType
threefry_prng_impl: KeyType
unsafe_rbg_prng_impl: KeyType
threefry_prng_impl, rbg_prng_impl, unsafe_rbg_prng_impl = (
    KeyType(GENERATORS[name]) for name in ("threefry2x32", "rbg", "unsafe_rbg")
)


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[[Any], Any],
    split: Callable[[Any, tuple[int, ...]], Any],
    random_bits: Callable[[Any, int, tuple[int, ...]], Any],
    fold_in: Callable[[Any, Any], Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> KeyType:
    """A generator given by functions of a single key, uint32[*key_shape]; keys have one dimension of words."""
    if len(key_shape) != 1:
        raise NotImplementedError(
            f"define_prng_impl: a key has one dimension of words here, got key_shape {key_shape}; give its size as (n,)"
        )
    names = (name if n == 0 else f"{name} {n}" for n in count())
    free = next(candidate for candidate in names if candidate not in GENERATORS)
    return define_key_impl(free, tag, key_shape[0], seed=seed, split=split, fold_in=fold_in, bits=random_bits)


def seed_with_impl(impl: Any, seed: Any) -> Any:
    """The key of a seed."""
    return random.key(seed, impl=impl)
