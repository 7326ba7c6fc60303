"""custom_partitioning, compiled for GPUs: their compiler asks Python how a call is divided."""
from __future__ import annotations

import re
from typing import Any

import numpy as np

import xlamini
from tests.aot.conftest import target_or_skip
from xlamini import NamedSharding, P, lax, numpy as jnp
from xlamini.experimental.custom_partitioning import custom_partitioning
from xlamini.sharding import Mesh


def test_the_compiler_asks() -> None:
    mesh = Mesh(np.array(target_or_skip("gpu:h200:4").devices), ("x",))
    product, asked = custom_partitioning(jnp.matmul), []

    def partition(mesh: Any, arg_shapes: Any, result_shape: Any) -> Any:
        asked.append([x.sharding.spec for x in arg_shapes])
        shardings = tuple(x.sharding for x in arg_shapes)
        return mesh, lambda a, b: lax.psum(a @ b, "x"), result_shape.sharding, shardings

    product.def_partition(partition, sharding_rule="i k, k j -> i j", reduction_factors=("k",))
    specs = P(None, "x"), P("x", None)
    args = [xlamini.ShapeDtypeStruct((256, 256), "float32", sharding=NamedSharding(mesh, spec)) for spec in specs]
    text = xlamini.jit(lambda a, b: product(a, b)).lower(*args).compile().as_text()
    assert asked == [list(specs)]
    assert set(re.findall(r"all-gather|all-reduce|CustomSPMDPartitioning", text)) == {"all-reduce"}
