"""The arguments of a call as flat leaves: their types, and the names that error messages give them."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, overload

import numpy as np

from xlamini.core import (
    Cell,
    Literal,
    ShapedArray,
    Tracer,
    Values,
    aval_of,
    example_of,
    has_shape_and_dtype,
    keystr,
    leaked,
    tree_flatten_with_path,
)
from xlamini.core.dtypes import check_array_dtype, is_array_dtype
from xlamini.core.program.avals import types_of_values
from xlamini.core.program.hi_types import as_aval, is_hi_type, is_hi_value, is_mutable_value
from xlamini.core.program.mutable_values import cell_of
from xlamini.core.program.ref_cells import Holder, is_holder
from xlamini.core.sizes.expression import SymbolicSize, is_symbolic_shape
from xlamini.core.tracing.tracer import is_usable
from xlamini.runtime import ArrayImpl, Sharding, key_words
from xlamini.runtime.arrays.lifetime import deleted_error
from xlamini.runtime.meshes.named_sharding import typed_by

_SCALARS = (bool, int, float, complex, np.generic, np.ndarray, SymbolicSize)
_VALUES = (ArrayImpl, Tracer, Literal)
_TYPES_ONLY = "pass an array, or ask for types only: eval_shape, make_jaxpr, jit(f).lower"


class ArgNames(Sequence[str]):
    """The names of the leaves of `(args, kwargs)`: `x`, `params['w']`, `args[2]`; computed on first use.

    `positions` are the positions of the args in the user's call, if static ones were taken out.
    """

    fun: Callable[..., Any]
    tree: Any

    def __init__(self, fun: Callable[..., Any], tree: Any, positions: Sequence[int] | None = None):
        self.fun, self.tree = fun, tree
        self.positions = positions
        self._names: list[str] | None = None

    def __len__(self) -> int:
        return self.tree.num_leaves

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: Any) -> Any:
        if self._names is None:
            self._names = self._all()
        return self._names[index]

    def _all(self) -> list[str]:
        paths, _ = tree_flatten_with_path(example_of(self.tree))
        if len(paths) != self.tree.num_leaves:  # a class that tells children from metadata by what they are
            return [f"leaf {i}" for i in range(self.tree.num_leaves)]
        parameters = parameter_names(self.fun)
        return [_name(path, parameters, self.positions) for path, leaf in paths if not has_refs((leaf,))]


class SomeNames(Sequence[str]):
    """The names of some of the leaves, those at `positions`; computed on use."""

    names: Sequence[str]
    positions: Sequence[int]

    def __init__(self, names: Sequence[str], positions: Sequence[int]):
        self.names, self.positions = names, positions

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, index: Any) -> Any:
        return self.names[self.positions[index]]


def refuse_leaked(values: Values) -> None:
    """UnexpectedTracerError for a tracer among values that are to be run."""
    for tracer in [x for x in values if type(x) is Tracer]:
        raise leaked(tracer)


def refuse_tracers(leaves: Values, names: Sequence[str], fun_name: str) -> None:
    for i, x in enumerate(leaves):
        if type(x) is Tracer:
            raise TypeError(
                f"compiled {fun_name} was called with a traced value, {x!r}, as the argument {names[i]!r}; a compiled "
                "program cannot be transformed or traced: call the jitted function itself"
            )


class LeafNames(Sequence[str]):
    """The names of a tree's leaves, such as `init_val['w']`; computed on use."""

    root: str
    tree: Any

    def __init__(self, root: str, tree: Any):
        self.root, self.tree = root, tree

    def __len__(self) -> int:
        return self.tree.num_leaves

    def __getitem__(self, index: Any) -> Any:
        paths, _ = tree_flatten_with_path(example_of(self.tree))
        return self.root + keystr([path for path, leaf in paths if not has_refs((leaf,))][index])


def parameter_names(fun: Callable[..., Any]) -> Callable[[int], str]:
    """The names of a function's positional parameters by position; those of `*args` are `args[0]`, `args[1]`…"""
    try:
        parameters = list(inspect.signature(inspect.unwrap(fun)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return lambda i: names[i] if i < len(names) else f"{rest}[{i - len(names)}]"


def _name(path: tuple, parameter: Callable[[int], str], positions: Sequence[int] | None) -> str:
    kind, first, rest = path[0].idx, path[1], path[2:]
    if kind == 1:
        return f"{first.key}{keystr(rest)}"
    return parameter(first.idx if positions is None else positions[first.idx]) + keystr(rest)


def has_refs(leaves: Values) -> bool:
    """Whether one of the leaves is a ref."""
    for x in leaves:  # any(...) would resume a generator for each leaf of every call
        if isinstance(x, Holder) or (type(x) in types_of_values and is_mutable_value(x)):
            return True
    return False


def replaced(values: Values, positions: Sequence[int], new: Values) -> list[Any]:
    """The values, with new ones at these positions."""
    out = list(values)
    for position, value in zip(positions, new, strict=True):
        out[position] = value
    return out


def check_callable(what: str, fun: Any) -> None:
    """TypeError if the argument of a transformation is not callable, or is a generator, which returns no values."""
    if type(fun) is FunctionType and not fun.__code__.co_flags & inspect.CO_GENERATOR:
        return  # at once, as this runs for every call of a transformation
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"{what} takes a function, got the generator {fun.__name__}; return a list of values instead")
    if not callable(fun):
        raise TypeError(f"{what} takes a function, got {brief(fun)} of type {type(fun).__name__}")


def avals_of(leaves: Values, names: Sequence[str], fun_name: str, fix: str = "") -> list[ShapedArray]:
    """The types of the leaves; TypeError, with the advice `fix`, for a leaf that is neither an array nor a number."""
    avals = []
    for i, x in enumerate(leaves):
        aval = getattr(x, "aval", None)
        avals.append(aval if aval is not None else _aval(x, names, i, fun_name, fix))
    return avals


def _aval(x: Any, names: Sequence[str], index: int, fun_name: str, fix: str) -> ShapedArray:
    is_scalar = isinstance(x, _SCALARS)
    if not is_scalar and (is_hi_value(x) or is_hi_type(x)):
        return as_aval(x) if is_hi_type(x) else aval_of(x)
    name = f"argument {names[index]!r} of {fun_name}"
    if is_scalar or has_shape_and_dtype(x):
        check_array_dtype(getattr(x, "dtype", None), name)
        return aval_of(x) if is_scalar else _aval_like(x)
    raise TypeError(
        f"{name} is {brief(x)} of type {type(x).__name__}, not an array or a number; pass an array{fix}"
    )


def _aval_like(x: Any) -> ShapedArray:
    shape, sharding = tuple(x.shape), getattr(x, "sharding", None)
    aval = ShapedArray(shape, np.dtype(x.dtype), getattr(x, "weak_type", False))
    return typed_by(sharding, aval) if isinstance(sharding, Sharding) else aval


def check_values(leaves: Values, names: Sequence[str], fun_name: str) -> None:
    """Raise an error for an argument without a value: a deleted array, a leaked tracer, or a type alone."""
    for i, x in enumerate(leaves):
        kind = type(x)
        if kind is ArrayImpl:
            if x.is_deleted():
                raise deleted_error(x, f"the argument {names[i]!r} of {fun_name}")
        elif kind is Tracer:
            if not is_usable(x):
                raise leaked(x, f"the argument {names[i]!r} of {fun_name}")
        elif not (isinstance(x, _SCALARS) or key_words(x) is not x or hasattr(x, "__array__") or is_hi_value(x)):
            symbolic = is_symbolic_shape(getattr(x, "shape", ()))
            fix = f"export it: export.export(jit({fun_name}))(...)" if symbolic else _TYPES_ONLY
            raise TypeError(f"argument {names[i]!r} of {fun_name} is {brief(x)}, a type without values; {fix}")


def checked_avals(leaves: Values, names: Sequence[str], fun_name: str, fix: str = "") -> list[ShapedArray]:
    """The types of the leaves, all of which must have values: `avals_of` and `check_values`."""
    avals = avals_of(leaves, names, fun_name, fix)
    check_values(leaves, names, fun_name)
    return avals


class OutputTypeError(TypeError):
    """A traced function returned something else than arrays."""

    def __init__(self, message: str, value: Any):
        super().__init__(message)
        self.value = value


def check_outputs(leaves: Values, tree: Any, fun_name: str) -> None:
    """TypeError, with the path, for an output that is neither an array nor a number."""
    for i, x in enumerate(leaves):
        if not _is_value(x):
            path, _ = tree_flatten_with_path(example_of(tree))[0][i]
            if is_holder(x):
                raise _returned_ref(fun_name, keystr(path), cell_of(x))
            raise OutputTypeError(
                f"{fun_name} returned {brief(x)} of type {type(x).__name__} at output{keystr(path)}; a traced function "
                "must return arrays, numbers, or containers of them",
                x,
            )


def _returned_ref(fun_name: str, path: str, cell: Cell) -> ValueError:
    return ValueError(
        f"{fun_name} returned a mutable array reference of type {cell.ty} at output{path}, but "
        f"mutable array references cannot be returned; return its value, {cell.reading}"
    )


def _is_value(x: Any) -> bool:
    if isinstance(x, np.ndarray | np.generic):
        return is_array_dtype(x.dtype)
    return isinstance(x, (*_SCALARS, *_VALUES)) or key_words(x) is not x or (is_hi_value(x) and not is_holder(x))


def describe_as(made: Callable[..., Any], text: str, fun: Callable[..., Any]) -> Callable[..., Any]:
    """A transformed function with documentation of its own, before that of the function."""
    doc = getattr(fun, "__doc__", None)
    made.__doc__ = f"{text}\n\nDocumentation of {name_of(fun)}:\n\n{doc}" if doc else text
    return made


def brief(x: Any) -> str:
    """The repr of a value, without_trailing_none for messages."""
    text = repr(x)
    return text if len(text) <= 40 else text[:37] + "..."


def name_of(fun: Callable[..., Any]) -> str:
    """The name of a function in programs and messages."""
    name = getattr(fun, "__name__", None)
    if isinstance(name, str):
        return name if name.isascii() else name.encode(errors="replace").decode()  # C++ takes no lone surrogates
    inner = getattr(fun, "func", None)
    return name_of(inner) if inner is not None else type(fun).__name__
