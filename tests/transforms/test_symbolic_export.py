"""Exported functions with symbolic sizes: called at several sizes, differentiated, in files, in each other."""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.transforms.test_export_forged import forged
from xlamini import export, lax, numpy as jnp, random
from xlamini.core.sizes import solving
from xlamini.errors import InconclusiveDimensionOperation, LoadError, ShapeError
from xlamini.lowering import module_check
from xlamini.lowering.mlir import interned
from xlamini.runtime.files.module_reader import kernels_of
from xlamini.runtime.files.portable import module_of
from xlamini.transforms.export import exported_file

EVERY = ("cpu", "tpu", "cuda")
SIZES = [(2, 5), (3, 4)]


def struct(*shape: Any, dtype: Any = "float32") -> Any:
    return xlamini.ShapeDtypeStruct(shape, dtype)


def data(*shape: int) -> np.ndarray:
    return np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32)


def sizes(text: str, *constraints: str) -> Any:
    return export.symbolic_shape(text, constraints=constraints)


def exported(fun: Any, *args: Any, platforms: Any = ("cpu",), **kwargs: Any) -> Any:
    return export.export(xlamini.jit(fun), platforms=platforms)(*args, **kwargs)


def again(found: Any, vjp_order: int = 0) -> Any:
    """The function from its file, read as that of another process."""
    blob = found.serialize(vjp_order)
    module_check.checked.clear()
    return export.deserialize(blob)


def close(found: Any, wanted: Any) -> None:
    assert xlamini.tree.structure(found) == xlamini.tree.structure(wanted)
    for a, b in zip(xlamini.tree.leaves(found), xlamini.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def model(x: Any) -> Any:
    return {"gram": jnp.sin(x) @ x.T, "flat": x[:, 1:].reshape(-1), "sums": jnp.cumsum(x, 0)}


B, N = sizes("b, n", "n >= 4")
MODEL = exported(model, struct(B, N))


def total(call: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: sum(jnp.sum(jnp.sin(leaf)) for leaf in xlamini.tree.leaves(call(x)))


def second(call: Callable[..., Any]) -> Callable[[Any], Any]:
    return xlamini.grad(lambda x: jnp.sum(xlamini.grad(total(call))(x) ** 2))


# Files.


@pytest.mark.parametrize("platforms", [("cpu",), EVERY])
def test_a_file_is_called_at_all_sizes(platforms: tuple[str, ...]) -> None:
    found = again(exported(model, struct(B, N), platforms=platforms))
    assert not found._vouched and "float32[b*n - b]" in str(found.out_avals)
    for shape in SIZES:
        close(found.call(data(*shape)), model(data(*shape)))
        close(xlamini.jit(found.call)(data(*shape)), model(data(*shape)))


def test_sizes_that_were_seen_are_not_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = []
    values = solving.ArgumentSizes.values
    monkeypatch.setattr(solving.ArgumentSizes, "values", lambda *args: solved.append(args[1]) or values(*args))
    found = again(exported(lambda x: x * 2, struct(sizes("b")[0])))
    for size in (2, 3):
        close(found.call(data(size)), data(size) * 2)
    before = len(solved)
    for size in (3, 2):
        close(found.call(data(size)), data(size) * 2)
    assert before and len(solved) == before


def test_types_are_shown_as_before() -> None:
    a, b = sizes("a, b", "a <= 2*b", "mod(b, 4) == 0")
    found = exported(lambda x, y: (jnp.concatenate([x, x]), y[a // 3 :], x[: b // 2]), struct(2 * b + 1), struct(a, b))
    read = again(found)
    assert (str(read.in_avals), str(read.out_avals)) == (str(found.in_avals), str(found.out_avals))
    scope = read.in_avals[0].shape[0].scope
    assert [c.text for c in scope.constraints] == ["a <= 2*b", "mod(b, 4) == 0"]
    assert all(size.scope is scope for aval in (*read.in_avals, *read.out_avals) for size in aval.shape)


def test_derivatives_in_a_file() -> None:
    found, x = again(MODEL, 2), data(2, 5)
    close(xlamini.grad(total(found.call))(x), xlamini.grad(total(model))(x))
    close(second(found.call)(x), second(model)(x))
    with pytest.raises(ValueError, match="vjp_order"):
        xlamini.grad(lambda x: jnp.sum(xlamini.grad(total(again(MODEL, 1).call))(x)))(x)


def test_the_pullback_has_symbolic_types() -> None:
    b, = sizes("b")
    found = exported(lambda x, n: (x * n.shape[0], n), struct(b), struct(2 * b + 1, dtype="int32"))
    pullback = found.vjp()
    assert [str(a) for a in pullback.in_avals] == ["float32[b]", "int32[2*b + 1]", "float32[b]", "float0[2*b + 1]"]
    assert [str(a) for a in pullback.out_avals] == ["float32[b]", "float0[2*b + 1]"]
    x, n, nothing = np.ones(2, np.float32), np.arange(5, dtype=np.int32), np.zeros(5, xlamini.float0)
    gradient, zeros = pullback.call(x, n, x, nothing)
    assert (gradient.tolist(), zeros.shape, zeros.dtype) == ([5, 5], (5,), xlamini.float0)
    both = pullback.vjp().vjp()
    assert [a.dtype for a in both.out_avals].count(xlamini.float0) == 3
    of_one = xlamini.grad(lambda x: found.call(x, n)[0].sum())
    assert xlamini.grad(lambda x: of_one(x).sum())(x).tolist() == [0, 0]


@pytest.mark.full
def test_keys_keywords_and_containers() -> None:
    b, = sizes("b")
    keys = xlamini.ShapeDtypeStruct((b,), random.key(0).dtype)

    def draw(keys: Any, *, scale: Any, unused: Any) -> Any:
        drawn = xlamini.vmap(lambda k: random.normal(k, (2,)))(keys)
        return {"x": drawn * scale["by"], "n": (jnp.int32(0) + keys.shape[0], keys)}

    found = again(exported(draw, keys, scale={"by": struct()}, unused=struct(b, dtype="int8")), 1)
    for n in (1, 3):
        given, unused = random.split(random.key(n), n), np.zeros(n, np.int8)
        result = found.call(given, scale={"by": np.float32(2)}, unused=unused)
        close(result["x"], xlamini.vmap(lambda k: random.normal(k, (2,)))(given) * 2)
        assert int(result["n"][0]) == n and bool((result["n"][1] == given).all())
        gradient = xlamini.grad(lambda s, k=given, u=unused: found.call(k, scale={"by": s}, unused=u)["x"].sum())
        close(gradient(np.float32(2)), result["x"].sum() / 2)


def test_sizes_of_unused_arguments() -> None:
    b, c = sizes("b, c")
    found = again(exported(lambda x, y: jnp.ones((2 * c + 1, b)), struct(b), struct(c, dtype="int32")))
    assert found.module_kept_var_idx == (0, 1) and str(found.out_avals[0]) == "float32[2*c + 1,b]"
    assert found.call(np.ones(3, np.float32), np.ones(2, np.int32)).shape == (5, 3)


def test_older_readers_refuse_the_file() -> None:
    blob = bytes(MODEL.serialize())
    assert blob.startswith(b"xlamini exported function, format 3\n")
    for kind in (exported_file.FILE, exported_file.SHARDED_FILE):
        with pytest.raises(LoadError, match=f"it is in format 3, not {kind.version}"):
            kind.read(blob, lambda header, parts: header, "write it again")
    assert bytes(exported(jnp.sin, struct(3)).serialize()).startswith(exported_file.FILE.magic)


MALFORMED = ["(a + b + c)^16", "((a + b + c + d)^8)^8", "(((9^16)^16)^16)*b", "b^17", "b +", "b.c", "f(b)", "b" * 2000,
    "max(max(max(max(max(max(max(max(max(b, c), d), e), f), g), h), i), j), k)", "(" * 900 + "b", "9" * 900, "b - 3",
    "b/2", "'b'", "b if c else d", "mod(b)", "b == 3", "", 3.5, None, ["b"], {"b": 1}, -1, True]  # fmt: skip


@pytest.mark.parametrize("argument", MALFORMED)
def test_malformed_sizes(argument: Any) -> None:
    with pytest.raises(LoadError):
        export.deserialize(changed(in_avals=[["float32", [argument, "n"], False]]))


@pytest.mark.parametrize(
    "constraints",
    [["b >= 3"] * 65, ["b"], [3], [None], ["b > 3"], ["b >= 3", "b <= 2"], ["b >= n >= 2"], ["b == (a + c + d)^16"],
     ["a >= " + "b + " * 400 + "1"]],
)  # fmt: skip
def test_malformed_constraints(constraints: list[Any]) -> None:
    with pytest.raises(LoadError):
        export.deserialize(changed(constraints=constraints))


def test_headers_that_do_not_fit() -> None:
    for change in (
        {"in_avals": [["float32", [2, "n"], False]]},
        {"in_avals": [["float32", ["b*n", "b*n"], False]]},
        {"in_avals": [["float32", [f"b + {i}" for i in range(1200)], False]]},
        {"constraints": "b >= 2"},
    ):
        with pytest.raises(LoadError):
            export.deserialize(changed(**change))
    outs = json.loads(json.dumps(header()["out_avals"]).replace("b*n - b", "b*q"))
    with pytest.raises(LoadError, match="no argument with data has the symbolic size q"):
        export.deserialize(changed(out_avals=outs))
    with pytest.raises(LoadError, match="no size of an array"):
        export.deserialize(exported_file.FILE.packed({**header(), "sizes": [0]}, b""))


def header() -> dict[str, Any]:
    found, _ = exported_file.SYMBOLIC_FILE.unpacked(bytes(MODEL.serialize()))
    return {name: value for name, value in found.items() if name != "constraints"}


def changed(**changes: Any) -> bytes:
    found, body = exported_file.SYMBOLIC_FILE.unpacked(bytes(MODEL.serialize()))
    return exported_file.SYMBOLIC_FILE.packed({**found, **changes}, body)


# Forged files.

_FILE = bytes(exported(jnp.sin, struct(B, 4)).serialize())
_MARK = "attributes {jax.uses_shape_polymorphism = true} "
_MODULE = """module %s{
  func.func public @main(%%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %s
    return %%y : tensor<?x4xf32>
  }
  func.func private @other(%%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %%y = func.call @other(%%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
    return %%y : tensor<?x4xf32>
  }
}"""
_SINE = "%y = stablehlo.sine %x : tensor<?x4xf32>"
_LARGE = """
    %p = stablehlo.constant dense<[2147483647, 2147483647, 4]> : tensor<3xi32>
    %w = stablehlo.dynamic_iota %p, dim = 0 : (tensor<3xi32>) -> tensor<?x?x?xf32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%w init: %z) applies stablehlo.add across dimensions = [0, 1, 2] :
      (tensor<?x?x?xf32>, tensor<f32>) -> tensor<f32>
    %i = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %f = stablehlo.constant dense<4> : tensor<1xi32>
    %j = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
    %k = stablehlo.concatenate %j, %f, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %y = stablehlo.dynamic_broadcast_in_dim %r, %k, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>"""
_ASSERTION = (
    'stablehlo.custom_call @shape_assertion({}) {{api_version = 2 : i32, error_message = "{}", '
    "has_side_effect = true}} : ({}) -> ()\n%y = stablehlo.sine %x : tensor<?x4xf32>"
)
REFUSED_AT_ONCE = {
    "no mark": ("", _SINE),
    "a size on the device": (_MARK, "%n = stablehlo.constant dense<3> : tensor<i32>\n"
        '%z = "stablehlo.set_dimension_size"(%x, %n) {dimension = 0 : i64} : (tensor<?x4xf32>, tensor<i32>) -> '
        f"tensor<?x4xf32>\n{_SINE}"),
    "a kernel": (_MARK, "%y = stablehlo.custom_call @foo(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>"),
}  # fmt: skip
REFUSED_AT_THE_CALL = {
    "a recursion": "%y = func.call @other(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>",
    "a large array": _LARGE,
    "a kernel of unknown sizes": "%y = stablehlo.custom_call @lapack_spotrf_ffi(%x) : (tensor<?x4xf32>) -> "
    "tensor<?x4xf32>",
    "a kernel of wrong sizes": "%z = stablehlo.constant dense<1.0> : tensor<4x4xf32>\n%k = stablehlo.custom_call "
    "@lapack_spotrf_ffi(%z) : (tensor<4x4xf32>) -> tensor<9x9xf32>\n%s = stablehlo.slice %k [0:3, 0:4] : "
    "(tensor<9x9xf32>) -> tensor<3x4xf32>\n%y = stablehlo.add %x, %s : "
    "(tensor<?x4xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>",
    "an assertion of an array": _ASSERTION.format("%x", "x", "tensor<?x4xf32>"),
    "an assertion of nothing": _ASSERTION.format("", "x", ""),
    "a message without values": "%c = stablehlo.constant dense<false> : tensor<i1>\n"
    + _ASSERTION.format("%c", "{7}", "tensor<i1>"),
}


def test_a_true_module_of_the_same_form() -> None:
    made = forged(_FILE, _MODULE % (_MARK, _SINE))
    assert made is not None
    x = data(3, 4)
    close(export.deserialize(made).call(x), np.sin(x))


@pytest.mark.parametrize("name", REFUSED_AT_ONCE)
def test_forged_files_are_refused(name: str) -> None:
    made = forged(_FILE, _MODULE % REFUSED_AT_ONCE[name])
    assert made is not None
    with pytest.raises(LoadError, match="trusted=True"):
        export.deserialize(made)


@pytest.mark.parametrize("name", REFUSED_AT_THE_CALL)
def test_forged_files_are_refused_when_sizes_are_known(name: str) -> None:
    made = forged(_FILE, _MODULE % (_MARK, REFUSED_AT_THE_CALL[name]))
    assert made is not None
    found = export.deserialize(made)
    with pytest.raises(ValueError, match=r"trusted=True|sizes of the exported function cannot be found"):
        found.call(data(3, 4))


def test_operations_of_sizes_are_in_symbolic_modules_alone() -> None:
    blob = bytes(exported(jnp.sin, struct(3, 4)).serialize())
    body = "%n = stablehlo.constant dense<[3, 4]> : tensor<2xi32>\n%y = stablehlo.dynamic_reshape %x, %n : "
    text = (_MODULE % ("", f"{body}(tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x4xf32>")).replace("?", "3")
    made = forged(blob, text)
    assert made is not None
    with pytest.raises(LoadError, match=r"an operation stablehlo\.dynamic_reshape"):
        export.deserialize(made)
    made = forged(blob, (_MODULE % ("", _ASSERTION.format("%x", "x", "tensor<?x4xf32>"))).replace("?", "3"))
    assert made is not None
    with pytest.raises(LoadError, match="a call of shape_assertion without symbolic sizes"):
        export.deserialize(made)


def test_kernels_are_checked_when_sizes_are_known() -> None:
    found = again(exported(jnp.linalg.cholesky, struct(B, N, N), platforms=EVERY), 1)
    x = np.stack([np.eye(4, dtype=np.float32) * n + 1 for n in (4, 5)])
    close(found.call(x), np.linalg.cholesky(x))
    close(xlamini.grad(total(found.call))(x), xlamini.grad(total(jnp.linalg.cholesky))(x))


# Batches.


def test_batches() -> None:
    xs = data(3, 2, 5)
    for found in (MODEL, again(MODEL, 1)):
        close(xlamini.vmap(found.call)(xs), xlamini.vmap(model)(xs))
        close(xlamini.vmap(found.call, 2)(xs.transpose(1, 2, 0)), xlamini.vmap(model)(xs))
        close(xlamini.vmap(xlamini.grad(total(found.call)))(xs), xlamini.vmap(xlamini.grad(total(model)))(xs))
        close(xlamini.grad(total(xlamini.vmap(found.call)))(xs), xlamini.grad(total(xlamini.vmap(model)))(xs))


# In each other.


def test_a_symbolic_function_in_a_symbolic_function() -> None:
    c, = sizes("c")

    def outer(x: Any, call: Any = MODEL.call) -> Any:
        twice = call(jnp.concatenate([x, x]))["gram"]
        return call(x)["gram"] + twice[:c, c:], call(x)["flat"]

    found = again(exported(outer, struct(c, 7)), 1)
    assert [str(a) for a in found.out_avals] == ["float32[c,c]", "float32[6*c]"]
    c = 3
    x, wanted = data(3, 7), lambda x: outer(x, model)
    close(found.call(x), wanted(x))
    close(xlamini.grad(total(found.call))(x), xlamini.grad(total(wanted))(x))


@pytest.mark.parametrize("platforms", [("cpu",), ("tpu", "cpu")])
def test_in_loops_branches_and_batches(platforms: tuple[str, ...]) -> None:
    c, = sizes("c")
    step = exported(lambda x: jnp.tanh(jnp.sort(x) * 2), struct(B, N), platforms=EVERY)

    def outer(x: Any, call: Any = step.call) -> Any:
        y = lax.fori_loop(0, 3, lambda i, y: call(y), x)
        return lax.cond(y.sum() > 0, call, lambda y: y, y), xlamini.vmap(call)(x.reshape(-1, 1, 5))

    found = exported(outer, struct(c, 5), platforms=platforms)
    x = data(4, 5)
    close(found.call(x), outer(x, lambda x: jnp.tanh(jnp.sort(x) * 2)))


def test_a_plain_function_in_a_symbolic_function() -> None:
    c, = sizes("c")
    plain = exported(jnp.sin, struct(3))
    found = exported(lambda x: plain.call(x[:3]) * x.shape[0], struct(c + 3))
    close(found.call(data(5)), np.sin(data(5)[:3]) * 5)
    with pytest.raises(ShapeError, match=r"exported for f32\[3\], called with f32\[c\]"):
        exported(plain.call, struct(c))


def test_sizes_of_the_caller_must_fit_for_all_values() -> None:
    m, = sizes("m")
    with pytest.raises(InconclusiveDimensionOperation, match=r"m .* depends on the values of the symbolic sizes"):
        exported(MODEL.call, struct(3, m))
    even = exported(lambda x: x * 2, struct(2 * B))
    with pytest.raises(ShapeError, match=r"the size 2\*b is m for no whole number b"):
        exported(even.call, struct(m))
    square = exported(lambda x: x * 2, struct(B, B))
    with pytest.raises(ShapeError, match="must be b, which is m"):
        exported(square.call, struct(m, 2 * m))
    close(exported(even.call, struct(4 * m)).call(data(8)), data(8) * 2)


def test_what_nobody_vouches_for_is_refined_apart_in_other_functions_too() -> None:
    c, = sizes("c")
    found = again(MODEL)
    outer = exported(found.call, struct(c, 7))
    assert not found._vouched and not outer._vouched and not again(outer)._vouched
    assert export.deserialize(MODEL.serialize(), trusted=True)._vouched
    close(outer.call(data(3, 7)), model(data(3, 7)))


# Errors.

EVEN = exported(jnp.sin, struct(2 * B))
_TWO = exported(lambda x, y: x.sum() + y.sum(), struct(B, N), struct(2 * B))
WRONG = {
    "below its bound": (lambda: MODEL.call(data(2, 3)), ShapeError, r"the sizes do not fulfil n >= 4: b = 2 by x"),
    "an empty axis": (lambda: MODEL.call(data(0, 5)), ShapeError, "the sizes do not fulfil b >= 1: b = 0 by x"),
    "two values": (lambda: _TWO.call(data(2, 4), data(6)), ShapeError,
        r"y\.shape\[0\] must be 2\*b, which is 4 \(b = 2 by x\.shape\[0\]\), but it is 6"),
    "odd": (lambda: EVEN.call(data(7)), ShapeError, r"the size 2\*b is 7 for no whole number b"),
    "rank": (lambda: MODEL.call(data(5)), ShapeError, r"x: exported for f32\[b,n\], called with f32\[5\]"),
    "dtype": (lambda: MODEL.call(np.ones((2, 5), np.int32)), ValueError,
        r"for f32\[2,5\], called with i32\[2,5\]; convert"),
    "a relation": (lambda: related().call(data(3), data(2)), ShapeError,
        r"do not fulfil a <= c: a = 3 by x.*c = 2 by y"),
    "no array": (lambda: _TWO.call(data(2, 4), "four"), TypeError, "argument 'y' of <lambda> is 'four' of type str"),
    "structure": (lambda: MODEL.call([data(2, 5)]), ValueError, "another structure"),
    "undetermined": (lambda: exported(jnp.sin, struct(B * N)), ValueError, "do not determine the symbolic size b"),
    "of no data": (lambda: exported(lambda x, y: x, struct(B), struct(N, dtype=xlamini.float0)), ValueError,
        "no argument with data has the symbolic size n"),
    "two scopes": (lambda: exported(lambda x, y: x, struct(B), struct(*sizes("b"))), ValueError, "of different scopes"),
    "compiled": (lambda: xlamini.jit(jnp.sin).lower(struct(B)).compile(), TypeError,
        "has symbolic sizes, .* export it"),
    "run": (lambda: xlamini.jit(jnp.sin)(struct(B)), TypeError, "a type without values"),
}  # fmt: skip


def related() -> Any:
    a, c = sizes("a, c", "a <= c")
    return exported(lambda x, y: x.sum() + y.sum(), struct(a), struct(c))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name: str) -> None:
    run, kind, said = WRONG[name]
    with pytest.raises(kind, match=said):
        run()


@pytest.mark.parametrize("name", ["below its bound", "two values", "odd", "rank", "dtype"])
def test_wrong_calls_of_a_file_say_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, kind, said = WRONG[name]
    for each in ("MODEL", "_TWO", "EVEN"):
        monkeypatch.setitem(globals(), each, export.deserialize(globals()[each].serialize()))
    with pytest.raises(kind, match=said):
        run()


def test_the_assertions_of_the_module_hold_for_other_callers() -> None:
    """A caller that knows StableHLO alone finds the same errors in the module."""
    module = module_of(MODEL.mlir_module_serialized, interned().context)
    assert "shape_assertion" in kernels_of(module)
    said = re.findall(r'error_message = "(.*?)"', str(module))
    assert "the sizes do not fulfil n >= 4: {0} and {1}" in said


def test_types_from_texts() -> None:
    args = ({"x": data(4, 3), "y": [data(4), 2.0]}, data(3))
    found = export.symbolic_args_specs(args, ({"x": "b, ...", "y": "..."}, "n"), ["b >= 2"])
    assert str(found[0]["x"]) == "ShapeDtypeStruct(shape=(b, 3), dtype=float32)"
    assert [str(each.shape) for each in xlamini.tree.leaves(found)] == ["(b, 3)", "(4,)", "()", "(n,)"]
    assert found[0]["x"].shape[0].scope is found[1].shape[0].scope
    with pytest.raises(ValueError, match="symbolic_args_specs"):
        export.symbolic_args_specs(args, ({"x": "b, ..."}, "n"))
    with pytest.raises(ValueError, match="it has 1 sizes, and the argument has 2 dimensions"):
        export.symbolic_args_specs(args[0]["x"], "b")
