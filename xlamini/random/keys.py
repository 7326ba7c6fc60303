"""Keys: made from a seed, split, folded with a number, and seen as the words they are made of."""
from __future__ import annotations

from typing import Any, NewType

import numpy as np

from xlamini.core import aval_of, enable_x64, issubdtype, literal
from xlamini.core.flags.jax_flags import enable_custom_prng, random_seed_offset
from xlamini.core.tracing.state import state
from xlamini.primitives import convert, split_p, wrap_p
from xlamini.primitives.random.generators import GENERATORS, NATIVE
from xlamini.primitives.random.random_keys import clone_p, fold_in_p, seed_p, unwrap_p
from xlamini.random.arguments import check_raw_key, check_words, checked_shape, default_kind, is_typed, key_maker, typed
from xlamini.runtime import Array, KeyType, device_put_value
from xlamini.runtime.arrays.keys import Generator, PRNGKeyArray
from xlamini.staging import composite

Key = NewType("Key", Array)
"""The type of a random key, for annotations: an Array whose elements are keys.

>>> xlamini.random.Key(xlamini.random.key(0)).shape
()
"""

_UINT32 = np.dtype(np.uint32)
_WORD = 2**32


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """A random key, of shape () and dtype key<fry>, from an integer seed.

    Without 64-bit types only the low 32 bits of the seed count. `impl` (or `dtype`) names the generator:
    'threefry2x32', 'rbg', 'unsafe_rbg', or None for the flag `default_prng_impl`. The flag `random_seed_offset` is
    added to the seed. Raises TypeError for a seed that is no integer scalar, OverflowError for one of more than 64
    bits.

    >>> xlamini.random.key(42)
    Array((), dtype=key<fry>) overlaying:
    [ 0 42]
    """
    kind = key_dtype(impl if dtype is None else dtype)
    if isinstance(seed, np.integer) and seed.dtype == np.uint64:
        seed = seed.astype(np.int64)  # the same 64 bits
    if isinstance(seed, int | np.integer):
        return _key_of_number(int(seed) + random_seed_offset.value, kind)
    _check_seed(seed)
    if random_seed_offset.value:
        offset = random_seed_offset.value  # unsigned seeds hold no negative number
        seed = seed + offset if offset > 0 else seed - -offset
    if state.builder is not None:
        return seed_p.bind(seed, impl=kind.generator)
    return PRNGKeyArray(kind, _words_of_seed(seed, impl=kind.generator))  # type: ignore[return-value]


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """The words of a random key, uint32[2]; like `key`, for programs written before keys had a dtype of their own.

    Under flag `enable_custom_prng` it is the key itself.

    >>> xlamini.random.PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    new = key(seed, impl=impl)
    return new if enable_custom_prng.value else key_data(new)


def _key_of_number(seed: int, kind: KeyType) -> Any:
    if not -(2**63) <= seed < 2**63:
        raise OverflowError(f"key: the seed {seed} does not fit into 64 bits; take it modulo 2**63")
    high = (seed >> 32) % _WORD if enable_x64.value else 0
    if state.builder is None and kind.generator in NATIVE:
        words = np.array([high, seed % _WORD] * (kind.generator.words // 2), _UINT32)
        return PRNGKeyArray(kind, device_put_value(words))
    width = 64 if enable_x64.value else 32
    return seed_p.bind(literal(_signed(seed, width), np.dtype(f"int{width}")), impl=kind.generator)


def _signed(number: int, width: int) -> int:
    """The signed number whose bits are the low `width` bits of another."""
    return (number + 2 ** (width - 1)) % 2**width - 2 ** (width - 1)


def _check_seed(seed: Any) -> None:
    aval = aval_of(seed) if hasattr(seed, "dtype") else None
    if aval is None or not issubdtype(aval.dtype, np.integer):
        raise TypeError(f"key: the seed must be an integer, got {seed!r}")
    if aval.shape:
        raise TypeError(f"key: the seed must be a scalar, got shape {aval.shape}; use vmap(random.key)(seeds)")


@composite(static=("impl",))
def _words_of_seed(seed: Any, impl: Generator) -> Any:
    return unwrap_p.bind(seed_p.bind(seed, impl=impl))


def split(key: Any, num: int | tuple[int, ...] = 2) -> Array:
    """New keys from one, `num` of them, or an array of this shape; use each key once.

    A raw key gives raw keys, with the words along a last dimension. Raises ValueError for a negative number, and for an
    array of keys, which vmap splits.

    >>> key1, key2 = xlamini.random.split(xlamini.random.key(0))
    """
    return _split(key, checked_shape("split", num))


@key_maker("shape", name="split")
def _split(key: Any, shape: tuple[int, ...]) -> Any:
    return split_p.bind(key, shape=shape)


def fold_in(key: Any, data: Any) -> Array:
    """A new key from a key and an integer scalar, taken as uint32: the iteration of a loop, for example.

    Raises OverflowError for a Python int that does not fit into uint32, TypeError for data that is no scalar.

    >>> xlamini.random.fold_in(xlamini.random.key(0), 7).shape
    ()
    """
    if isinstance(data, int) and not 0 <= data < _WORD:
        raise OverflowError(f"fold_in: {data} does not fit into uint32; data must be from 0 to 2**32 - 1")
    if aval_of(data).shape:
        raise TypeError(f"fold_in: data must be a scalar, got shape {aval_of(data).shape}; use vmap over key and data")
    return _fold_in(key, np.uint32(data) if isinstance(data, int) else data)


@key_maker(name="fold_in")
def _fold_in(key: Any, data: Any) -> Any:
    return fold_in_p.bind(key, convert(data, _UINT32))


def clone(key: Any) -> Array:
    """A copy of the key, declared to be used a second time on purpose; TypeError for what is no key.

    >>> key = random.key(0)
    >>> with xlamini.debug_key_reuse(True):
    ...     bool(random.normal(key) == random.normal(random.clone(key)))
    True
    """
    if not is_typed(key):
        check_raw_key("clone", key, default_kind())
        generator = default_kind().generator
        return key if state.builder is None else unwrap_p.bind(clone_p.bind(wrap_p.bind(key, impl=generator)))
    return clone_p.bind(key) if state.builder is not None else PRNGKeyArray(key.dtype, key.words)  # type: ignore[return-value]


def key_data(keys: Any) -> Array:
    """The words that keys are made of: uint32, with shape (*keys.shape, 2), or 4 in place of 2 for 'rbg'.

    >>> xlamini.random.key_data(xlamini.random.key(42))
    Array([ 0, 42], dtype=uint32)
    """
    if not is_typed(keys):
        check_raw_key("key_data", keys, default_kind())
        return keys
    return keys.words if type(keys) is PRNGKeyArray and state.builder is None else unwrap_p.bind(keys)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """Keys from their words, uint32 with a last dimension of 2, or 4 for 'rbg'; TypeError for anything else.

    >>> xlamini.random.wrap_key_data(xlamini.numpy.array([0, 42], dtype="uint32"))
    Array((), dtype=key<fry>) overlaying:
    [ 0 42]
    """
    kind = key_dtype(impl if dtype is None else dtype)
    check_words("wrap_key_data", key_bits_array, kind)
    if state.builder is not None:
        return wrap_p.bind(key_bits_array, impl=kind.generator)
    return PRNGKeyArray(kind, device_put_value(key_bits_array))  # type: ignore[return-value]


def key_impl(keys: Any) -> str:
    """The name of the generator that keys belong to.

    >>> xlamini.random.key_impl(xlamini.random.key(0))
    'threefry2x32'
    """
    return aval_of(typed("key_impl", keys)).dtype.generator.name


def key_dtype(impl_spec: Any = None) -> KeyType:
    """The dtype of the keys of a generator, by its name; ValueError for one that does not exist.

    >>> xlamini.random.key_dtype()
    key<fry>
    """
    if impl_spec is None:
        return default_kind()
    if isinstance(impl_spec, KeyType):
        return impl_spec
    generator = GENERATORS.get(impl_spec, impl_spec)
    if isinstance(generator, Generator):
        return KeyType(generator)
    raise ValueError(f"there is no random generator {impl_spec!r}; there are {', '.join(map(repr, GENERATORS))}")
