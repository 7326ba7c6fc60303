"""The stages of a jitted function."""

from __future__ import annotations

from typing import Any

from tests.support.error_rows import ones, power_of, row, square
from xlamini import grad, jit, typeof, vmap
from xlamini.errors import JaxRuntimeError


def lowered(*args: Any, **options: Any) -> Any:
    return jit(power_of, **options).lower(*(args or (ones(3), 2.0)))


def compiled(*args: Any, **options: Any) -> Any:
    return lowered(*args, **options).compile()


ROWS = [
    row(
        "types", lambda: compiled()(ones(4), 2), TypeError,
        "compiled power_of was called with arguments of other types",
        "x: compiled for f32[3], called with f32[4]; n: compiled for f32[], called with i32[]", "jitted function",
    ),
    row("too few", lambda: compiled()(ones(3)), TypeError, "tuple of length 2", "tuple of length 1"),
    row("by keyword", lambda: compiled()(ones(3), n=2.0), TypeError, "another structure"),
    row(
        "static", lambda: compiled(1.0, 3, static_argnums=1)(1.0, 3), TypeError,
        "leave out the static arguments (n), whose values are compiled in",
    ),
    row(
        "in grad", lambda: grad(lambda x: compiled(1.0, 2.0)(x, 2.0))(1.0), TypeError, "called with a traced value",
        "as the argument 'x'", "call the jitted function itself",
    ),
    row("in vmap", lambda: vmap(lambda x: compiled()(x, 2.0))(ones(2, 3)), TypeError, "a compiled program cannot be"),
    row("options", lambda: lowered().compile(3), TypeError, "compiler_options must be a dict of XLA's options, got 3"),
    row("no option", lambda: lowered().compile({"foo": 1}), JaxRuntimeError, "No such compile option: 'foo'"),
    row("ir", lambda: lowered().compiler_ir("mlir"), ValueError, "compiler_ir: dialect must be 'stablehlo' or 'hlo'"),
    row("text", lambda: lowered().as_text("llvm"), ValueError, "got 'llvm'", "compile().as_text()"),
    row(
        "platform", lambda: jit(square).trace(1.0).lower(lowering_platforms=("abacus",)), ValueError,
        "there is no platform 'abacus'", "cpu, cuda, rocm, tpu",
    ),
    row(
        "platforms", lambda: jit(square).trace(1.0).lower(lowering_platforms=("cpu", "tpu")), NotImplementedError,
        "a tuple of one platform, got ('cpu', 'tpu')",
    ),
    row(
        "elsewhere", lambda: jit(square).trace(1.0).lower(lowering_platforms=("tpu",)).compile(), ValueError,
        "square was lowered for tpu", "leave out lowering_platforms",
    ),
    row("typeof", lambda: typeof("a"), TypeError, "typeof is 'a' of type str"),
    row("typeof a container", lambda: typeof({"a": 1}), TypeError, "{'a': 1} is a container", "tree.map(typeof, x)"),
]
