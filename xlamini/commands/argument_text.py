"""Arguments of a function as text on a command line: `f32[128,784]`, `{"w": f32[784,10]}`, `key`, `3`, `true`.

    value = type | number | true | false | null | key | "value" | { name: value, … } | [ value, … ] | ( value, … )
    type  = a dtype as jaxprs print it or by its full name, and the sizes in brackets: bf16[8,4], float32[]
"""
from __future__ import annotations

import re
from typing import Any, NoReturn

import numpy as np

import xlamini
from xlamini.core.dtypes import scalar_types, short_name
from xlamini.core.flags.environment_variables import near

_TOKEN = re.compile(r"""\s*([A-Za-z_]\w*\[[^\]]*\]|"[^"]*"|'[^']*'|[\w.+-]+|[][{}(),:])""")
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_WORDS = {"true": True, "false": False, "True": True, "False": False, "null": None, "None": None}
_DTYPES = {name: dtype for dtype in scalar_types for name in (short_name(dtype), dtype.name)}
_FORMS = "write a type such as 'f32[8,4]', a number, true, key, or a dict, list or tuple of them"


def parse_argument(text: str) -> Any:
    """The argument that a text means: types become `ShapeDtypeStruct`s; ValueError says what is wrong with it.

    >>> parse_argument('{"w": f32[8,4], "step": 3}')
    {'w': ShapeDtypeStruct(shape=(8, 4), dtype=float32), 'step': 3}
    """
    return _Parser(text).whole()


def filled(argument: Any) -> Any:
    """The argument with arrays in place of types: normally distributed floats, integers and booleans of zero."""
    random = np.random.default_rng(0)

    def fill(leaf: Any) -> Any:
        if not isinstance(leaf, xlamini.ShapeDtypeStruct):
            return leaf
        exact = scalar_types[leaf.dtype] in (int, bool)
        numbers = np.zeros(leaf.shape) if exact else random.standard_normal(leaf.shape)
        return xlamini.numpy.asarray(numbers.astype(leaf.dtype))

    return xlamini.tree.map(fill, argument)


class _Parser:
    """A text and the tokens of it that are left, the next one last."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = self._tokens()[::-1]

    def _tokens(self) -> list[str]:
        found, at = [], 0
        while self.text[at:].strip():
            match = _TOKEN.match(self.text, at)
            if match is None:
                self._fail(f"{self.text[at:].strip()[:1]!r} is unexpected")
            found.append(match[1])
            at = match.end()
        return found

    def _fail(self, why: str) -> NoReturn:
        raise ValueError(f"argument {self.text!r}: {why}; {_FORMS}")

    def _next(self) -> str:
        if not self.tokens:
            self._fail("it ends too early")
        return self.tokens.pop()

    def whole(self) -> Any:
        value = self.value()
        if self.tokens:
            self._fail(f"{self.tokens[-1]!r} is unexpected")
        return value

    def value(self) -> Any:
        token = self._next()
        if token == "{":
            return dict(self.items(token, self.entry))
        if token in "[(":
            items = self.items(token, self.value)
            return items if token == "[" else tuple(items)
        if token[0] in "\"'":
            return _Parser(token[1:-1]).whole()
        return self.word(token)

    def items(self, opening: str, item: Any) -> list[Any]:
        """Items with commas between and perhaps after them, up to the closing bracket."""
        found: list[Any] = []
        while self.tokens and self.tokens[-1] != _CLOSING[opening]:
            found.append(item())
            if self.tokens and self.tokens[-1] != _CLOSING[opening] and self._next() != ",":
                self._fail(f"a comma or {_CLOSING[opening]!r} is missing")
        if self._next() != _CLOSING[opening]:
            self._fail(f"{_CLOSING[opening]!r} is missing")
        return found

    def entry(self) -> tuple[str | int, Any]:
        name = self._next()
        if self._next() != ":":
            self._fail(f"':' is missing after {name!r}")
        return int(name) if name.isdecimal() else name.strip("\"'"), self.value()

    def word(self, token: str) -> Any:
        if token in _WORDS:
            return _WORDS[token]
        if token == "key":
            return xlamini.random.key(0)
        if token[-1] == "]":
            return self.type(*token[:-1].split("["))
        for kind in (int, float):
            try:
                return kind(token)
            except ValueError:
                pass
        if token in _DTYPES:
            self._fail(f"{token!r} has no shape; {token}[] is a scalar")
        self._fail(f"{token!r} is unknown{near(token, ['key', 'true', 'false', 'null'])}")

    def type(self, name: str, sizes: str) -> Any:
        if name not in _DTYPES:
            self._fail(f"there is no dtype {name!r}{near(name, _DTYPES)}")
        parts = [part.strip() for part in sizes.split(",")] if sizes.strip() else []
        if not all(part.isdecimal() for part in parts):
            self._fail(f"the sizes of {name}[{sizes}] must be numbers")
        return xlamini.ShapeDtypeStruct(tuple(map(int, parts)), _DTYPES[name])
