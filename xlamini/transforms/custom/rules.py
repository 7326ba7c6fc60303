"""What functions with rules of the user's own share: how they are called and traced, and how rules are checked.

The function is traced when it is called, its rules when somebody first asks for what they give: a rule often calls the
function itself. By then the trace in which the call stands may be over, so what a rule closes over is found beforehand.
"""
from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import float0
from xlamini.core.errors import ShapeError
from xlamini.core.jaxpr import Jaxpr, Var
from xlamini.core.primitive import definition
from xlamini.core.pytree import (
    first_difference,
    flatten_from_user,
    keystr,
    structure,
    tree_flatten_with_path,
    tree_map,
    unflatten,
)
from xlamini.core.tangents import is_differentiable, tangent_aval
from xlamini.core.tracer import Tracer, aval_of, is_usable, state
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.primitives.tangent_ops import zeros
from xlamini.runtime.put import ArrayImpl
from xlamini.transforms.arguments import ArgNames, avals_of, check_outputs, check_values, name_of
from xlamini.transforms.higher_order import chosen, inverse, merged
from xlamini.transforms.tracing import Trace, rebuilt, trace


class SymbolicZero:
    """A tangent or cotangent that is zero for sure. Rules with `symbolic_zeros=True` are given it, and may return it.

    >>> SymbolicZero.from_primal_value(xlamini.numpy.ones(3)).shape
    (3,)
    """

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(tangent_aval(aval_of(val)))

    def __repr__(self) -> str:
        return "SymbolicZero"


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """A zero tangent for each leaf of a tree: an array, or with `symbolic_zeros` a `SymbolicZero`.

    >>> zero_from_primal({"w": xlamini.numpy.ones(2)})
    {'w': Array([0., 0.], dtype=float32)}
    """
    return tree_map(lambda x: zero_tangent(aval_of(x), symbolic_zeros), val)


def zero_tangent(aval: ShapedArray, symbolic: bool) -> Any:
    """The zero tangent that a rule is given for a value of this type."""
    if symbolic:
        return SymbolicZero(tangent_aval(aval))
    return rebuilt(_LEAF, [zeros(aval)]) if is_differentiable(aval) else np.zeros(aval.shape, float0)


_LEAF = structure(0)


# --- calls


class CustomCall(NamedTuple):
    """One call of a function with rules: its name, fixed arguments, the leaves of the others, and its trace."""

    name: str
    fixed: tuple[Any, ...]
    leaves: list[Any]
    in_tree: Any
    names: Sequence[str]
    avals: Sequence[ShapedArray]
    traced: Trace


def signature_of(fun: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function, if it tells."""
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def positional(
    what: str, name: str, signature: inspect.Signature | None, args: Sequence[Any], kwargs: dict[str, Any]
) -> Sequence[Any]:
    """All arguments of a call in their places, those left out with their defaults; TypeError if one has no place."""
    if signature is None:
        if kwargs:
            raise TypeError(f"{what}: {name} tells no signature; pass {next(iter(kwargs))!r} by position")
        return args
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{what}: {name}: {error}") from None
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"{what}: {name} has the keyword-only argument {next(iter(bound.kwargs))!r}, but rules take all arguments "
            "by position; make it a positional one"
        )
    return bound.args


def traced_call(what: str, fun: Callable[..., Any], nums: Sequence[int], args: Sequence[Any]) -> CustomCall:
    """Trace a function for the arguments of one call; those at the positions `nums` reach it as they are."""
    name = name_of(fun)
    fixed = tuple((i, args[i]) for i in sorted({n % len(args) if n < 0 else n for n in nums}) if i < len(args))
    taken = {i for i, _ in fixed}
    positions = [i for i in range(len(args)) if i not in taken]
    leaves, in_tree = flatten_from_user((tuple(args[i] for i in positions), {}))
    names = ArgNames(fun, in_tree, positions)
    avals = avals_of(leaves, names, name, ", or list it in nondiff_argnums" if what != "custom_vmap" else "")
    check_values(leaves, names, name)
    values = leaves if numbers_known(leaves) else None

    def of_others(*others: Any) -> Any:
        full = list(others)
        for i, value in fixed:
            full.insert(i, value)
        return fun(*full)

    traced = trace(of_others, in_tree, avals, values, names, name)
    return CustomCall(name, tuple(x for _, x in fixed), leaves, in_tree, names, avals, traced)


def with_ignored(jaxpr: Jaxpr, position: int, avals: Sequence[ShapedArray]) -> Jaxpr:
    """The jaxpr with further inputs, from `position` on, which it does not read: they are for a rule."""
    if not avals:
        return jaxpr
    return jaxpr.replace(invars=[*jaxpr.invars[:position], *map(Var, avals), *jaxpr.invars[position:]])


def halves(jaxpr: Jaxpr, unknown: Sequence[bool], operands: Sequence[Any]) -> list[Any] | None:
    """The outputs of a called jaxpr that is parted, when some operands are unknown; None if no output is known."""
    parted = partial_eval(jaxpr, tuple(unknown))
    if all(parted.unknown_out):
        return None
    known = chosen(operands, inverse(unknown))
    outs, residuals = parted.parted(known, evaluate(parted.known, known))
    return merged(parted.unknown_out, evaluate(parted.unknown, [*residuals, *chosen(operands, unknown)]), outs)


class Point:
    """Where a call stands in a trace that knows numbers: its operands, so that rules may ask for them too.

    It lives as long as the outermost trace; a rule has a weak reference, since programs that are kept keep their rules.
    """

    __slots__ = ("__weakref__", "operands")

    def __init__(self, operands: Sequence[Any]):
        self.operands = list(operands)


def numbers_known(operands: Sequence[Any]) -> bool:
    """Whether Python may ask for the numbers of these operands, as it may in a gradient outside of jit."""
    return all(type(x) is not Tracer or x.builder.known for x in operands)


def here(operands: Sequence[Any]) -> weakref.ref[Point] | None:
    """The point of a call with these operands; None if Python cannot ask for their numbers."""
    builder = state.builder
    if builder is None or not numbers_known(operands):
        return None
    while builder.parent is not None:
        builder = builder.parent
    point = Point(operands)
    builder.memo[point] = point
    return weakref.ref(point)


def values_at(point: weakref.ref[Point] | None) -> list[Any] | None:
    """The operands of a call, if their trace goes on."""
    found = None if point is None else point()
    return None if found is None else found.operands


# --- what a rule closes over

_MOST = 1000


def closed_over(*things: Any) -> list[Tracer]:
    """The tracers of traces going on that functions and containers hold, as far as a look inside finds them."""
    found: dict[Any, Tracer] = {}
    seen: set[int] = set()
    waiting = list(things)
    while waiting and len(seen) < _MOST:
        thing = waiting.pop()
        if type(thing) is Tracer:
            if is_usable(thing):
                found[thing.variable] = thing
        elif id(thing) not in seen:
            seen.add(id(thing))
            waiting.extend(_held_by(thing))
    return list(found.values())


def _held_by(thing: Any) -> list[Any]:
    """What is directly inside a thing: elements, attributes, and for a function what it was made with."""
    match thing:
        case str() | bytes() | np.ndarray() | ArrayImpl() | type() | ModuleType():
            return []
        case tuple() | list() | set() | frozenset():
            return list(thing)
        case dict():
            return list(thing.values())
        case MethodType():
            return [thing.__self__, thing.__func__]
        case functools.partial():
            return [thing.func, thing.args, thing.keywords]
    held = list(getattr(thing, "__dict__", {}).values())
    if isinstance(thing, FunctionType):
        held += [thing.__defaults__, thing.__kwdefaults__, *(value for _, value in _named_cells(thing))]
    return held


def _named_cells(fun: Any) -> list[tuple[str, Any]]:
    """The variables that a function closes over, those that have a value."""
    found = []
    names = getattr(getattr(fun, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(fun, "__closure__", None) or (), strict=False):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:  # not assigned yet
            continue
    return found


def current(tracer: Tracer) -> Any:
    """The tracer, or what it has become in the rewrite of its program that is going on."""
    assert state.builder is not None
    return tracer if tracer.builder.is_tracing() else state.builder.stand_in(tracer)


def stand_for(closed: Sequence[Any], operands: Sequence[Any]) -> None:
    """Let these operands stand for the variables that a rule closes over, in the trace of the rule that begins."""
    assert state.builder is not None
    state.builder.environment = dict(zip(closed, operands, strict=True))


def captured_names(fun: Any, captured: Sequence[Any]) -> tuple[str, ...]:
    """How the user calls each value that a function captured."""
    cells = _named_cells(inspect.unwrap(fun))
    return tuple(_name_in(cells, x) for x in captured)


def _name_in(cells: Sequence[tuple[str, Any]], value: Any) -> str:
    for name, held in cells:
        for path, leaf in tree_flatten_with_path(held)[0]:
            if leaf is value or (type(leaf) is type(value) is Tracer and leaf.variable is value.variable):
                return repr(name + keystr(path))
    return f"a value of type {aval_of(value).str_short(short_dtypes=False)}"


# --- what a rule returns


class RuleName(NamedTuple):
    """How messages speak of a rule: `custom_jvp: the rule f_jvp (file:line) of f`."""

    what: str
    rule: Callable[..., Any]
    of: str
    error: type[Exception] = TypeError

    def __str__(self) -> str:
        return f"{self.what}: the rule {name_of(self.rule)} ({_place(inspect.unwrap(self.rule))}) of {self.of}"


def _place(rule: Any) -> str:
    """File and line where a rule is written; from its code if it has some, which is quick."""
    code = getattr(rule, "__code__", None)
    file, line = definition(getattr(rule, "func", rule)) if code is None else (code.co_filename, code.co_firstlineno)
    return f"{file}:{line}"


def checked_pair(rule: RuleName, result: Any, parts: str) -> tuple[Any, Any]:
    """What a rule returned, which must be a pair."""
    if isinstance(result, tuple | list) and len(result) == 2:
        return result[0], result[1]
    size = f" of length {len(result)}" if isinstance(result, tuple | list) else ""
    raise rule.error(f"{rule} must return a pair ({parts}), but it returned a {type(result).__name__}{size}")


def checked_tree(rule: RuleName, role: str, value: Any, tree: Any) -> list[Any]:
    """The leaves of what a rule returned as `role`; TypeError unless it has the structure of the function's output."""
    leaves, found = flatten_from_user(value)
    if found != tree:
        where = first_difference(tree, found, (f"the output of {rule.of}", f"the rule's {role}"))
        raise rule.error(f"{rule}: its {role} must have the structure of the output of {rule.of}: {where}")
    return leaves


def checked_types(
    rule: RuleName, role: str, leaves: Sequence[Any], tree: Any, wanted: Sequence[ShapedArray], like: str
) -> None:
    """TypeError unless the leaves of what a rule returned as `role` are of these shapes and dtypes."""
    check_outputs([0.0 if _is_zero(x) else x for x in leaves], tree, f"{rule}, as {role},")
    for i, (x, aval) in enumerate(zip(leaves, wanted, strict=True)):
        found = aval_of(x)
        if (found.shape, found.dtype) != (aval.shape, aval.dtype):
            raise _wrong_type(rule, f"{role}{path_of(tree, i)}", found, aval, like)


def _is_zero(x: Any) -> bool:
    return isinstance(x, SymbolicZero) or getattr(x, "dtype", None) == float0


def _wrong_type(rule: RuleName, leaf: str, found: ShapedArray, wanted: ShapedArray, like: str) -> Exception:
    text = f"{rule} returned {_text(found)} as {leaf}, but {like} is {_text(wanted)}"
    if found.shape != wanted.shape:
        return ShapeError(f"{text}; give it the shape {wanted.shape}, for example with jnp.broadcast_to or .sum")
    if wanted.dtype == float0:
        return rule.error(f"{text}; return the tangent that the rule was given, or np.zeros({wanted.shape}, float0)")
    return rule.error(f"{text}; convert it with .astype({wanted.dtype.name!r})")


def path_of(tree: Any, index: int) -> str:
    """The path of a leaf in a tree, as Python would write it."""
    paths, _ = tree_flatten_with_path(unflatten(tree, range(tree.num_leaves)))
    return keystr(paths[index][0])


def _text(aval: ShapedArray) -> str:
    return aval.str_short(short_dtypes=False)
