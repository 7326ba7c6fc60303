"""What is compiled for a target is saved here and refused here; what is exported compiles for every target."""
from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import export, numpy as jnp, random, sharding
from xlamini.errors import LoadError
from xlamini.runtime.targets.topology import Target
from xlamini.staging.aot.compiled_file import unpacked

X = np.eye(130, dtype=np.float32)


def program(x: Any, key: Any) -> Any:
    """Operations that are others on each platform, also in a function that is called twice."""
    factor = xlamini.jit(lambda x: jnp.linalg.cholesky(x @ x.T))
    return {"factor": factor(x) + factor(2 * x), "sorted": jnp.sort(jnp.sin(x)), "noise": random.normal(key, (3,))}


ARGUMENTS = (X, random.key(0))


@pytest.fixture(scope="module")
def exported() -> export.Exported:
    found = export.export(xlamini.jit(program), platforms=("cpu", "cuda", "tpu"))(*ARGUMENTS)
    return export.deserialize(found.serialize(), trusted=True)


def test_devices_of_a_target_are_copied_and_not_pickled(target: Target) -> None:
    mesh = sharding.Mesh(target.devices[:1], ("x",))
    assert copy.deepcopy(mesh) is mesh
    if not is_here(target):
        with pytest.raises(TypeError, match="of a target cannot be pickled, as it is not here"):
            pickle.dumps(mesh)


def test_programs_for_targets_are_saved(target: Target) -> None:
    blob = xlamini.jit(program).lower(*ARGUMENTS).compile(target=target).serialize()
    content = unpacked(blob)
    assert (content.home.platform, content.home.kind) == (target.platform, target.device_kind)
    assert content.home.processor is None and len(content.code) > 1000
    if not is_here(target):
        with pytest.raises(LoadError, match=rf"it was compiled for {target.platform} \({target.device_kind}\)"):
            xlamini.load(blob)


def test_programs_over_a_mesh_of_a_target_are_saved(tpu: Target) -> None:
    mesh = sharding.Mesh(np.array(tpu.devices).reshape(2, 2), ("x", "y"))
    where = sharding.NamedSharding(mesh, sharding.PartitionSpec("x", "y"))
    x = xlamini.ShapeDtypeStruct((128, 128), "float32")
    compiled = xlamini.jit(lambda x: jnp.sin(x) @ x.T, in_shardings=where).lower(x).compile()
    content = unpacked(compiled.serialize())
    assert content.program["place"]["axes"] == [["x", 2, "Auto"], ["y", 2, "Auto"]]
    assert content.program["place"]["ins"] == [["x", "y"]]


def is_here(target: Target) -> bool:
    try:
        return any(d.device_kind == target.device_kind for d in xlamini.devices(target.platform))
    except RuntimeError:
        return False


def test_exported_functions_compile_for_targets(exported: export.Exported, target: Target) -> None:
    compiled = xlamini.jit(exported.call).lower(*ARGUMENTS).compile(target=target)
    text = compiled.as_text()
    assert ("cusolver_potrf_ffi" in text) == (target.platform == "cuda")
    assert "lapack" not in text


@pytest.mark.full
def test_exported_functions_run_here(exported: export.Exported) -> None:
    wanted = program(*ARGUMENTS)
    for name, found in exported.call(*ARGUMENTS).items():
        np.testing.assert_allclose(found, wanted[name], rtol=1e-6)
