"""The MLIR context, and the types, attributes and locations interned in it.

Each thread has one context, because making one costs milliseconds; it is replaced now and then, because MLIR never
frees interned objects. Types and attributes are cached by the Python value that they represent.
"""
from __future__ import annotations

import re
import sys
import threading
import types
from collections.abc import Sequence
from typing import Any, Final, Literal

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir

from xlamini.core import OwnedMemo, ShapedArray
from xlamini.core.errors.frames import Source
from xlamini.core.flags.jax_flags import hlo_source_file_canonicalization_regex
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.lowering.replay import Recipe
from xlamini.runtime.files.module_reader import new_context

MODULES_PER_CONTEXT = 500

_DIALECTS = ("builtin", "func", "stablehlo", "chlo")
_SAMPLE = """func.func @f(%x: tensor<f32>) -> tensor<f32> {
    %y = chlo.erf %x : tensor<f32> -> tensor<f32>
    %z = stablehlo.sine %y : tensor<f32>
    func.return %z : tensor<f32>
}"""


def _skip_op_classes(context: ir.Context) -> None:
    """Keep MLIR from importing a dialect's Python module at the dialect's first operation.

    The module defines a class for each operation and takes 20 ms to import, but xlamini creates operations by name.
    MLIR looks it up once, so a placeholder module takes its place during a first operation of each dialect.
    """
    absent = [n for n in (f"jaxlib.mlir.dialects.{d}" for d in _DIALECTS) if n not in sys.modules]
    sys.modules.update((name, types.ModuleType(name)) for name in absent)
    try:
        module = ir.Module.parse(_SAMPLE, context)
        _ = module.operation.opview
        for function in module.body.operations:
            list(function.regions[0].blocks[0].operations)
    finally:
        for name in absent:
            del sys.modules[name]


_ELEMENT_TYPES = {
    "bool": "i1",
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float0": "i1",
}


_WITHOUT_OPERATIONS = {"float6_e2m3fn", "float6_e3m2fn", "int1", "uint1"}


def element_type_text(dtype: np.dtype) -> str:
    """MLIR's name of a dtype; TypeError for dtypes that no operation takes, because XLA aborts on some of them."""
    name = dtype.name if dtype.names is None and dtype.kind != "V" else str(dtype)
    if name in _WITHOUT_OPERATIONS:
        raise TypeError(f"XLA has no operations on dtype {name}; convert with NumPy first: np.asarray(x, 'float32')")
    if dtype.kind == "b" and dtype.itemsize == 0:
        return "i1"
    if name in _ELEMENT_TYPES:
        return _ELEMENT_TYPES[name]
    if name.startswith("uint"):
        return "ui" + name[4:]
    if name.startswith("int"):
        return "i" + name[3:]
    return "f" + name[len("float") :].upper().replace("_", "")


class Recipes:
    """The lowering recipes of one context, by kind of equation; False where there can be none."""

    __slots__ = ("__weakref__", "table")

    def __init__(self) -> None:
        self.table: dict[Any, Recipe | Literal[False]] = {}


lowering_recipes: Final = OwnedMemo("kind: lowering recipes", 4096, "table")


class Interned:
    """An MLIR context with caches of its types, attributes and recipes."""

    def __init__(self) -> None:
        self.context: Any = new_context()
        _skip_op_classes(self.context)
        self.modules = 0
        self._types: dict[Any, ir.Type] = {}
        self._attributes: dict[Any, ir.Attribute] = {}
        self._recipes: dict[Any, Recipes] = {}
        self.unknown: ir.Location = ir.Location.unknown(self.context)
        self.token: ir.Type = ir.Type.parse("!stablehlo.token", self.context)

    def element_type(self, dtype: Any) -> ir.Type:
        found = self._types.get(dtype)
        if found is None:
            text = element_type_text(dtype)
            found = self._types[dtype] = ir.Type.parse(text, self.context)
        return found

    def type(self, aval: ShapedArray) -> ir.Type:
        found = self._types.get(aval)
        if found is None:
            element = self.element_type(aval.dtype)
            found = ir.RankedTensorType.get(_extents(aval.shape), element, loc=self.unknown)
            self._types[aval] = found
        return found

    def parse(self, text: str) -> ir.Attribute:
        """An attribute parsed from MLIR's textual form."""
        found = self._attributes.get(text)
        if found is None:
            found = self._attributes[text] = ir.Attribute.parse(text, self.context)
        return found

    def i64s(self, values: Sequence[int]) -> ir.Attribute:
        key = ("i64s", tuple(values))
        found = self._attributes.get(key)
        if found is None:
            found = self._attributes[key] = ir.DenseI64ArrayAttr.get(list(values), self.context)
        return found

    def bools(self, values: Sequence[bool]) -> ir.Attribute:
        return self.parse(f"array<i1: {', '.join(str(bool(v)).lower() for v in values)}>" if values else "array<i1>")

    def string(self, value: str | bytes) -> ir.Attribute:
        """A string attribute of text or bytes."""
        return ir.StringAttr.get(value, self.context)

    def recipes(self, *circumstances: Any) -> Recipes:
        """The recipe cache for a platform, one device or several, and a trace context."""
        return self._recipes.setdefault(circumstances, Recipes())

    def place(self, source: Source | None) -> ir.Location:
        """The location of a line of the user's program, without what the flag on source files removes of its path."""
        if source is None:
            return self.unknown
        removed = hlo_source_file_canonicalization_regex.value
        file = re.sub(removed, "", source.file) if removed else source.file
        return ir.Location.file(file, source.line, 0, self.context)

    def dense(self, value: np.ndarray) -> ir.Attribute:
        """An array as a dense elements attribute."""
        element, dtype = self.element_type(value.dtype), value.dtype
        if dtype == np.bool_ or (dtype.name in _NARROW and "int" in dtype.name):
            kind = ir.RankedTensorType.get(value.shape, element, loc=self.unknown)
            return self.parse(f"dense<{value.astype(int).tolist()!s}> : {kind}".replace("dense<[]>", "dense<>"))
        raw = np.ascontiguousarray(value)
        bits: Any = raw.view(f"u{dtype.itemsize}") if dtype.name in _NARROW else raw
        return ir.DenseElementsAttr.get(bits, type=element, shape=value.shape, context=self.context)


def _extents(shape: Sequence[Any]) -> list[int]:
    """The sizes as MLIR has them, `?` for a symbolic one."""
    unknown = ir.ShapedType.get_dynamic_size()
    return [unknown if isinstance(size, SymbolicSize) else size for size in shape]


_NARROW = {np.dtype(t).name for t in vars(ml_dtypes).values() if isinstance(t, type) and issubclass(t, np.generic)}

_local = threading.local()


def interned() -> Interned:
    """This thread's context, replaced after MODULES_PER_CONTEXT modules."""
    current = getattr(_local, "interned", None)
    if current is None or current.modules >= MODULES_PER_CONTEXT:
        current = _local.interned = Interned()
    current.modules += 1
    return current
