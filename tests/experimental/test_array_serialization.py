"""Pytrees of arrays in folders: what is loaded is what was saved, under every sharding; damage is an error."""
from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
from xlamini import export, numpy as jnp
from xlamini.experimental.array_serialization import folder
from xlamini.experimental.array_serialization.pytree_serialization import (
    load,
    load_pytreedef,
    nonblocking_load,
    nonblocking_save,
    save,
)

pytestmark = pytest.mark.sample(3)

MESH = xlamini.make_mesh((4, 2), ("a", "b"))
HERE = xlamini.devices()[0]


def placed(*spec: Any) -> xlamini.NamedSharding:
    return xlamini.NamedSharding(MESH, xlamini.P(*spec))


class Moments(NamedTuple):
    mean: Any
    spread: Any


export.register_namedtuple_serialization(Moments, serialized_name="tests.array_serialization.Moments")


@pytest.mark.parametrize("before", [(), ("a",), ("b", "a"), (("a", "b"),), (None, "b")])
@pytest.mark.parametrize("after", [(), ("b",), ("a", "b"), (None, ("b", "a"))])
def test_arrays_are_loaded_with_other_shardings(tmp_path: Path, before: Any, after: Any) -> None:
    whole = np.arange(64, dtype="int32").reshape(8, 8)
    save(xlamini.device_put(whole, placed(*before)), tmp_path / "x")
    found = load(tmp_path / "x", placed(*after))
    np.testing.assert_array_equal(found, whole)
    assert found.sharding == placed(*after)
    files = list((tmp_path / "x").glob("*.bin"))
    assert len(files) == {(): 1, ("a",): 4, (None, "b"): 2}.get(before, 8)
    assert sum(file.stat().st_size for file in files) == whole.nbytes  # each element once


def test_dtypes_structures_and_edges(tmp_path: Path) -> None:
    state = {
        "p": [jnp.ones((2, 3), "bfloat16"), jnp.array(2.5), None], "m": Moments(np.int8(3), True),
        "c": (jnp.array([1 + 2j]), jnp.zeros((0, 4)), jnp.arange(4, dtype="int4")),
    }  # fmt: skip
    save(state, tmp_path / "state")
    found = load(tmp_path / "state", HERE)
    assert xlamini.tree.structure(found) == xlamini.tree.structure(state)
    for a, b in zip(xlamini.tree.leaves(found), xlamini.tree.leaves(state), strict=True):
        assert a.dtype == jnp.asarray(b).dtype
        np.testing.assert_array_equal(a, b)
    types = load_pytreedef(tmp_path / "state")
    assert types["p"][0] == xlamini.ShapeDtypeStruct((2, 3), "bfloat16") and isinstance(types["m"], Moments)
    typed = xlamini.ShapeDtypeStruct((2, 3), "bfloat16", sharding=placed("b"))
    places, mask = {"p": [typed, HERE, None], "m": HERE, "c": HERE}, {"p": True, "m": False, "c": False}
    only = load(tmp_path / "state", places, mask=mask)
    assert only["p"][0].sharding == placed("b") and only["m"] == Moments(None, None)


def test_a_save_replaces_an_earlier_one_and_nothing_else(tmp_path: Path) -> None:
    save(1.0, tmp_path / "x")
    save(2.0, str(tmp_path / "x"))
    assert float(load(tmp_path / "x", HERE)) == 2 and sorted(p.name for p in tmp_path.iterdir()) == ["x"]
    with pytest.raises(ValueError, match="exists; pass overwrite=True"):
        save(3.0, tmp_path / "x", overwrite=False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("precious")
    with pytest.raises(ValueError, match="has other files in it"):
        save(3.0, tmp_path / "mine")
    assert (tmp_path / "mine/notes.txt").read_text() == "precious"


def test_a_save_that_fails_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save({"x": 1.0}, tmp_path / "x")
    with pytest.raises(ValueError, match="Partial cannot be written"):
        save(xlamini.tree_util.Partial(len, 2.0), tmp_path / "x")

    def full_disk(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(folder, "write_shards", full_disk)
    with pytest.raises(OSError, match="no space"):
        save({"x": 2.0}, tmp_path / "x")
    assert float(load(tmp_path / "x", HERE)["x"]) == 1


def test_futures(tmp_path: Path) -> None:
    x = jnp.arange(3.0)
    saving = nonblocking_save({"x": x}, tmp_path / "x")
    x.delete()
    assert saving.result() is None and saving.done() and saving.pytree["x"].shape == (3,)
    loading = nonblocking_load(tmp_path / "x", HERE)
    assert loading.pytree == saving.pytree
    np.testing.assert_array_equal(loading.result()["x"], np.arange(3.0))

    async def awaited() -> Any:
        return await nonblocking_load(tmp_path / "x", HERE)

    np.testing.assert_array_equal(asyncio.run(awaited())["x"], np.arange(3.0))
    with pytest.raises(xlamini.errors.LoadError):
        nonblocking_load(tmp_path / "nothing", HERE)


def test_a_load_in_a_thread_has_the_flags_of_its_caller(tmp_path: Path) -> None:
    with xlamini.enable_x64(True):
        save(np.arange(3.0), tmp_path / "x")
        assert nonblocking_load(tmp_path / "x", HERE).result().dtype == np.float64


def test_damage_is_an_error(tmp_path: Path) -> None:
    where = tmp_path / "x"
    save(xlamini.device_put(np.arange(8, dtype="int32"), placed("a")), where)
    file = where / "0.2.bin"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(xlamini.errors.LoadError, match=r"0\.2\.bin is missing or has another size"):
        load(where, HERE)
    file.write_bytes(whole)
    index = json.loads((where / "index.json").read_text())
    index["leaves"][0][2].pop()
    (where / "index.json").write_text(json.dumps(index))
    with pytest.raises(xlamini.errors.LoadError, match="does not cover the leaf 0"):
        load(where, xlamini.NamedSharding(MESH, xlamini.P("a")))
    empty = '{"version": 1, "tree": "*", "leaves": []}'
    for text in ("", "[]", '{"version": 2}', empty, json.dumps({**index, "tree": 3})):
        (where / "index.json").write_text(text)
        with pytest.raises(xlamini.errors.LoadError, match=r"no folder that save has written|is damaged"):
            load(where, HERE)


@pytest.mark.parametrize("call, error, text", [
    (lambda where: save("text", where), TypeError, "the leaf 0 must be an array or a number, got str"),
    (lambda where: save(xlamini.random.key(0), where), TypeError, r"save random\.key_data\(key\)"),
    (lambda where: save(1, where, ts_specs={}), ValueError, "ts_specs must be None"),
    (lambda where: load(where, None), TypeError, "shardings must have a sharding or a device for each leaf, got None"),
    (lambda where: load(where, xlamini.ShapeDtypeStruct((3,), "int32")), ValueError, r"int32\[2\], but .* int32\[3\]"),
    (lambda where: load(where, placed("a")), xlamini.errors.ShardingError, "2"),
])  # fmt: skip
def test_errors(tmp_path: Path, call: Any, error: type[Exception], text: str) -> None:
    where = tmp_path / "x"
    save(jnp.arange(2, dtype="int32"), where)
    with pytest.raises(error, match=text):
        call(where)
