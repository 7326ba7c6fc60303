"""The text of symbolic sizes and of their constraints, read as Python expressions of a few kinds."""
from __future__ import annotations

import ast
import operator
from collections.abc import Sequence
from typing import Any, NoReturn

from xlamini.core.sizes.expression import Binary, Size
from xlamini.core.sizes.values import OPERATIONS

LONGEST = 4096
"""The longest text that is read; a shape has far fewer characters."""
MOST_BITS = 64

_BINARY: dict[type, Binary] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_SIZES = "sizes are made of names, whole numbers, + - * // % ^, floordiv, mod, max and min"


def parse_shape(text: str, like: Sequence[Any] | None, scope: Any) -> tuple[Size, ...]:
    """The shape that a text describes; `...` and `_` stand for the sizes of `like`."""
    if not isinstance(text, str):
        raise TypeError(f"a symbolic shape is a text such as 'b, 2*n + 1', got {text!r}")
    body = _parsed(text, f"({_stripped(text)},)" if _stripped(text) else "()")
    entries = body.elts if isinstance(body, ast.Tuple) else [body]
    places = [i for i, e in enumerate(entries) if isinstance(e, ast.Constant) and e.value is Ellipsis]
    if places:
        if len(places) > 1 or places[0] != len(entries) - 1:
            _refuse(text, "... may stand once, at the end")
        if like is None:
            _refuse(text, "... stands for the sizes of like=, which is not given")
        rest = max(len(like) - len(entries) + 1, 0)
        entries = [*entries[:-1], *[ast.Name("_")] * rest]
    if like is not None and len(like) != len(entries):
        _refuse(text, f"it has {len(entries)} sizes, and the argument has {len(like)} dimensions, {tuple(like)}")
    return tuple(_entry(e, i, text, like, scope) for i, e in enumerate(entries))


def _stripped(text: str) -> str:
    """The text without commas at the end, and without parentheses around all of it."""
    text = text.strip()
    if text.startswith("(") and text.endswith(")") and _closes_at_end(text):
        text = text[1:-1].strip()
    return text.rstrip(",").rstrip()


def _closes_at_end(text: str) -> bool:
    depth = 0
    for i, c in enumerate(text):
        depth += {"(": 1, ")": -1}.get(c, 0)
        if not depth:
            return i == len(text) - 1
    return False


def _entry(node: ast.expr, i: int, text: str, like: Sequence[Any] | None, scope: Any) -> Size:
    if isinstance(node, ast.Name) and node.id == "_":
        if like is None:
            _refuse(text, "_ stands for a size of like=, which is not given")
        if like[i] is None:
            _refuse(text, f"_ stands for size {i} of like=, which is not known there")
        return like[i]
    size = _size(node, text, scope)
    known = None if like is None else like[i]
    if isinstance(size, int) and isinstance(known, int) and known != size:
        _refuse(text, f"size {i} is {size}, but the argument's is {known}")
    return size


def parse_constraint(text: Any, scope: Any) -> tuple[Size, str, Size]:
    """The sides of a constraint and its sign, >= or ==."""
    if not isinstance(text, str):
        raise ValueError(f"a constraint must be a text such as 'a >= 3', got {text!r}")
    signs: dict[type, str] = {ast.GtE: ">=", ast.LtE: "<=", ast.Eq: "=="}
    wanted = "a constraint has one of the signs >=, <= and ==, as in 'a >= 3'"
    node = _parsed(text, text.strip(), wanted)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or type(node.ops[0]) not in signs:
        _refuse(text, wanted)
    left, right = _size(node.left, text, scope), _size(node.comparators[0], text, scope)
    sign = signs[type(node.ops[0])]
    return (right, ">=", left) if sign == "<=" else (left, sign, right)


def parse_size(text: str, scope: Any) -> Size:
    """The size that a text describes."""
    return _size(_parsed(text, text.strip()), text, scope)


def _parsed(text: str, source: str, wanted: str = "it is no list of sizes such as 'b, 2*n + 1'") -> ast.expr:
    if len(text) > LONGEST:
        raise ValueError(f"the text of a symbolic shape is longer than {LONGEST} characters: {text[:40]!r}...")
    try:
        return ast.parse(source.replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        _refuse(text, wanted)


def _size(node: ast.expr, text: str, scope: Any) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return scope.variable(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_size(node.operand, text, scope)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _binary(node, text, scope)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2 and not node.keywords:
        x, y = (_size(a, text, scope) for a in node.args)
        return _result(text, OPERATIONS.get(node.func.id), x, y)
    return _refuse(text, f"{ast.unparse(node)!r} is no size; {_SIZES}")


def _binary(node: ast.BinOp, text: str, scope: Any) -> Any:
    x, y = _size(node.left, text, scope), _size(node.right, text, scope)
    if isinstance(node.op, ast.Pow) and not (isinstance(y, int) and 0 <= y <= 16):
        _refuse(text, "a power must be a number from 0 to 16")
    return _result(text, _BINARY[type(node.op)], x, y)


def _result(text: str, operation: Binary | None, x: Any, y: Any) -> Any:
    if operation is None:
        _refuse(text, f"there are no other functions of sizes; {_SIZES}")
    try:
        found = operation(x, y)
    except ZeroDivisionError:
        return _refuse(text, "it divides by 0")
    if isinstance(found, int) and found.bit_length() > MOST_BITS:
        _refuse(text, f"it has a number of more than {MOST_BITS} bits")
    return found


def _refuse(text: str, why: str) -> NoReturn:
    raise ValueError(f"symbolic shape {text!r}: {why}")
