"""Arrays of random keys: each element is a key of a few uint32 words.

A `PRNGKeyArray` of shape `s` overlays an Array of words of shape `(*s, words)`. Programs compute with the words; a key
has no arithmetic, only structure: a floor above gives key arrays indexing, reshape and the like, as it does for
`Array`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from xlamini.core import ExtendedDType, PartitionSpec, ShapedArray, api_boundary_methods
from xlamini.core.dtypes import extended, prng_key
from xlamini.core.program.avals import Typed
from xlamini.core.pytree.nodes import dispatch_registry
from xlamini.runtime.arrays.array import Array
from xlamini.runtime.arrays.lifetime import check_alive
from xlamini.runtime.arrays.to_device import device_put_value
from xlamini.runtime.arrays.to_host import parts_of, to_numpy
from xlamini.runtime.meshes.named_sharding import NamedSharding, split_in_type
from xlamini.runtime.meshes.shards import Shard, addressable_shards, global_shards


class Generator(NamedTuple):
    """A random generator: its name, its short name for printing, and the number of words of a key."""

    name: str
    tag: str
    words: int

    def __repr__(self) -> str:
        return self.tag


class KeyType(ExtendedDType):
    """The dtype of the random keys of one generator; it prints as `key<fry>`."""

    generator: Generator
    physical_shape: tuple[int]

    type: type[extended] = prng_key
    physical_dtype: np.dtype = np.dtype(np.uint32)

    def __init__(self, generator: Generator):
        self.generator, self.physical_shape = generator, (generator.words,)
        self.name: str = f"key<{generator.tag}>"

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is KeyType and self.generator == other.generator)

    def __hash__(self) -> int:
        return hash((KeyType, self.generator))

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyType, (self.generator,)


class PRNGKeyArray(Typed):
    """An array of random keys, as `random.key` and `random.split` return it.

    >>> xlamini.random.key(0)
    Array((), dtype=key<fry>) overlaying:
    [0 0]
    """

    __slots__ = ("__weakref__", "aval", "history", "words")
    aval: ShapedArray

    __array_priority__ = 100

    def __init__(self, dtype: ExtendedDType, words: Array):
        self.words: Array = words
        self.history: Any = None  # of its uses, under flag debug_key_reuse
        shape = words.shape[: words.ndim - len(dtype.physical_shape)]
        split = split_in_type(words._sharding, len(shape))
        self.aval = ShapedArray(shape, dtype, explicit_sharding=split, memory_space=words.aval.memory_space)

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def sharding(self) -> Any:
        return _leading_sharding(self.words.sharding, self.ndim)

    @property
    def committed(self) -> bool:
        return self.words.committed

    @property
    def device(self) -> Any:
        return self.words.device

    @property
    def is_fully_addressable(self) -> bool:
        return self.words.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        return self.words.is_fully_replicated

    def devices(self) -> set[Any]:
        """The devices that hold a shard of the array."""
        return self.words.devices()

    def addressable_data(self, index: int) -> PRNGKeyArray:
        """The keys of the `index`-th addressable shard."""
        return self._parts()[index]

    def _parts(self) -> list[PRNGKeyArray]:
        check_alive(self.words)
        whole_keys = device_put_value(self.words, self.sharding)  # in case a key's words are split over devices
        return [PRNGKeyArray(self.dtype, words) for words in parts_of(whole_keys)]

    @property
    def addressable_shards(self) -> list[Shard]:
        """The shards on this process's devices, in the sharding's order."""
        return addressable_shards(self, self._parts())

    @property
    def global_shards(self) -> list[Shard]:
        """The shards on all devices; `data` is None for devices of other processes."""
        return global_shards(self, self._parts())

    def block_until_ready(self) -> PRNGKeyArray:
        """Wait until the keys have been computed, and return them."""
        self.words.block_until_ready()
        return self

    def is_ready(self) -> bool:
        """Whether the keys have been computed."""
        return self.words.is_ready()

    def is_deleted(self) -> bool:
        """Whether the buffer was freed by `delete()` or donated."""
        return self.words.is_deleted()

    def delete(self) -> None:
        """Free the memory now."""
        self.words.delete()

    def copy_to_host_async(self) -> None:
        """Start a copy of the words to the host, without waiting."""
        self.words.copy_to_host_async()

    def copy(self) -> PRNGKeyArray:
        """A copy of the keys in new memory."""
        return self.__copy__()

    def __copy__(self) -> PRNGKeyArray:
        return PRNGKeyArray(self.dtype, self.words.__copy__())

    def __deepcopy__(self, memo: dict[int, Any]) -> PRNGKeyArray:
        return self.__copy__()

    def put_words(self, where: Any, committed: bool | None) -> PRNGKeyArray:
        """The keys on a device; the hook of `device_put_value`."""
        if isinstance(where, NamedSharding):
            where.shard_shape(self.shape)  # raises if the spec splits a key's words
        return PRNGKeyArray(self.dtype, device_put_value(self.words, where, committed=committed))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: a single key has no axis to count")
        return self.shape[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.dtype, to_numpy(self.words))

    __hash__: Any = None  # as arrays have it

    def __bool__(self) -> NoReturn:
        raise TypeError("a key has no truth value; random.bernoulli(key) draws one")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError("a key array is no NumPy array; random.key_data(keys) gives its words")

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self.words}"


def _rebuild(dtype: KeyType, words: np.ndarray) -> PRNGKeyArray:
    return PRNGKeyArray(dtype, device_put_value(words))


def _leading_sharding(sharding: Any, ndim: int) -> Any:
    """The sharding of an array's leading dimensions, without its last, unsplit ones."""
    if isinstance(sharding, NamedSharding) and len(sharding.spec) > ndim:
        return sharding.update(spec=PartitionSpec(*sharding.spec[:ndim]))
    return sharding


def key_words(x: Any) -> Any:
    """The words of a key array; any other value unchanged."""
    return x.words if type(x) is PRNGKeyArray else x


def as_keys(x: Array, aval: ShapedArray) -> Any:
    """An output of this type as the user sees it: the array itself, or the key array over its words.

    Arrays of other extended dtypes, which libraries define, are kept in the same way.
    """
    return PRNGKeyArray(aval.dtype, x) if isinstance(aval.dtype, ExtendedDType) else x


api_boundary_methods(PRNGKeyArray)
Array.register(PRNGKeyArray)
dispatch_registry.register_node(
    PRNGKeyArray, lambda x: ((x.words,), x.dtype), lambda dtype, words: PRNGKeyArray(dtype, *words)
)
