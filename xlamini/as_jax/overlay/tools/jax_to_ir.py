"""`jax.tools.jax_to_ir`: a function as a program of XLA in files, without a call of it.

    python -m xlamini run -m jax.tools.jax_to_ir --fn train.step --input_shapes '[("x", "f32[8]")]' --ir_dest fn.pb
"""
from __future__ import annotations

import argparse
import functools
import importlib
import re
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import xlamini
from xlamini.as_jax.missing_names import fall_through
from xlamini.core.program.avals import ShapedArray

__getattr__: Final = fall_through(__name__)

_KINDS = {"u": "uint", "s": "int", "f": "float", "c": "complex"}
_NAMES = {"pred": "bool", "bf16": "bfloat16"}


def jax_to_ir(
    fn: Callable[..., Any],
    input_shapes: Sequence[tuple[str, Any]],
    *,
    constants: Mapping[str, Any] | None = None,
    format: str,
) -> tuple[bytes, str]:
    """A function as a serialized HloModuleProto, and as text.

    Args:
      fn: the function.
      input_shapes: pairs of an argument's name and its type, in the order of the program's parameters.
      constants: values of other arguments, by name.
      format: "HLO"; NotImplementedError for "TF".
    """
    if format != "HLO":
        raise NotImplementedError(f"jax_to_ir: format must be 'HLO', got {format!r}; there is no graph of TensorFlow")
    constants, names = dict(constants or {}), [name for name, _ in input_shapes]
    if both := sorted(constants.keys() & {*names}):
        raise ValueError(f"jax_to_ir: {', '.join(both)} is in both input_shapes and constants; give it once")
    types = [xlamini.ShapeDtypeStruct(aval.shape, aval.dtype) for _, aval in input_shapes]
    in_order = lambda *args: fn(**dict(zip(names, args, strict=True)), **constants)  # noqa: E731
    module = xlamini.jit(in_order).lower(*types).compiler_ir("hlo")
    return module.as_serialized_hlo_module_proto(), module.as_hlo_text()


jax_to_hlo: Final = functools.partial(jax_to_ir, format="HLO")


def parse_shape_str(s: str) -> ShapedArray:
    """The type that a text such as "f32[8,128]" names; ValueError for another one."""
    match = re.fullmatch(r"(pred|bf16|[usfc]\d+)\[([\d, ]*)\]", s)
    if match is None:
        raise ValueError(f'parse_shape_str: a type is written as "f32[8,128]" or "pred[]", got {s!r}')
    name, sizes = match.groups()
    dtype = _NAMES.get(name) or _KINDS[name[0]] + name[1:]
    return xlamini.ShapeDtypeStruct([int(size) for size in sizes.split(",") if size.strip()], dtype).aval


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="jax_to_ir", description=__doc__)
    parser.add_argument("--fn", required=True, help="the function, as module.name")
    parser.add_argument("--input_shapes", required=True, help="a list of pairs: a name, and a type as text")
    parser.add_argument("--constants", default="{}", help="a dict of values")
    parser.add_argument("--evaled_constants", default="{}", help="a dict of values, where texts are evaluated")
    parser.add_argument("--ir_format", default="HLO", choices=["HLO"])
    parser.add_argument("--ir_dest", type=Path, help="the file for the HloModuleProto")
    parser.add_argument("--ir_human_dest", type=Path, help="the file for the text")
    given = parser.parse_args(argv)
    module, _, name = given.fn.rpartition(".")
    shapes = [(key, parse_shape_str(text)) for key, text in literal_eval(given.input_shapes)]
    texts = literal_eval(given.evaled_constants)
    evaled = {key: literal_eval(value) if isinstance(value, str) else value for key, value in texts.items()}
    constants = {key: _array(value) for key, value in {**literal_eval(given.constants), **evaled}.items()}
    program, text = jax_to_hlo(getattr(importlib.import_module(module), name), shapes, constants=constants)
    if given.ir_dest:
        given.ir_dest.write_bytes(program)
    if given.ir_human_dest:
        given.ir_human_dest.write_text(text)


def _array(value: Any) -> Any:
    return xlamini.numpy.asarray(value) if isinstance(value, list) else value


if __name__ == "__main__":
    main()
