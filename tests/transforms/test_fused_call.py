"""fused_call: one program for all platforms, kernels where a platform has them, under every transformation."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import export, lax, nn, numpy as jnp
from xlamini.core.caching.digest import digest
from xlamini.core.program.form import FusedOperation, Platform
from xlamini.interpreters.expand import expand
from xlamini.lowering.specialize import specialize
from xlamini.transforms.fused_call import fused_call

TPU = Platform("tpu", kernels=True)


@dataclass(frozen=True)
class Scores(FusedOperation):
    """The sums of rows and their squares; the kernel multiplies by `factor`, so that a test sees that it is one."""

    factor: float

    name = "scores"

    def program(self, x: Any, y: Any) -> list[Any]:
        return [(x * y).sum(1), x * x]

    def kernel(self, platform: Platform, avals: Sequence[Any]) -> Any:
        if avals[0].shape[0] < 3:
            return None
        return lambda x, y: [lax.mul(lax.reduce_sum_p.bind(x * y, axes=(1,)), self.factor), x * x]


def scores(x: Any, y: Any) -> list[Any]:
    return fused_call(x, y, operation=Scores(100.0))


def on(platform: Platform, fun: Callable[..., Any], *args: Any) -> str:
    return str(specialize(expand(xlamini.make_jaxpr(fun)(*args).jaxpr), (platform,)))


X, Y = np.arange(12, dtype=np.float32).reshape(4, 3), np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def test_values_and_derivatives_are_those_of_the_program() -> None:
    plain = Scores(1.0).program
    for of in (scores, xlamini.jit(scores), xlamini.checkpoint(scores)):
        np.testing.assert_allclose(of(X, Y)[0], (X * Y).sum(1), rtol=1e-6)
        found, wanted = (xlamini.jacrev(f, (0, 1))(X, Y) for f in (of, plain))
        for a, b in zip(xlamini.tree.leaves(found), xlamini.tree.leaves(wanted), strict=True):
            np.testing.assert_array_equal(a, b)
        tangents = [xlamini.jvp(f, (X, Y), (Y, X))[1] for f in (of, plain)]
        np.testing.assert_array_equal(tangents[0][0], tangents[1][0])


@pytest.mark.parametrize("dims", [(0, None), (None, 1), (2, 0)])
def test_a_batch_maps_the_program_and_the_kernel(dims: tuple[Any, Any]) -> None:
    args = [a if d is None else np.stack([a, a + 1], d) for a, d in zip((X, Y), dims, strict=True)]
    mapped = xlamini.vmap(scores, dims)
    found = mapped(*args)
    for i in (0, 1):
        each = [a if d is None else np.take(a, i, d) for a, d in zip(args, dims, strict=True)]
        np.testing.assert_allclose(found[0][i], (each[0] * each[1]).sum(1), rtol=1e-5)
        np.testing.assert_array_equal(found[1][i], each[0] ** 2)
    assert "100.0" in on(TPU, mapped, *args)
    by_kernel = fused_call_operation(mapped, *args).kernel(TPU, [jnp.asarray(a).aval for a in args])
    np.testing.assert_allclose(np.asarray(xlamini.jit(by_kernel)(*args)[0]) / 100, found[0], rtol=1e-5)


def fused_call_operation(fun: Callable[..., Any], *args: Any) -> Any:
    jaxpr = xlamini.make_jaxpr(fun)(*args).jaxpr
    return next(eqn.params["operation"] for eqn in jaxpr.eqns if eqn.primitive.name == "fused_call")


def test_kernels_are_chosen_by_platform_and_size() -> None:
    assert "100.0" in on(TPU, scores, X, Y)
    assert "100.0" not in on(Platform("cpu"), scores, X, Y)
    assert "100.0" not in on(Platform("tpu", spans_devices=True, kernels=True), scores, X, Y)
    assert "100.0" not in on(TPU, scores, X[:2], Y[:2])


def test_calls_of_a_kind_share_a_kernel() -> None:
    jaxpr = xlamini.make_jaxpr(lambda x, y: scores(scores(x, y)[1], y))(X, Y).jaxpr
    first, second = [eqn.params["jaxprs"] for eqn in specialize(jaxpr, (TPU,)).eqns if eqn.primitive.name == "form"]
    assert first[0] is second[0]


def test_each_device_of_a_shard_map_has_kernels() -> None:
    mesh = xlamini.make_mesh((1,), ("i",))
    spec = xlamini.P("i")
    mapped = xlamini.shard_map(scores, mesh=mesh, in_specs=spec, out_specs=spec)
    assert "100.0" in on(Platform("tpu", spans_devices=True, kernels=True), mapped, X, Y)


def test_programs_have_a_digest_for_the_disk() -> None:
    def loss(x: Any) -> Any:
        return nn.dot_product_attention(x, x, x).sum()

    one, two = np.zeros((512, 1, 4), np.float32), np.zeros((2, 512, 1, 4), np.float32)
    programs = [xlamini.make_jaxpr(loss)(one), xlamini.make_jaxpr(xlamini.vmap(xlamini.grad(loss)))(two)]
    assert len({digest(expand(program.jaxpr)) for program in programs}) == 2


def test_exported_programs_have_no_kernels() -> None:
    def attend(x: Any) -> Any:
        return nn.dot_product_attention(x, x, x)

    exported = export.export(xlamini.jit(attend), platforms=("cpu", "tpu"))(jnp.ones((512, 2, 8)))
    assert "tpu_custom_call" not in str(exported.mlir_module())
    assert export.deserialize(exported.serialize()).call(jnp.ones((512, 2, 8))).shape == (512, 2, 8)
