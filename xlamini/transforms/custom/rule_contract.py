"""The contract of custom rules: what a rule must return for a call of these types.

An error names the rule and its file, the place in what it returned, what was due there, and a fix.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    cotangent_aval,
    example_of,
    first_difference,
    flatten,
    flatten_call,
    flatten_from_user,
    float0,
    is_differentiable,
    keystr,
    tangent_aval,
    tree_flatten_with_path,
    unflatten,
)
from xlamini.core.errors import UnexpectedTracerError
from xlamini.core.errors.frames import definition
from xlamini.core.program.hi_types import fits, has_hi
from xlamini.core.pytree import structure
from xlamini.core.pytree.diff import LEAF
from xlamini.core.pytree.flattening import flatten_up_to
from xlamini.interpreters.batch import batched_aval
from xlamini.primitives import convert, zeros
from xlamini.staging import ArgNames, name_of
from xlamini.staging.trace.arguments import check_outputs
from xlamini.transforms.custom.symbolic_zero import SymbolicZero


@dataclass(frozen=True)
class CallTypes:
    """The types of a call's arguments and outputs, flat and as trees; `in_tree` is the tree of `(args, {})`."""

    name: str
    in_tree: Any
    in_avals: tuple[ShapedArray, ...]
    out_tree: Any
    out_avals: tuple[ShapedArray, ...]
    names: Sequence[str] = field(compare=False, repr=False)

    def args(self, leaves: Values) -> tuple[Any, ...]:
        """The positional arguments with these leaves."""
        return unflatten(self.in_tree, leaves)[0]


def types_of(fun: Callable[..., Any], args: Values, out: Any) -> CallTypes:
    """The types of a call of `fun` that returned `out`."""
    (leaves, in_tree), (outs, out_tree) = flatten_from_user((tuple(args), {})), flatten_from_user(out)
    avals, out_avals = tuple(map(aval_of, leaves)), tuple(map(aval_of, outs))
    return CallTypes(name_of(fun), in_tree, avals, out_tree, out_avals, ArgNames(fun, in_tree))


class FwdResult(NamedTuple):
    """The flat outputs and residuals that a fwd rule returned, and the tree of the residuals."""

    outs: list[Any]
    residuals: list[Any]
    tree: Any


class Contract(NamedTuple):
    """What a rule must return for a call. As text it names the rule: `custom_jvp: the rule f_jvp (file:line) of f`."""

    what: str
    rule: Callable[..., Any]
    call: CallTypes
    error: type[Exception] = TypeError

    def __str__(self) -> str:
        return f"{self.what}: the rule {name_of(self.rule)} ({_place(inspect.unwrap(self.rule))}) of {self.call.name}"

    def jvp(self, result: Any) -> tuple[list[Any], list[Any]]:
        """From (output, tangent): the flat outputs and their tangents, None for a tangent that is zero."""
        out, tangent = self._pair(result, "primal output, tangent output")
        outs, tangents = self._outputs(out), self.tangents(tangent)
        return outs, [
            None if isinstance(t, SymbolicZero) or not is_differentiable(a) else convert(t, a.dtype, a.weak_type)
            for t, a in zip(tangents, self.call.out_avals, strict=True)
        ]

    def tangents(self, tangent: Any) -> list[Any]:
        """The leaves of the tangent of the output."""
        leaves = self._leaves("tangent output", tangent)
        avals = list(map(tangent_aval, self.call.out_avals))
        self._check_types("tangent output", leaves, avals, "the tangent of the output there")
        return leaves

    def fwd(self, result: Any) -> FwdResult:
        """From (output, residuals): their leaves."""
        out, residuals = self._pair(result, "output, residuals")
        outs = self._outputs(out)
        leaves, tree = flatten_call(residuals)
        check_outputs(leaves, tree, f"{self}, as residuals,")
        return FwdResult(outs, leaves, tree)

    def bwd(self, result: Any) -> list[Any]:
        """From a tuple of cotangents: one for every flat argument, of its type or a symbolic zero."""
        flat = self._spread(tuple(result) if type(result) is list else result)
        return [self._cotangent(i, ct, a) for i, (ct, a) in enumerate(zip(flat, self.call.in_avals, strict=True))]

    def vmap(self, axis: Axis, result: Any) -> tuple[list[Any], list[bool]]:
        """From (output, out_batched): the flat outputs, and which of them have the mapped axis."""
        out, marks = self._pair(result, "output, out_batched")
        leaves, batched = self._leaves("output", out), self._marks(marks)
        avals = [batched_aval(a, axis, 0 if b else None) for a, b in zip(self.call.out_avals, batched, strict=True)]
        like = f"a map of {self.call.name} over {axis.size} examples, with this out_batched,"
        self._check_types("output", leaves, avals, like)
        return _typed(leaves, avals), batched

    @contextmanager
    def explaining(self, further: str = "") -> Iterator[None]:
        """Name the rule in the error for a tracer that the rule cannot use, with another way to pass the value."""
        try:
            yield
        except UnexpectedTracerError as error:
            problem, *leak = str(error).split(". A traced value must")
            if not problem.startswith("custom_"):
                fix = f"; make the value an argument of {self.call.name}{further}" if leak else ""
                error.args = (f"{self}: {problem}{fix}",)
            raise

    def _pair(self, result: Any, parts: str) -> tuple[Any, Any]:
        if isinstance(result, tuple | list) and len(result) == 2:
            return result[0], result[1]
        size = f" of length {len(result)}" if isinstance(result, tuple | list) else ""
        raise self.error(f"{self} must return a pair ({parts}), but it returned a {type(result).__name__}{size}")

    def _leaves(self, role: str, value: Any) -> list[Any]:
        """The leaves of what the rule returned as `role`, which must have the structure of the function's output."""
        leaves, tree = flatten_from_user(value)
        if tree == self.call.out_tree:
            return leaves
        output = f"the output of {self.call.name}"
        where = first_difference(self.call.out_tree, tree, (output, f"the rule's {role}"))
        raise self.error(f"{self}: its {role} must have the structure of {output}: {where}")

    def _outputs(self, out: Any) -> list[Any]:
        """The leaves of the primal output, with the weak types of the function's own."""
        leaves, avals = self._leaves("primal output", out), self.call.out_avals
        self._check_types("primal output", leaves, avals, f"what {self.call.name} itself returns there")
        return _typed(leaves, avals)

    def _check_types(self, role: str, leaves: Values, avals: Avals, like: str) -> None:
        """An error unless the leaves of the output, or of its tangent, have these shapes and dtypes."""
        tree = self.call.out_tree
        check_outputs([0.0 if _is_zero(x) else x for x in leaves], tree, f"{self}, as {role},")
        for i, (x, aval) in enumerate(zip(leaves, avals, strict=True)):
            found = aval_of(x)
            if not fits(found, aval):
                raise self._wrong_type(f"{role}{path_of(tree, i)}", found, aval, like)

    def _wrong_type(self, leaf: str, found: ShapedArray, due: ShapedArray, like: str) -> Exception:
        text = f"{self} returned {found.str_long()} as {leaf}, but {like} is {due.str_long()}"
        if found.shape != due.shape:
            return ShapeError(f"{text}; give it the shape {due.shape}, for example with jnp.broadcast_to or .sum")
        if due.dtype == float0:
            return self.error(f"{text}; return the tangent that the rule was given, or np.zeros({due.shape}, float0)")
        return self.error(f"{text}; convert it with .astype({due.dtype.name!r})")

    def _marks(self, marks: Any) -> list[bool]:
        found, tree = flatten_from_user(marks)
        if tree != self.call.out_tree:
            where = first_difference(self.call.out_tree, tree, ("output", "out_batched"))
            raise ValueError(f"{self} must say for each leaf of the output whether it is batched: {where}")
        for mark in found:
            if not isinstance(mark, bool | np.bool_):
                raise ValueError(
                    f"{self} must return bools in out_batched, True where an output has the mapped axis, but it "
                    f"returned {mark!r}"
                )
        return list(map(bool, found))

    def _spread(self, result: Any) -> list[Any]:
        """The leaves of what bwd returned, with None repeated for each leaf of the subtree that it stands for.

        An array may stand for a container with one leaf. In place of more leaves it would be the cotangent of each.
        """
        in_tree = self.call.in_tree
        due, _ = example_of(in_tree)
        leaves, tree = flatten_from_user(result, _is_none)
        try:
            subtrees = flatten_up_to(tree, due) if isinstance(result, tuple) else [()]
        except ValueError:
            raise self._unlike_arguments(due, result) from None
        flat: list[Any] = []
        for leaf, subtree in zip(leaves, subtrees, strict=False):
            count = sum(x is LEAF for x in flatten(subtree)[0])  # a ref has no cotangent
            if (leaf is not None and count != 1) or not isinstance(result, tuple):
                raise self._unlike_arguments(due, result)
            flat.extend([leaf] * count)
        return flat

    def _unlike_arguments(self, due: Any, result: Any) -> TypeError:
        as_prefix = isinstance(result, tuple)
        where = first_difference(result, due, ("the result", "args"), prefix=as_prefix, is_leaf=_is_none)
        if where is None:
            where = first_difference(due, result, ("args", "the result"))
        return TypeError(
            f"{self} must return a tuple with one cotangent for each argument ({len(due)} here), of the argument's "
            f"structure, or None for zeros: {where}" + ("; write (ct,)" if len(due) == 1 else "")
        )

    def _cotangent(self, index: int, ct: Any, aval: ShapedArray) -> Any:
        if ct is None and is_differentiable(aval) and not has_hi([aval]):
            return zeros(cotangent_aval(aval))  # an array, as in JAX, so that a rule in front of it runs
        if ct is None or isinstance(ct, SymbolicZero):
            return Zero(cotangent_aval(aval))
        name = self.call.names[index]
        check_outputs([ct], structure(0), f"{self}, for the argument {name!r},")
        found, due = aval_of(ct), cotangent_aval(aval) if has_hi([aval]) else aval
        problem = f"{self}: the argument {name!r} is {aval.str_long()}, but its cotangent "
        if found.shape != due.shape:
            raise ShapeError(f"{problem}has shape {found.shape}, not {due.shape}; sum over the axes it has too many")
        if not is_differentiable(due):
            return Zero(cotangent_aval(aval))
        if not (fits(found, due) or _converts(found, due)):
            fix = f"convert it with .astype({due.dtype.name!r}), or return None"
            raise TypeError(f"{problem}is {found.str_long()}; {fix}")
        return convert(ct, due.dtype, due.weak_type)


def path_of(tree: Any, index: int) -> str:
    """The path of a leaf in a tree, as Python writes it."""
    paths, _ = tree_flatten_with_path(example_of(tree))
    return keystr(paths[index][0])


def _place(rule: Any) -> str:
    """The file and line of a rule; from its code object if it has one, which is fast."""
    code = getattr(rule, "__code__", None)
    file, line = definition(getattr(rule, "func", rule)) if code is None else (code.co_filename, code.co_firstlineno)
    return f"{file}:{line}"


def _typed(leaves: Values, avals: Avals) -> list[Any]:
    """The leaves with the dtypes and weak types of these avals."""
    return [convert(x, a.dtype, a.weak_type) for x, a in zip(leaves, avals, strict=True)]


def _is_zero(x: Any) -> bool:
    return isinstance(x, SymbolicZero) or getattr(x, "dtype", None) == float0


def _is_none(x: Any) -> bool:
    return x is None


def _converts(found: ShapedArray, due: ShapedArray) -> bool:
    """Whether a cotangent may be rounded to the argument's dtype: a Python number, or another precision."""
    is_complex = found.dtype.kind == "c"
    return (found.weak_type or is_differentiable(found)) and (due.dtype.kind == "c" or not is_complex)
