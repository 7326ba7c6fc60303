"""Symbolic sizes as texts in files: written as they are shown, and read into one new scope.

A short text can stand for a polynomial that fills the memory, such as `((a + b)^16)^16`, or for numbers without an end.
So what a text costs is bounded before it is calculated.
"""
from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xlamini.core import Avals, LoadError, float0
from xlamini.core.errors import InconclusiveDimensionOperation
from xlamini.core.sizes.expression import Size
from xlamini.core.sizes.parser import parse_size
from xlamini.core.sizes.scope import SymbolicScope
from xlamini.core.sizes.solving import entries_of, solution
from xlamini.core.sizes.values import variables

_LONGEST = 1024
_MOST_TEXTS = 1000
_MOST_CONSTRAINTS = 64
_MOST_TERMS, _MOST_BITS, _MOST_POWER = 128, 128, 16
_MOST_CHOICES = 8
"""How many `max` and `min` one size, or all constraints, may have: the search for bounds tries each choice of operands.
"""
_CHOICES = ("max", "min")


def constraints_of(avals: Avals) -> list[str] | None:
    """The constraints on the sizes of these types; None if no size is symbolic.

    ValueError for sizes that are too long for a file.
    """
    entries = entries_of(a.shape for a in avals)
    if not entries:
        return None
    texts = [c.text for c in entries[0].size.scope.constraints]
    _check_constraints(texts)
    for entry in entries:
        _check_cost(entry.size.text)
    return texts


def size_reader(constraints: Sequence[Any]) -> Callable[[str], Size]:
    """A function that reads the texts of sizes under these constraints; ValueError or LoadError for malformed ones."""
    _check_constraints(constraints)
    scope, known = _decided(lambda: SymbolicScope(constraints)), dict[str, Size]()

    def read(text: str) -> Size:
        if text not in known:
            if len(known) == _MOST_TEXTS:
                raise LoadError(f"its header has more than {_MOST_TEXTS} symbolic sizes")
            _check_cost(text)
            known[text] = _decided(lambda: _not_negative(parse_size(text, scope)))
        return known[text]

    return read


def promises(sizes: Iterable[Any]) -> list[str]:
    """The constraints that no size is negative, for those of which that is not known; ValueError for no sizes."""
    scope = SymbolicScope(())
    texts = dict.fromkeys(size for size in sizes if isinstance(size, str))
    if len(texts) > _MOST_TEXTS:
        raise LoadError(f"its header has more than {_MOST_TEXTS} symbolic sizes")
    return [f"{text} >= 0" for text in texts if not _is_decided(text, scope)]


def _is_decided(text: str, scope: SymbolicScope) -> bool:
    _check_cost(text)
    size = parse_size(text, scope)
    return (size if isinstance(size, int) else scope.at_least(size, 0)) is not None


def check_determined(ins: Avals, outs: Avals) -> None:
    """ValueError unless the arguments with data determine all symbolic sizes, which are of one scope."""
    every = entries_of(a.shape for a in (*ins, *outs))
    for entry in every:
        if entry.size.scope is not every[0].size.scope:
            raise ValueError(
                f"the sizes {every[0].size} and {entry.size} are of different scopes; make both by one call of "
                "symbolic_shape, or pass scope="
            )
    found = {step.variable for step in solution(entries_of(a.shape for a in ins if a.dtype != float0))}
    for entry in every:
        if missing := sorted(variables(entry.size) - found):
            raise ValueError(f"no argument with data has the symbolic size {missing[0]} of {entry.size}")


def _not_negative(size: Size) -> Size:
    if not size >= 0:
        raise ValueError(f"its header has the negative size {size}")
    return size


def _decided(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except InconclusiveDimensionOperation as error:
        raise ValueError(f"its header has sizes that may be negative: {error}") from None


def _check_constraints(constraints: Sequence[Any]) -> None:
    """ValueError for constraints that are none, or that are too many for a file."""
    if len(constraints) > _MOST_CONSTRAINTS:
        raise ValueError(f"a file has up to {_MOST_CONSTRAINTS} constraints on sizes, and here are {len(constraints)}")
    for text in constraints:
        _check_cost(text)
    if sum(_choices(_parsed(text)) for text in constraints) > _MOST_CHOICES:
        raise ValueError(f"a file has up to {_MOST_CHOICES} calls of max and min in its constraints on sizes")


def _check_cost(text: Any) -> None:
    """ValueError for a text that is no size or constraint, or that takes long to calculate."""
    if not isinstance(text, str):
        raise ValueError(f"a symbolic size must be a text, not {text!r:.40}")
    if len(text) > _LONGEST:
        raise ValueError(f"the symbolic size {text[:40]!r}... has more than {_LONGEST} characters")
    try:
        node = _parsed(text).body
        allowed = _choices(node) <= _MOST_CHOICES and _cost(node) is not None
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"the symbolic size {text[:40]!r} cannot be read") from None
    if not allowed:
        raise ValueError(f"the symbolic size {text[:40]!r} is none, or is too long for a file")


def _parsed(text: str) -> ast.Expression:
    return ast.parse(text.strip().replace("^", "**"), mode="eval")


def _choices(node: ast.AST) -> int:
    return sum(isinstance(n, ast.Name) and n.id in _CHOICES for n in ast.walk(node))


def _cost(node: ast.expr) -> tuple[int, int] | None:
    """No fewer terms and bits than the polynomial of an expression has; None if these are too many."""
    if isinstance(node, ast.Constant | ast.Name):
        number = node.value if isinstance(node, ast.Constant) else 1
        return _bounded(1, number.bit_length()) if isinstance(number, int) else None
    if isinstance(node, ast.UnaryOp):
        return _cost(node.operand)
    costs = [cost for cost in map(_cost, _parts(node)) if cost is not None]
    if len(costs) != 2:
        return None
    (terms, bits), (others, more) = costs
    if not isinstance(node, ast.BinOp) or isinstance(node.op, ast.Add | ast.Sub | ast.FloorDiv | ast.Mod):
        return _bounded(terms + others, bits + more)
    if isinstance(node.op, ast.Mult):
        return _bounded(terms * others, bits + more)
    power: Any = node.right.value if isinstance(node.right, ast.Constant) else None
    known = isinstance(node.op, ast.Pow) and type(power) is int and power <= _MOST_POWER
    return _bounded(terms**power, bits * power) if known else None


def _parts(node: ast.expr) -> list[ast.expr]:
    """The two sides of an operation, a call or a comparison."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return node.args if isinstance(node, ast.Call) else []


def _bounded(terms: int, bits: int) -> tuple[int, int] | None:
    return (terms, bits) if terms <= _MOST_TERMS and bits <= _MOST_BITS else None
