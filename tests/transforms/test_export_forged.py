"""Forged exported functions are refused: calls of kernels and operations that this library would not write.

Beside each call of a kernel stands a copy with something changed, whose results nobody uses. None of them is run.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

import xlamini
from xlamini import export, lax, numpy as jnp
from xlamini.errors import LoadError
from xlamini.lowering import module_check
from xlamini.lowering.mlir import interned
from xlamini.runtime.files.portable import module_of

_CALL = re.compile(r"( +)%\S+ = stablehlo\.custom_call @(\w+)\((.*?)\) (?:\{(.*)\} )?: \((.*)\) -> (.*)")
_TYPE = re.compile(r"tensor<[^<>]*(?:<f\d+>)?>")


def file_with(blob: bytes, code: bytes) -> bytes:
    """The file of an exported function with another module, as somebody who knows the format would make it."""
    first, _, header, _ = blob.split(b"\n", 3)
    fields = json.loads(header)
    fields["sizes"][0] = len(code)
    rest = json.dumps(fields).encode() + b"\n" + zlib.compress(code)
    return first + b"\n" + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def text_of(exported: export.Exported) -> str:
    return str(module_of(exported.mlir_module_serialized, interned().context))


def forged(blob: bytes, text: str) -> bytes | None:
    """The file with this module, None if MLIR does not take it."""
    with interned().context:
        try:
            module = ir.Module.parse(text)
            code = stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version())
        except (ir.MLIRError, ValueError):
            return None
    return file_with(blob, code)


def is_refused(blob: bytes) -> bool:
    module_check.checked.clear()
    try:
        export.deserialize(blob)
    except LoadError:
        return True
    return False


_SETTINGS = ("layout", "mode", "version")
"""Changes that are none where a call has not got the attribute."""


_TRUE = {("lu", "cuda"): {"result 0 is tensor<5xi32>"}}
"""Calls that a primitive writes: four pivots may exchange five rows."""


def matrix(dtype: str = "float32", n: int = 4) -> np.ndarray:
    x = np.random.RandomState(0).randn(n, n)
    return (x + x.T + 9 * np.eye(n)).astype(dtype)


def leaves(fun: Any) -> Any:
    return lambda *args: xlamini.tree.leaves(fun(*args))


L = lax.linalg
PROGRAMS = {
    "lu": L.lu,
    "cholesky": L.cholesky,
    "eigh": L.eigh,
    "eig": L.eig,
    "svd": leaves(jnp.linalg.svd),
    "svd: qr": lambda x: L.svd(x, algorithm=L.SvdAlgorithm.QR),
    "qr": leaves(jnp.linalg.qr),
    "qr: pivots": leaves(lambda x: xlamini.scipy.linalg.qr(x, pivoting=True)),
    "hessenberg": L.hessenberg,
    "schur": L.schur,
    "tridiagonal": L.tridiagonal,
    "ormqr": lambda x: L.ormqr(x, x[0], x),
    "triangular_solve": lambda x: L.triangular_solve(x, x, left_side=True, lower=True),
    "tridiagonal_solve": lambda x: L.tridiagonal_solve(x[0], x[1], x[2], x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_true_files_are_read_by_another_process(name: str) -> None:
    blobs = [exported_for(name, platform) for platform in ("cpu", "cuda", "tpu")]
    module_check.checked.clear()
    assert blobs[0] is not None
    for blob in filter(None, blobs):
        export.deserialize(blob[1])


def exported_for(name: str, platform: str, dtype: str = "float32") -> tuple[export.Exported, bytes] | None:
    try:
        made = export.export(xlamini.jit(PROGRAMS[name]), platforms=(platform,))(matrix(dtype))
        return made, bytes(made.serialize())
    except (NotImplementedError, ValueError):
        return None


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("platform", ["cpu", pytest.param("cuda", marks=pytest.mark.full)])
def test_changed_calls_are_refused(name: str, platform: str) -> None:
    found = exported_for(name, platform)
    if found is None:
        pytest.skip(f"no stable kernel on {platform}")
    exported, blob = found
    changed = list(with_changed_calls(text_of(exported)))
    blobs = [(what, made) for what, text in changed if (made := forged(blob, text))]
    taken = {what for what, made in blobs if not is_refused(made)}
    assert taken == _TRUE.get((name, platform), set())
    assert len(blobs) > 10 or "custom_call" not in text_of(exported)


def with_changed_calls(text: str) -> Iterator[tuple[str, str]]:
    """The module with a changed copy of one of its calls, and what was changed."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if call := _CALL.match(line):
            groups = call.groups(default="")
            every = _changed(*groups)
            copies = [(what, copy) for what, copy in every if groups[3] not in copy or what not in _SETTINGS]
            for number, (what, copy) in enumerate(copies):
                yield what, "\n".join([*lines[: i + 1], copy.replace("%made", f"%made{number}"), *lines[i + 1 :]])


def _changed(
    indent: str, target: str, operands: str, attributes: str, ins: str, outs: str
) -> Iterator[tuple[str, str]]:
    types = _TYPE.findall(outs)

    def call(target: str = target, attributes: str = attributes, outs: list[str] = types) -> str:
        several = f"%made:{len(outs)}" if len(outs) != 1 else "%made"
        result = f"({', '.join(outs)})" if len(outs) != 1 else outs[0]
        return f"{indent}{several} = stablehlo.custom_call @{target}({operands}) {{{attributes}}} : ({ins}) -> {result}"

    without_alias = re.sub(r"output_operand_aliases = \[.*?\]>\],? ?", "", attributes).replace(", ,", ",").strip(", ")
    for kept, (k, new) in itertools.product((attributes, without_alias), _other_types(types)):
        yield f"result {k} is {new}", call(attributes=kept, outs=[*types[:k], new, *types[k + 1 :]])
    if without_alias != attributes:
        yield "no alias", call(attributes=without_alias)
    for found in re.finditer(r"= (\d+) : ui8", attributes):
        for value in (7, 66, 255):
            yield f"{found[0]} -> {value}", call(attributes=_put(attributes, found.span(1), str(value)))
    for found in re.finditer(r"true|false", attributes):
        yield f"{found[0]} -> a number", call(attributes=_put(attributes, found.span(), "7 : i32"))
    for found in re.finditer(r"dense<\[(.*?)\]>", attributes):
        turned = ", ".join(found[1].split(", ")[::-1])
        yield "layout", call(attributes=_put(attributes, found.span(1), turned))
    yield "mode", call(attributes=re.sub(r"backend_config = \{.*?\}", "backend_config = {other = 1 : i32}", attributes))
    yield "version", call(attributes=re.sub(r"api_version = \d", "api_version = 2", attributes))
    yield "effect", call(attributes=f"{attributes}, has_side_effect = true".strip(", "))
    yield "schedule", call(attributes=f'{attributes}, xla_shape = "f32[2]"'.strip(", "))
    yield "text", call(attributes=f'{attributes}, mhlo.frontend_attributes = {{_xla_any = "1"}}'.strip(", "))
    for other in ("lapack_dgetrf_ffi", "lapack_none_ffi", "cublas_gemm", "Qr", "xla_python_cpu_callback", "free"):
        yield f"target {other}", call(target=other)


def _put(text: str, span: tuple[int, int], new: str) -> str:
    return text[: span[0]] + new + text[span[1] :]


def _other_types(types: list[str]) -> Iterator[tuple[int, str]]:
    for k, text in enumerate(types):
        shape, element = re.fullmatch(r"tensor<((?:\d+x)*)(.+)>", text).groups()  # type: ignore[union-attr]
        sizes = shape.split("x")[:-1]
        for d in range(len(sizes)):
            for size in (1, int(sizes[d]) + 1):
                yield k, f"tensor<{'x'.join([*sizes[:d], str(size), *sizes[d + 1 :]])}x{element}>"
        yield k, f"tensor<{'x'.join([*sizes, 'i8'])}>"


OPERATIONS = {
    "a layout": '%y = "stablehlo.sine"(%x) {xla_shape = "f32[4,4]{0,1}"} : (tensor<4x4xf32>) -> tensor<4x4xf32>',
    "a config": '%y = "stablehlo.sine"(%x) {backend_config = "{}"} : (tensor<4x4xf32>) -> tensor<4x4xf32>',
    "a sharding": '%y = "stablehlo.sine"(%x) {mhlo.sharding = "x"} : (tensor<4x4xf32>) -> tensor<4x4xf32>',
    "a text": '%y = "stablehlo.sine"(%x) {mhlo.frontend_attributes = {xla.sdy.meshes = "x"}} : '
    "(tensor<4x4xf32>) -> tensor<4x4xf32>",
    "a queue": '%t = "stablehlo.create_token"() : () -> !stablehlo.token\n'
    '%y, %u = "stablehlo.infeed"(%t) {infeed_config = "", layout = [[1, 0]]} : '
    "(!stablehlo.token) -> (tensor<4x4xf32>, !stablehlo.token)",
    "an unknown size": '%n = stablehlo.constant dense<3> : tensor<i32>\n'
    '%z = "stablehlo.set_dimension_size"(%x, %n) {dimension = 0 : i64} : '
    "(tensor<4x4xf32>, tensor<i32>) -> tensor<?x4xf32, #stablehlo.bounds<4, ?>>\n"
    "%y = stablehlo.add %x, %x : tensor<4x4xf32>",
    "a large array": '%z = "stablehlo.broadcast_in_dim"(%x) {broadcast_dimensions = array<i64: 1, 2>} : '
    "(tensor<4x4xf32>) -> tensor<4000000000000000x4x4xf32>\n%y = stablehlo.add %x, %x : tensor<4x4xf32>",
    "a nested call": "%p = stablehlo.constant dense<true> : tensor<i1>\n"
    '%y = "stablehlo.if"(%p) ({\n%a = stablehlo.custom_call @free(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>\n'
    '"stablehlo.return"(%a) : (tensor<4x4xf32>) -> ()}, {"stablehlo.return"(%x) : (tensor<4x4xf32>) -> ()}) : '
    "(tensor<i1>) -> tensor<4x4xf32>",
    "a composite": '%y = stablehlo.composite "some.name" %x {decomposition = @other} : '
    "(tensor<4x4xf32>) -> tensor<4x4xf32>",
    "a function": "%y = func.call @other(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>",
}
_MAIN = "func.func public @main(%x: tensor<4x4xf32>{}) -> tensor<4x4xf32> {{\n{}\nreturn %y : tensor<4x4xf32>\n}}"
_OTHER = (
    "\nfunc.func private @other(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"
    "%y = stablehlo.custom_call @lapack_none_ffi(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
    "return %y : tensor<4x4xf32>\n}"
)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_of_no_exported_function_are_refused(name: str) -> None:
    blob = bytes(export.export(xlamini.jit(jnp.sin))(matrix()).serialize())
    made = forged(blob, _MAIN.format("", OPERATIONS[name]) + (_OTHER if "@other" in OPERATIONS[name] else ""))
    assert made is not None and is_refused(made)


@pytest.mark.parametrize("attribute", ["tf.aliasing_output = 0 : i32", "jax.buffer_donor = true", "foo.bar = 1 : i32"])
def test_attributes_of_arguments_are_those_that_export_writes(attribute: str) -> None:
    blob = bytes(export.export(xlamini.jit(jnp.sin))(matrix()).serialize())
    made = forged(blob, _MAIN.format(f" {{{attribute}}}", "%y = stablehlo.sine %x : tensor<4x4xf32>"))
    assert made is None or is_refused(made)


def test_the_message_names_the_kernel_and_a_way_out() -> None:
    found = exported_for("lu", "cpu")
    assert found is not None
    text = next(text for what, text in with_changed_calls(text_of(found[0])) if what == "no alias")
    made = forged(found[1], text)
    assert made is not None
    with pytest.raises(LoadError, match=r"lapack_sgetrf_ffi with types or attributes .* trusted=True"):
        export.deserialize(made)
    assert isinstance(export.deserialize(made, trusted=True), export.Exported)
