"""A jaxpr's digest: a text that is the same in every process for programs that run alike.

`executable_key` in `structure.py` tells programs of one process apart; this tells a program from those of other
processes. Where an equation comes from and what its rules of derivatives are does not count. A param counts with its
type, so that 1, 1.0 and True differ. What another process cannot recognise, such as a user's function, has no digest.
"""
from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from xlamini.core.caching.structure import RewriteRule
from xlamini.core.dtypes.table import ExtendedDType
from xlamini.core.errors.frames import is_own_module
from xlamini.core.program.avals import ShapedArray
from xlamini.core.program.jaxpr import Equation, EquationKind, Jaxpr, Literal, Var, once
from xlamini.core.program.memory_space import DEVICE
from xlamini.core.program.primitive import Primitive

Writer = Callable[[Any], str]


class NoDigest(Exception):
    """Raised for a part of a program that another process would not recognise."""


@once
def digest(jaxpr: Jaxpr) -> str:
    """SHA-256 of a program's equations and types; NoDigest if something in it is of this process alone."""
    return hashlib.sha256(_written(jaxpr)).hexdigest()


def sketch(jaxpr: Jaxpr) -> str:
    """A short text that equal programs share, and few others: of their types and their number of equations."""
    texts = [str(len(jaxpr.eqns)), *map(_aval, jaxpr.in_avals), *map(_aval, jaxpr.out_avals)]
    return hashlib.sha256(" ".join(texts).encode()).hexdigest()[:16]


def _written(jaxpr: Jaxpr) -> bytes:
    """The texts of operations, literals and input types, and numbers: which is applied to which values.

    A value has the number of its definition, a literal -1 less the number of its text. Formatting text for each
    equation would take most of the time.
    """
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    numbers: dict[Var, int] = {var: i for i, var in enumerate(inputs)}
    texts = _Texts()
    flow = [len(jaxpr.constvars), len(inputs), *[texts[_aval(v.aval)] for v in inputs]]
    by_kind: dict[EquationKind | None, int] = {}
    add = flow.append
    for eqn in jaxpr.eqns:
        operation = by_kind.get(eqn.kind)
        if operation is None:
            operation = texts[_operation(eqn)]
            if eqn.kind is not None and eqn.kind.shared:  # whose rule of lowering runs once, too
                by_kind[eqn.kind] = operation
        add(operation)
        for atom in eqn.invars:
            add(numbers[atom] if type(atom) is Var else ~texts[_literal(atom)])
        for var in eqn.outvars:
            numbers[var] = len(numbers)
    flow += [numbers[a] if type(a) is Var else ~texts[_literal(a)] for a in jaxpr.outvars]
    return np.array([len(flow), *flow], "<i8").tobytes() + "\n".join(texts).encode()


class _Texts(dict[str, int]):
    """The numbers of texts, in the order in which they are first asked for."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


def _operation(eqn: Equation) -> str:
    """The primitive, the params, the number of operands and the result types."""
    found = [_primitive(eqn.primitive), str(len(eqn.invars))]
    for name, value in eqn.params.items():
        found += (name, write(value))
    return " ".join([*found, *[_aval(var.aval) for var in eqn.outvars]])


def write(value: Any) -> str:
    """A param as text, with its type; NoDigest if there is none that another process would write too."""
    kind = value.__class__
    writer = _writers.get(kind)
    if writer is None:
        writer = _writers[kind] = _writer(kind)
    return writer(value)


def _refuse(value: Any) -> str:
    raise NoDigest(f"a {type(value).__name__}")


class _Table(dict[Any, str]):
    """Texts of things that are met again and again."""

    def __init__(self, write: Writer):
        super().__init__()
        self._write = write

    def __missing__(self, key: Any) -> str:
        found = self[key] = self._write(key)
        return found


def _write_aval(aval: ShapedArray) -> str:
    split = "" if aval.explicit_sharding is None else f"{aval.str_short()}{aval.explicit_sharding.mesh}"
    varies = f"{sorted(map(str, aval.vma))}" if aval.vma else ""
    space = "" if aval.memory_space is DEVICE else aval.memory_space.name
    return f"{aval.dtype!r}{aval.shape}{'~' if aval.weak_type else ''}{varies}{split}{space}".replace(" ", "")


def _write_primitive(primitive: Primitive) -> str:
    kind = type(primitive)
    if not _is_own(kind):
        _refuse(primitive)  # its lowering is not part of the library, whose source is in the key
    return f"{kind.__module__}.{kind.__qualname__}:{primitive.name}"


def _primitive(primitive: Primitive) -> str:
    return _refuse(primitive) if "lower" in primitive.given else _own_primitive(primitive)


_aval = _Table(_write_aval).__getitem__
_own_primitive = _Table(_write_primitive).__getitem__
_dtype = _Table(repr).__getitem__


def _literal(literal: Literal) -> str:
    value = literal.val
    text = repr(value) if value.__class__ in _SIMPLE else value.tobytes().hex()
    return f"{text}:{_aval(literal.aval)}"


def _write_tuple(value: tuple) -> str:
    if _SIMPLE.issuperset(map(type, value)):
        return repr(value)
    return f"({','.join([write(v) for v in value])})"


def _write_dict(value: dict) -> str:
    return f"{{{','.join([f'{write(k)}:{write(v)}' for k, v in value.items()])}}}"


def _write_set(value: frozenset) -> str:
    return f"{{{','.join(sorted(map(write, value)))}}}"


def _write_number(value: np.generic) -> str:
    return f"{_dtype(value.dtype)}{value.tobytes().hex()}"


def _write_enum(value: enum.Enum) -> str:
    return f"{_named(type(value))}.{value.name}"


def _write_fields(value: Any) -> str:
    kind = type(value)
    names = kind._fields if hasattr(kind, "_fields") else [field.name for field in dataclasses.fields(kind)]
    return f"{_named(kind)}({','.join([write(getattr(value, name)) for name in names])})"


def _write_function(value: Any) -> str:
    return _named(value) if _is_own(value) else _refuse(value)


def _named(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _is_own(thing: Any) -> bool:
    """Whether a class or function stands in the library's source, not inside another function."""
    return is_own_module(thing.__module__) and "<" not in thing.__qualname__


def _write_type(value: type) -> str:
    return _named(value) if _is_own(value) or value.__module__ in ("builtins", "numpy", "ml_dtypes") else _refuse(value)


_SIMPLE = frozenset({bool, int, float, complex, str, bytes, type(None)})
_writers: dict[type, Writer] = {
    **dict.fromkeys(_SIMPLE, repr),
    tuple: _write_tuple,
    list: _write_tuple,
    dict: _write_dict,
    frozenset: _write_set,
    FunctionType: _write_function,
    type: _write_type,
    ShapedArray: _aval,
    Jaxpr: digest,
}
_families: dict[type, Writer] = {
    RewriteRule: lambda rule: "rule",
    np.dtype: _dtype,
    np.generic: _write_number,
    ExtendedDType: lambda dtype: f"{dtype} {dtype.physical_shape} {dtype.physical_dtype}",
    enum.Enum: _write_enum,
    Primitive: _primitive,
    type: _write_type,
}


def _writer(kind: type) -> Writer:
    """How a class that is met for the first time is written."""
    for base, writer in _families.items():
        if issubclass(kind, base):
            return writer
    return _write_fields if hasattr(kind, "_fields" if issubclass(kind, tuple) else "__dataclass_fields__") else _refuse
