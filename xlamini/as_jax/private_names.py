"""What small modules, most of `jax._src`, define that nothing in xlamini has; `tables.py` says which defines what."""
from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from xlamini import Array
from xlamini.as_jax.overlay.refusals import refuse, refusing
from xlamini.core import ShapedArray, aval_of, canonicalize_dtype
from xlamini.core.errors.frames import hidden_files, is_hidden
from xlamini.core.flags.config import config
from xlamini.core.pytree import PyTreeDef, default_registry, first_difference
from xlamini.core.pytree.prefix import mismatch
from xlamini.extend import trace_is_clean
from xlamini.numpy import asarray, broadcast_to
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.runtime import ArrayImpl, device_put_value
from xlamini.runtime.arrays.keys import PRNGKeyArray
from xlamini.runtime.processes.group import here
from xlamini.sharding import Sharding
from xlamini.tree_util import tree_structure
from xlamini.typing import DTypeLike

Shape = tuple[int, ...]

# -- types and sizes


def typematch(t1: ShapedArray, t2: ShapedArray) -> bool:
    """Whether two types are the same but for weakness."""
    return (t1.shape, t1.dtype) == (t2.shape, t2.dtype)


def typecheck(aval: ShapedArray, x: Any) -> bool:
    """Whether a value has a type."""
    return typematch(aval, aval_of(x))


def is_constant_shape(s: Sequence[Any]) -> bool:
    """Whether a shape is static; it always is."""
    return all(isinstance(size, int) for size in s)


def int_dtype_for_dim(d: int, *, signed: bool) -> np.dtype:
    """A dtype of 32 bits that holds the size, or else one of 64 bits."""
    narrow, wide = (np.int32, np.int64) if signed else (np.uint32, np.uint64)
    return np.dtype(narrow if d <= np.iinfo(narrow).max else wide)


def int_dtype_for_shape(shape: Sequence[int], *, signed: bool) -> np.dtype:
    """A dtype of 32 bits that holds all sizes of a shape, or else one of 64 bits."""
    return int_dtype_for_dim(max(shape, default=0), signed=signed)


# -- arrays


def EArray(aval: ShapedArray, data: ArrayImpl) -> PRNGKeyArray:
    """An array of the type `aval` from the array that its elements are made of."""
    return PRNGKeyArray(aval.dtype, data)


def _reconstruct_array(fun: Callable[..., Any], args: Any, state: Any, aval_state: Mapping[str, Any]) -> Array:
    """The array on the default device, from NumPy's parts of it: pickles that JAX wrote name this function."""
    value = fun(*args)
    value.__setstate__(state)
    return device_put_value(value, aval=ShapedArray(value.shape, value.dtype, aval_state["weak_type"]))


def _convert_element_type(operand: Any, new_dtype: DTypeLike | None = None, weak_type: bool = False) -> Array:
    """The operand as an array of a dtype, that of the operand by default, which adapts if `weak_type` says so."""
    array = asarray(operand)
    return convert(array, array.dtype if new_dtype is None else canonicalize_dtype(new_dtype), weak_type)


def _const(example: Any, val: Any) -> Any:
    """A number in the dtype of an example."""
    aval = aval_of(example)
    return val if aval.weak_type and np.isscalar(val) else np.array(val, aval.dtype)


def _delta(dtype: DTypeLike, shape: Sequence[int], axes: Sequence[int]) -> Array:
    """Ones where the indices along these axes are equal, zeros elsewhere."""
    places = np.ix_(*map(np.arange, shape))
    equal = np.ones((1,) * len(shape), bool)
    for left, right in itertools.pairwise(axes):
        equal = equal & (places[left] == places[right])
    return broadcast_to(asarray(equal, dtype), tuple(shape))


# -- shardings


def is_hlo_sharding_replicated(hc: Any) -> bool:
    """Whether every device has all data."""
    return hc.num_devices() == 1 or hc.is_replicated()


def are_hlo_shardings_equal(hc1: Any, hc2: Any) -> bool:
    """Whether two shardings put the same data on the same devices."""
    return hc1 is hc2 or (is_hlo_sharding_replicated(hc1) and is_hlo_sharding_replicated(hc2)) or hc1 == hc2


class GSPMDSharding(Sharding):
    """A sharding made of XLA's description of one; no array here has it."""

    def __init__(self, *args: Any, **kwargs: Any):
        refuse("GSPMDSharding", "arrays say by NamedSharding where they lie")


# -- functions, their calls and their frames

Numbers = int | Iterable[int] | None
Names = str | Iterable[str] | None


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: Numbers, argnames: Names
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and the names of the same parameters, where only one of the two is given."""
    numbers = (argnums,) if isinstance(argnums, int) else None if argnums is None else tuple(argnums)
    names = (argnames,) if isinstance(argnames, str) else None if argnames is None else tuple(argnames)
    named = [p.name if p.kind is p.POSITIONAL_OR_KEYWORD else None for p in sig.parameters.values()]
    if numbers is None:
        numbers = tuple(i for i, name in enumerate(named) if name in (names or ()))
    if names is None:
        names = tuple(name for i in numbers if -len(named) <= i < len(named) and (name := named[i]))
    return numbers, names


def reset_trace_state() -> bool:
    """Whether no function is being traced, as there is no state that would need to be reset."""
    return trace_is_clean()


_exclude_paths = hidden_files.prefixes


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is the user's."""
    return not is_hidden(frame)


def is_accelerated(deprecation_id: str) -> bool:
    """Whether a deprecation has been made an error; none is, as JAX's older names are not here."""
    return False


def warn(deprecation_id: str, message: str, stacklevel: int) -> None:
    """A DeprecationWarning."""
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)


# -- pytrees


class _Entry(NamedTuple):
    """How the objects of one class come apart, and are made."""

    node_type: type

    def to_iter(self, node: Any) -> tuple[Iterable[Any], Any]:
        parts = default_registry.flatten_one_level(node)
        assert parts is not None
        return parts

    def from_iter(self, metadata: Any, children: Iterable[Any]) -> Any:
        leaves = list(children)
        data, leaf = (self.node_type, metadata), tree_structure(0)
        node = PyTreeDef.from_node_data_and_children(default_registry, data, [leaf] * len(leaves))
        return node.unflatten(leaves)


class _Registry:
    """The classes that are pytree nodes, asked of jaxlib's registry each time."""

    def __contains__(self, node_type: type) -> bool:
        return default_registry.is_node(node_type)

    def __getitem__(self, node_type: type) -> _Entry:
        if node_type not in self:
            raise KeyError(node_type)
        return _Entry(node_type)


_registry: Any = _Registry()


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: Any = None) -> list[Callable[[str], ValueError]]:
    """A function that makes the error, given the name of the prefix, if `prefix_tree` is no prefix of `full_tree`."""
    if first_difference(prefix_tree, full_tree, prefix=True, is_leaf=is_leaf) is None:
        return []
    return [lambda name: mismatch("pytree", prefix_tree, full_tree, (name, "the full tree"), is_leaf)]


# -- processes, programs on disk, checkpoints


class _GlobalState:
    """This process in its group; a process alone is number 0 of 1, and has no client."""

    @property
    def client(self) -> Any:
        return here.group and here.group.client

    @property
    def process_id(self) -> int:
        return 0 if here.group is None else here.group.process_id

    @property
    def num_processes(self) -> int:
        return 1 if here.group is None else here.group.num_processes


global_state: Final = _GlobalState()


def is_persistent_cache_enabled() -> bool:
    """Whether there is a directory of compiled programs."""
    return bool(config.enable_compilation_cache and config.compilation_cache_dir)


class GlobalAsyncCheckpointManagerBase:
    """The base class of managers of checkpoints; libraries derive theirs from it."""


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """JAX's own manager, which there is not."""

    def __init__(self, *args: Any, **kwargs: Any):
        refuse(
            "GlobalAsyncCheckpointManager",
            "save with experimental.array_serialization.pytree_serialization, or with orbax-checkpoint",
        )


class ifrt_programs:
    """The functions of jaxlib's module of this name, for plugins of remote runtimes, of which there are none."""

    make_plugin_program: Callable[..., NoReturn] = staticmethod(
        refusing("make_plugin_program", "there is no remote runtime")
    )
    make_plugin_compile_options: Callable[..., NoReturn] = staticmethod(
        refusing("make_plugin_compile_options", "there is no remote runtime")
    )
