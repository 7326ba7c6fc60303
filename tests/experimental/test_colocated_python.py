"""Functions and objects that run in Python where their arguments are: on the CPU devices of the process itself."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import P, numpy as jnp
from xlamini.experimental.colocated_python import colocated_cpu_devices, colocated_python, colocated_python_class
from xlamini.sharding import Mesh, NamedSharding

CPU = xlamini.devices("cpu")
X = xlamini.device_put(jnp.arange(4.0), CPU[1])


@colocated_python
def add(x: Any, y: Any) -> Any:
    """The sum."""
    return {"sum": x + y}


def test_cpu_devices_are_their_own() -> None:
    mesh = Mesh(np.array(CPU[:4]).reshape(2, 2), ("x", "y"))
    assert list(colocated_cpu_devices(CPU[:2])) == CPU[:2] and colocated_cpu_devices(mesh) == mesh


def test_a_function_runs_where_its_arguments_are() -> None:
    found = add(X, y=X)["sum"]
    np.testing.assert_array_equal(found, 2 * np.arange(4.0))
    assert found.devices() == {CPU[1]} and (add.__name__, add.__doc__) == ("add", "The sum.")


def test_a_function_sees_shards() -> None:
    mesh = Mesh(np.array(CPU[:4]).reshape(2, 2), ("x", "y"))
    x = xlamini.device_put(jnp.arange(16.0).reshape(4, 4), NamedSharding(mesh, P("x", "y")))

    @colocated_python
    def by_shard(x: Any) -> Any:
        parts = [shard.data + i for i, shard in enumerate(x.addressable_shards)]
        return xlamini.make_array_from_single_device_arrays(x.shape, x.sharding, parts)

    expected = np.arange(16.0).reshape(4, 4) + np.kron([[0, 1], [2, 3]], np.ones((2, 2)))
    np.testing.assert_array_equal(by_shard(x), expected)


def test_what_is_known_of_a_function_is_checked() -> None:
    spec = xlamini.ShapeDtypeStruct((4,), "float32", sharding=X.sharding)
    known = add.specialize(in_specs=((spec,), {"y": spec}), out_specs_fn=lambda x, y: {"sum": x})
    np.testing.assert_array_equal(known(X, y=X)["sum"], 2 * np.arange(4.0))
    with pytest.raises(TypeError, match="in_specs of add says"):
        known(X[:2], y=X[:2])
    with pytest.raises(TypeError, match="out_specs_fn of add says"):
        add.specialize(out_specs_fn=lambda x, y: x)(X, X)
    with pytest.raises(ValueError, match="in_specs of add is given already"):
        known.specialize(in_specs=((spec,), {}))


def test_what_other_hosts_could_not_be_given() -> None:
    ones = colocated_python(lambda: jnp.ones(2))
    with pytest.raises(ValueError, match=r"give its devices with .specialize\(devices=...\)"):
        ones()
    np.testing.assert_array_equal(ones.specialize(devices=CPU[:1])(), [1.0, 1.0])
    with pytest.raises(TypeError, match="arguments of add must be arrays on CPU devices, got a float"):
        add(X, 1.0)
    with pytest.raises(TypeError, match="results of <lambda> must be arrays on CPU devices, got a int"):
        colocated_python(lambda x: 3)(X)
    with pytest.raises(ValueError, match="are on different devices"):
        add(X, xlamini.device_put(X, CPU[0]))
    with pytest.raises(TypeError, match="got a Tracer"):
        xlamini.jit(lambda x: add(x, x))(X)


def test_an_object_is_made_at_its_first_call() -> None:
    made = []

    @colocated_python_class
    class Total:
        def __init__(self, start: float):
            made.append(start)
            self.total: Any = start

        def add(self, x: Any) -> Any:
            self.total = self.total + x
            return self.total

    one, other = Total(1.0), Total(2.0)
    assert made == []
    found = [one.add(X), one.add(X), other.add(X)]
    np.testing.assert_array_equal(found, np.arange(4.0) * [[1], [2], [1]] + [[1], [1], [2]])
    assert made == [1.0, 2.0]
    with pytest.raises(TypeError, match="cls must be a class"):
        colocated_python_class(add)  # type: ignore[arg-type]
