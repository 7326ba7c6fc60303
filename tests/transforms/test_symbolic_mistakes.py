"""Mistakes with symbolic sizes that a newcomer makes: each has a typed error that names what is wrong and one fix."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import export, lax, numpy as jnp
from xlamini.core.sizes.expression import NumberNeeded
from xlamini.errors import InconclusiveDimensionOperation, LoadError, ShapeError

B, = export.symbolic_shape("b")
C, D = export.symbolic_shape("c, d")


def struct(*shape: Any) -> Any:
    return xlamini.ShapeDtypeStruct(shape, "float32")


def of_b(fun: Callable[..., Any]) -> Callable[[], Any]:
    return lambda: export.export(xlamini.jit(fun))(struct(B))


GOOD = export.export(xlamini.jit(lambda x: x * 2))(struct(C, 2 * D))
BLOB = bytes(GOOD.serialize())
FLIPPED = bytes([*BLOB[:200], BLOB[200] ^ 4, *BLOB[201:]])
SAME = export.export(xlamini.jit(lambda x, y: x + y))(struct(B), struct(B))
NEEDED = "the size b is symbolic, and a number is needed here; loop over it with lax.fori_loop, make arrays"

MISTAKES = {
    "a loop": (of_b(lambda x: [x for _ in range(x.shape[0])]), NumberNeeded, NEEDED),
    "a loop over rows": (of_b(lambda x: sum(row for row in x)), NumberNeeded, NEEDED),
    "a step": (of_b(lambda x: jnp.arange(0, 10, x.shape[0])), NumberNeeded, NEEDED),
    "an array of NumPy": (of_b(lambda x: x + np.zeros(x.shape)), NumberNeeded, NEEDED),
    "a whole number": (of_b(lambda x: x[: int(x.shape[0])]), NumberNeeded, NEEDED),
    "a root": (of_b(lambda x: x / math.sqrt(x.shape[0])), NumberNeeded, NEEDED),
    "an entry of a list": (of_b(lambda x: x * [1, 2, 3][x.shape[0]]), NumberNeeded, NEEDED),
    "a shape that does not divide": (of_b(lambda x: x.reshape(2, -1)), InconclusiveDimensionOperation,
        "symbolic_shape(..., constraints=['mod(b, 2) == 0'])"),
    "a shape of other elements": (of_b(lambda x: x.reshape(3, 4)), ShapeError, "(b,), which has b elements, into"),
    "an undecided branch": (of_b(lambda x: x if x.shape[0] % 2 else -x), InconclusiveDimensionOperation,
        "mod(b, 2) != 0 depends on the values of the symbolic sizes"),
    "one symbol, two sizes": (lambda: SAME.call(jnp.ones(2), jnp.ones(3)), ShapeError,
        "y.shape[0] must be b, which is 2 (b = 2 by x.shape[0]), but it is 3"),
    "two scopes": (lambda: export.export(xlamini.jit(lax.add))(struct(B), struct(C)), TypeError,
        "float32[b], float32[c]"),
    "two scopes in a sum": (lambda: B + C, ValueError, "make both by one call of symbolic_shape, or pass scope="),
    "no even number": (lambda: GOOD.call(jnp.ones((2, 3))), ShapeError,
        "x.shape[1]: the size 2*d is 3 for no whole number d"),
    "an empty array": (lambda: GOOD.call(jnp.ones((0, 2))), ShapeError, "the sizes do not fulfil c >= 1: c = 0 by x"),
    "a negative size": (lambda: struct(-B), ShapeError, "shape (-b,) has a negative size"),
    "a size that may be negative": (lambda: struct(B - 5), InconclusiveDimensionOperation,
        "constraints=['b - 5 >= 0']"),
    "a gap": (lambda: export.symbolic_shape("b, , c"), ValueError, "'b, , c': it is no list of sizes such as"),
    "no sign of a product": (lambda: export.symbolic_shape("2b"), ValueError, "'2b': it is no list of sizes such as"),
    "a fraction": (lambda: export.symbolic_shape("b/2"), ValueError, "'b / 2' is no size; sizes are made of"),
    "a semicolon": (lambda: export.symbolic_shape("b;c"), ValueError, "'b;c': it is no list of sizes such as"),
    "an unknown function": (lambda: export.symbolic_shape("ceil(b, 2)"), ValueError, "no other functions of sizes"),
    "no text": (lambda: export.symbolic_shape(3), TypeError,  # type: ignore[arg-type]
        "a symbolic shape is a text such as 'b, 2*n + 1', got 3"),
    "no scope": (lambda: export.symbolic_shape("b", scope="a"), TypeError,  # type: ignore[arg-type]
        "scope must be a SymbolicScope, such as b.scope of a size b, got 'a'"),
    "a strict sign": (lambda: export.symbolic_shape("b", constraints=["b > 2"]), ValueError,
        "'b > 2': a constraint has one of the signs >=, <= and =="),
    "one sign of equality": (lambda: export.symbolic_shape("b", constraints=["b = 2"]), ValueError,
        "'b = 2': a constraint has one of the signs >=, <= and =="),
    "a call of jit": (lambda: xlamini.jit(jnp.sin)(struct(B)), TypeError,
        "a type without values; export it: export.export(jit(sin))(...)"),
    "an array outside": (lambda: jnp.zeros(B), TypeError, "symbolic sizes"),
    "a truncated file": (lambda: export.deserialize(BLOB[:-9]), LoadError, "another checksum than it should"),
    "a flipped bit": (lambda: export.deserialize(FLIPPED), LoadError, "another checksum than it should; serialize"),
    "a newer file": (lambda: export.deserialize(BLOB.replace(b"format 3", b"format 5", 1)), LoadError,
        "it is in format 5, not"),
    "a foreign file": (lambda: export.deserialize(b"\x08\x00\x00" * 99), LoadError,
        "it does not begin as a file of Exported.serialize() does"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_an_error_says_what_to_do(name: str) -> None:
    run, kind, text = MISTAKES[name]
    with pytest.raises(kind) as caught:
        run()
    assert text in str(caught.value)
