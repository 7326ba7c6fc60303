"""The arguments of xlamini.random's functions, and the wrapper that runs them.

A draw outside of tracing is one dispatch of a compiled program; while something is traced its operations become part of
it.
"""
from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

from xlamini.core import Shape, ShapedArray, aval_of, canonicalize_dtype, check_user_dtype, issubdtype, user_stacklevel
from xlamini.core.flags.config import default_prng_impl, legacy_prng_key
from xlamini.core.sizes.expression import as_size
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.primitives import broadcast_in_dim, checked_sharding, in_sharding, reduce_or, wrap_p
from xlamini.primitives.random.generators import GENERATORS
from xlamini.primitives.random.random_keys import unwrap_p
from xlamini.runtime import KeyType
from xlamini.staging import composite

F = TypeVar("F", bound=Callable[..., Any])


def sampler(*static: str, name: str = "") -> Callable[[F], F]:
    """Decorator for `fun(key, ...)` that draws numbers from a typed key; it then takes raw keys too.

    Arguments named in `static` reach it unchanged. `name` is its name in messages, if not its own. The keyword
    `out_sharding`, a PartitionSpec or NamedSharding, splits the numbers over a mesh; they are the same numbers.
    """
    return lambda fun: _sampler(fun, static, name or fun.__name__)


def _sampler(fun: Any, static: Sequence[str], name: str) -> Any:
    @functools.wraps(fun)
    def on_key(key: Any, *args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        one = one_key(name, key)
        if out_sharding is None:
            return fun(one, *args, **kwargs)
        return in_sharding(checked_sharding(name, out_sharding), fun, one, *args, **kwargs)

    del on_key.__wrapped__  # its arguments are its own
    on_key.__signature__ = signature = _with_out_sharding(fun)  # type: ignore[attr-defined]
    run = composite(static=(*static, "out_sharding"))(on_key)

    @functools.wraps(fun)
    def draw(key: Any, *args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        check_array(name, key)
        if out_sharding is None:
            return run(key, *args, **kwargs)
        return run(key, *args, out_sharding=out_sharding, **kwargs)

    draw.__signature__ = signature  # type: ignore[attr-defined]
    return draw


def _with_out_sharding(fun: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(fun)
    extra = inspect.Parameter("out_sharding", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Any")
    return signature.replace(parameters=[*signature.parameters.values(), extra])


def key_maker(*static: str, name: str) -> Callable[[F], F]:
    """Decorator for `fun(key, ...)` that makes keys from a typed key; given a raw key it returns raw keys."""
    return lambda fun: _key_maker(fun, static, name)


def _key_maker(fun: Any, static: Sequence[str], name: str) -> Any:
    @composite(static=tuple(static))
    @functools.wraps(fun)
    def on_key(key: Any, *args: Any) -> Any:
        made = fun(one_key(name, key), *args)
        return made if is_typed(key) else unwrap_p.bind(made)

    @functools.wraps(fun)
    def make(key: Any, *args: Any) -> Any:
        check_array(name, key)
        return on_key(key, *args)

    return make


def is_typed(key: Any) -> bool:
    """True for a key array of a dtype such as key<fry>, False for the words of one."""
    return isinstance(getattr(key, "dtype", None), KeyType)


def typed(name: str, key: Any) -> Any:
    """A typed key array from one, or from its words; TypeError for anything else."""
    if is_typed(key):
        return key
    kind = default_kind()
    check_raw_key(name, key, kind)
    return wrap_p.bind(key, impl=kind.generator)


def default_kind() -> KeyType:
    """The dtype of keys whose generator is not named."""
    return KeyType(GENERATORS[default_prng_impl.value])


def check_array(name: str, key: Any) -> None:
    """Check that a value is an array, and so may be a key; TypeError for others."""
    if not hasattr(key, "dtype"):
        raise TypeError(
            f"{name}: a key is needed, got {key!r} of type {type(key).__name__}; make one with random.key(0)"
        )
    if legacy_prng_key.value != "allow" and not is_typed(key):
        _refuse_raw(name)


def _refuse_raw(name: str) -> None:
    """Warn of a raw key, or raise ValueError, as the flag `legacy_prng_key` says."""
    text = f"{name}: a raw key was passed, while the flag legacy_prng_key is {legacy_prng_key.value!r}; make keys with "
    if legacy_prng_key.value == "error":
        raise ValueError(f"{text}random.key, not random.PRNGKey")
    warnings.warn(f"{text}random.key, not random.PRNGKey", stacklevel=user_stacklevel())


def check_raw_key(name: str, key: Any, kind: KeyType) -> None:
    """Check the words that stand for a key; the flag `legacy_prng_key` may refuse them."""
    check_array(name, key)
    check_words(name, key, kind)


def check_words(name: str, words: Any, kind: KeyType) -> None:
    """TypeError unless `words` can be the words of keys of this kind."""
    aval = aval_of(words)
    if aval.dtype != kind.physical_dtype or aval.shape[-1:] != kind.physical_shape:
        raise TypeError(
            f"{name}: a key is needed, or the words of one, uint32[{kind.generator.words}]; got "
            f"{aval.str_short(short_dtypes=False)}. Make a key with random.key(0){_other_generators(aval, kind)}"
        )


def _other_generators(words: ShapedArray, kind: KeyType) -> str:
    """A hint for the error message, when the words fit another generator."""
    fitting = [g.name for g in GENERATORS.values() if (g.words,) == words.shape[-1:]]
    if words.dtype != kind.physical_dtype or not fitting:
        return ""
    return f", or say whose they are: wrap_key_data(words, impl={fitting[0]!r})"


def one_key(name: str, key: Any) -> Any:
    """A single typed key; ValueError for an array of keys."""
    found = typed(name, key)
    shape = aval_of(found).shape
    if shape:
        raise ValueError(
            f"{name} takes a single key, but was given an array of keys of shape {shape}; use vmap: "
            f"vmap(lambda key: random.{name}(key, ...))(keys)"
        )
    return found


def checked_shape(name: str, shape: Any) -> Shape:
    """A shape from an int or a sequence of ints; TypeError or ValueError for anything else."""
    sizes: Any = shape if isinstance(shape, Iterable) and not hasattr(shape, "dtype") else (shape,)
    try:
        checked = tuple([as_size(n) for n in sizes])
    except TypeError:
        raise TypeError(f"{name}: shape must be an int or a tuple of ints known while tracing, got {shape!r}") from None
    if any(n < 0 for n in checked):
        raise ValueError(f"{name}: shape must not have negative sizes, got {checked}")
    return checked


Method = Literal["exact", "approximate"]


def check_method(name: str, method: Any) -> None:
    """ValueError unless the method of sampling is one that there is."""
    if method not in ("exact", "approximate"):
        raise ValueError(f"{name}: method must be 'exact' or 'approximate', got {method!r}")


def float_dtype(name: str, dtype: Any) -> np.dtype:
    """The canonical dtype of a draw of floats, by default Python's `float`; ValueError for another."""
    return checked_dtype(name, dtype, float, np.floating, "a float dtype such as 'float32'")


def checked_dtype(name: str, dtype: Any, default: type, kind: Any, wanted: str) -> np.dtype:
    """The canonical dtype requested, if it is of this kind; else ValueError, which names the kind."""
    found = canonicalize_dtype(default) if dtype is None else check_user_dtype(dtype, name)
    if not any(issubdtype(found, k) for k in (kind if isinstance(kind, tuple) else (kind,))):
        raise ValueError(f"{name}: dtype must be {wanted}, got {found}")
    return found


def broadcast_scalar_to(x: Any, shape: Shape) -> Any:
    """A value broadcast to `shape`, also one of rank 0, which elementwise operations would not broadcast."""
    own = aval_of(x).shape
    return x if own == shape else broadcast_in_dim(x, shape, range(len(shape) - len(own), len(shape)))


def any_of(x: Any) -> Any:
    """True if any element of a bool array is True."""
    return reduce_or(x, range(x.ndim))


def broadcast_shape(name: str, shape: Any, **parameters: Any) -> Shape:
    """The shape of a draw: `shape` if given, else that of the parameters broadcast; they must broadcast to it."""
    shapes = {what: aval_of(x).shape for what, x in parameters.items()}
    wanted = None if shape is None else checked_shape(name, shape)
    try:
        found = broadcast_shapes(*shapes.values(), *([] if wanted is None else [wanted]))
    except ValueError:
        found = None
    if found is None or wanted not in (None, found):
        listed = ", ".join(f"{what} has shape {s}" for what, s in shapes.items())
        target = "each other" if wanted is None else f"shape {wanted}"
        raise ValueError(f"{name}: the parameters do not broadcast to {target}: {listed}")
    return found
