"""memory.Space: arrays in the memory of the device and in that of the host; the older names of process ranks."""
from __future__ import annotations

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp
from xlamini.memory import Space


def test_arrays_move_between_memories() -> None:
    x = jnp.arange(3.0)
    host = xlamini.device_put(x, Space.Host)
    assert host.sharding.memory_kind == "pinned_host" and host.devices() == x.devices()
    assert xlamini.device_put(host, Space.Any).sharding == host.sharding
    back = xlamini.device_put(host, Space.Device)
    assert back.sharding == x.sharding
    np.testing.assert_array_equal(back, x)
    tree = xlamini.device_put({"a": 1.5, "b": np.ones(2, "float32")}, {"a": Space.Host, "b": Space.Device})
    assert [tree[k].sharding.memory_kind for k in "ab"] == ["pinned_host", "device"]


def test_sharded_arrays_stay_sharded() -> None:
    mesh = xlamini.make_mesh((8,), ("x",))
    x = xlamini.device_put(jnp.arange(8.0), xlamini.NamedSharding(mesh, xlamini.P("x")))
    host = xlamini.device_put(x, Space.Host)
    assert host.sharding == x.sharding.with_memory_kind("pinned_host")
    np.testing.assert_array_equal(host, x)


def test_older_names_of_ranks() -> None:
    assert (xlamini.host_id(), xlamini.host_ids(), xlamini.host_count()) == (0, [0], 1)


def test_raw_keys_are_refused_where_that_is_asked_for() -> None:
    raw, key = xlamini.random.PRNGKey(0), xlamini.random.key(0)
    with xlamini.legacy_prng_key("error"):
        xlamini.random.normal(key)
        with pytest.raises(ValueError, match=r"normal: a raw key was passed.* make keys with random\.key"):
            xlamini.random.normal(raw)
        with pytest.raises(ValueError, match="split: a raw key was passed"):
            xlamini.random.split(raw)
    with xlamini.legacy_prng_key("warn"), pytest.warns(UserWarning, match="uniform: a raw key was passed"):
        xlamini.random.uniform(raw)
    xlamini.random.normal(raw)
    with pytest.raises(ValueError, match="legacy_prng_key"), xlamini.legacy_prng_key("never"):
        pass
