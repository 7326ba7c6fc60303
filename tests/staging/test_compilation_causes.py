"""Causes of recompilation: for each, the ledger names its class, what differs, and the edit that avoids it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp, random
from xlamini.core.flags.compile_flags import optimization_level
from xlamini.sharding import Mesh, NamedSharding, PartitionSpec as P

X = np.arange(4, dtype=np.float32)


class Cause(NamedTuple):
    """A sample, and what the ledger must say of its last compilation."""

    run: Callable[[], Any]
    kind: str
    path: str
    text: str
    edit: str


CAUSES: list[Cause] = []


def cause(kind: str, path: str, text: str, edit: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def register(run: Callable[[], Any]) -> Callable[[], Any]:
        CAUSES.append(Cause(run, kind, path, text, edit))
        return run

    return register


def jitted(**options: Any) -> Any:
    """A jitted function of code that no other sample has."""
    return xlamini.jit(lambda x, y=0.0, flag=None: jnp.sum(x) * 2 + y, **options)


def called(f: Any, *calls: Any) -> Any:
    for call in calls:
        f(call)
    return f


# --- the arguments


@cause("shape", "x", "x is float32[3], before float32[4]", "pad x to a few shapes, such as (4,)")
def shape():
    return called(xlamini.jit(lambda x: x * 3), X, X[:3])


@cause("shape", "x", "x is float32[1,9], before float32[4,6]", "pad x to a few shapes, such as (4, 9)")
def shape_of_more_room():
    return called(xlamini.jit(lambda x: x * 3.5), jnp.ones((4, 6)), jnp.ones((1, 9)))


@cause("shape", "batch['x'][1]", "batch['x'][1] is float32[1,4], before float32[4]", "as many axes")
def rank_of_a_leaf():
    return called(xlamini.jit(lambda batch: batch["x"][1] * 5), {"x": [X, X]}, {"x": [X, X[None]]})


@cause("dtype", "x", "x is int32[4], before float32[4]", "x.astype('float32')")
def dtype():
    return called(xlamini.jit(lambda x: x * 7), X, X.astype(np.int32))


@cause("weak type", "x", "x is weakly typed float32[], before float32[]", "jnp.asarray(x, 'float32')")
def weak_type():
    return called(xlamini.jit(lambda x: x * 11), jnp.float32(1), jnp.asarray(1.0))


@cause("Python scalar", "x", "x is weakly typed float32[], before float32[]", "jnp.asarray(x, 'float32')")
def python_scalar_in_place_of_an_array():
    return called(xlamini.jit(lambda x: x * 13), jnp.float32(1), 1.0)


@cause("dtype", "x", "x is weakly typed float32[], before weakly typed int32[]", "x.astype")
def python_scalar_of_another_type():
    return called(xlamini.jit(lambda x: x * 17), 1, 1.0)


@cause("key type", "key", "key is key<rbg>[], before key<fry>[]", "make all keys by random.key(seed), with one impl")
def generator_of_a_key():
    return called(xlamini.jit(lambda key: random.normal(key) * 1051), random.key(0), random.key(0, impl="rbg"))


@cause("key type", "key", "key is uint32[2], before key<fry>[]", "random.key(seed)")
def raw_key():
    return called(xlamini.jit(lambda key: random.uniform(key)), random.key(0), random.PRNGKey(0))


@cause("structure", "x", "x has the keys 'b', where before x has 'a'", "give containers of one structure")
def keys_of_a_dict():
    return called(xlamini.jit(lambda x: [v * 19 for v in x.values()]), {"a": X}, {"b": X})


@cause("structure", "x[0]", "x[0] is a list of length 2, but before x[0] is a list of length 1", "one structure")
def length_of_a_list():
    return called(xlamini.jit(lambda x: x[0][0] * 23), ([X],), ([X, X],))


@cause("None or array", "x['bias']", "x['bias'] is None, but before x['bias'] is a leaf", "pass an array for x['bias']")
def none_in_place_of_an_array():
    return called(xlamini.jit(lambda x: x["w"] * 29), {"w": X, "bias": X}, {"w": X, "bias": None})


@cause("position or name", "args", "1 arguments are given by position and 1 by name, before 2 and 0", "the same way")
def argument_by_name():
    f = jitted()
    f(X, 1.0), f(X, y=1.0)
    return f


@cause("number of arguments", "args", "2 arguments are given by position", "the same arguments in all calls")
def default_left_out():
    f = xlamini.jit(lambda x, y=1.0: x * 31 + y)
    f(X), f(X, 1.0)
    return f


@cause("memory space", "x", "x is float32<host>[4], before float32[4]", "device_put x to one memory")
def memory_space():
    host = xlamini.device_put(X, xlamini.memory.Space.Host)
    f = xlamini.jit(lambda x: xlamini.device_put(x, xlamini.memory.Space.Device) * 37)
    return called(f, jnp.asarray(X), host)


# --- static arguments


@cause("static value", "n", "static argument 'n' is 3, before 2", "leave n out of static_argnames")
def static_value():
    f = xlamini.jit(lambda x, n: x * n, static_argnames="n")
    f(X, 2), f(X, 3)
    return f


@cause("static type", "n", "static argument 'n' is 2.0 of type float, before 2 of type int", "convert n to one type")
def static_type():
    f = xlamini.jit(lambda x, n: x * n + 1, static_argnames="n")
    f(X, n=2), f(X, n=2.0)
    return f


class Settings:
    scale = 3


@cause("static identity", "s", "static argument 's' is another Settings", "__eq__ and __hash__, as a frozen dataclass")
def static_object_that_compares_by_identity():
    f = xlamini.jit(lambda s, x: x * s.scale, static_argnums=0)
    f(Settings(), X), f(Settings(), X)
    return f


@cause("static identity", "g", "static argument 'g' is another <lambda> function", "pass the same object")
def static_lambda():
    f = xlamini.jit(lambda x, g: g(x), static_argnames="g")
    for _ in range(2):
        f(X, lambda x: x + 41)
    return f


@dataclass(frozen=True)
class Frozen:
    scale: int


def test_equal_static_arguments_share_a_program():
    f = xlamini.jit(lambda s, x: x * s.scale + 1, static_argnums=0)
    f(Frozen(2), X), f(Frozen(2), X), f(Frozen(3), X)
    _, second = f.compilations()
    assert second.cause.text == "static argument 's' is Frozen(scale=3), before Frozen(scale=2)"


# --- the function


@cause("function identity", "<lambda>", "another function with the same code", "define it once, outside of the loop")
def new_lambda_in_each_iteration():
    return [called(xlamini.jit(lambda x: x * 43), X) for _ in range(2)][1]


@cause("closure", "scale", "scale is 2, before 1, in a new function", "make scale an argument of the function")
def closure_over_a_number():
    return [called(xlamini.jit(lambda x, scale=scale: x * scale * 47), X) for scale in (1, 2)][1]


@cause("closure", "weights", "weights is another float32[4], in a new function", "make weights an argument")
def closure_over_an_array():
    def make(weights):
        return called(xlamini.jit(lambda x: x * weights), X)

    return [make(jnp.asarray(X)) for _ in range(2)][1]


def scaled(x, scale=1.0):
    return x * scale * 53


@cause("partial", "scale", "scale is 3.0, before 2.0, in a new functools.partial", "make the partial once")
def partial_of_other_arguments():
    return [called(xlamini.jit(functools.partial(scaled, scale=s)), X) for s in (2.0, 3.0)][1]


def shifted(x, by):
    return x + by * 59


@cause("partial", "shifted", "a functools.partial of the same function and arguments", "make it once")
def partial_anew():
    return [called(xlamini.jit(functools.partial(shifted, by=1)), X) for _ in range(2)][1]


class Model:
    def apply(self, x):
        return x * 61

    def __call__(self, x):
        return x * 67


@cause("bound method", "apply", "apply is a method, bound anew to a Model", "in __init__")
def method_of_a_new_object():
    return [called(xlamini.jit(Model().apply), X) for _ in range(2)][1]


@cause("callable object", "Model", "another object of class Model was jitted before", "jit one object, once")
def object_of_a_class_with_call():
    return [called(xlamini.jit(Model()), X) for _ in range(2)][1]


@cause("donation", "donate", "option donate of jit is (0,) ('x',), before () ()", "with one set of options")
def other_donation():
    def f(x):
        return x * 71

    xlamini.jit(f)(jnp.asarray(X))
    return called(xlamini.jit(f, donate_argnums=0), jnp.asarray(X))


@cause("option of jit", "keep_unused", "option keep_unused of jit is True, before False", "with one set of options")
def other_options():
    def f(x, y=None):
        return x * 73

    called(xlamini.jit(f), X)
    return called(xlamini.jit(f, keep_unused=True), X)


@cause("captured tracer", "", "closes over a traced value of the function around it", "pass the value as an argument")
def captured_tracer():
    cell = []
    inner = xlamini.jit(lambda x: x * cell[-1])

    def outer(x, scale):
        cell.append(scale)
        return inner(x)

    xlamini.jit(outer)(X, 2.0)
    xlamini.jit(outer, keep_unused=True)(X, 2.0)
    return inner


# --- flags and contexts


@cause("flag", "enable_x64", "enable_x64 is True, before False", "set enable_x64 once, before the first call")
def x64():
    f = called(xlamini.jit(lambda x: x * 79), X)
    with xlamini.enable_x64(True):
        return called(f, X)


@cause("flag", "default_matmul_precision", "is 'float32', before None", "set default_matmul_precision once")
def matmul_precision():
    f = called(xlamini.jit(lambda x: x @ x), X)
    with xlamini.default_matmul_precision("float32"):
        return called(f, X)


@cause("flag", "default_prng_impl", "is 'rbg', before 'threefry2x32'", "set default_prng_impl once")
def default_generator():
    f = called(xlamini.jit(lambda x: x * 83), X)
    with xlamini.default_prng_impl("rbg"):
        return called(f, X)


@cause("flag of a thread", "numpy_rank_promotion", "before 'allow' in another thread", "set it for all threads")
def flag_of_another_thread():
    f = called(xlamini.jit(lambda x: x * 89), X)

    def run():
        with xlamini.numpy_rank_promotion("raise"):
            f(X)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return f


def mesh(*names: str) -> Mesh:
    return Mesh(np.array(xlamini.devices()[:2]).reshape([2, *[1] * (len(names) - 1)]), names)


@cause("mesh context", "mesh", "flag or context mesh is", "enter the mesh once, around all calls")
def mesh_context():
    f = called(xlamini.jit(lambda x: x * 97), X)
    with xlamini.sharding.set_mesh(mesh("a")):
        return called(f, X)


@cause("named axes", "i", "the named axes around the call are i, before none", "call it under the same axes")
def named_axes():
    f = called(xlamini.jit(lambda x: x * 101), X[0])
    xlamini.vmap(f, axis_name="i")(X)
    return f


@cause("compiler flag", "optimization_level", "optimization_level is 'O1', before 'UNKNOWN'", "once")
def compiler_flag():
    f = called(xlamini.jit(lambda x: x * 103), X)
    with optimization_level("O1"):
        return called(f, X)


@cause("default device", "default_device", "the default device, before on", "set default_device once")
def default_device():
    f = called(xlamini.jit(lambda x: x * 107), X)
    with xlamini.default_device(xlamini.devices()[1]):
        return called(f, X)


# --- the places of the arguments


@cause("device", "x", "x is on ", "device_put x to one device; each device has a program of its own")
def committed_device():
    first, second = xlamini.devices()[:2]
    return called(xlamini.jit(lambda x: x * 109), xlamini.device_put(X, first), xlamini.device_put(X, second))


@cause("sharding", "x", "x has sharding NamedSharding", "device_put x with one sharding, before the loop")
def sharding():
    here = mesh("a")
    places = (xlamini.device_put(X, NamedSharding(here, spec)) for spec in (P(), P("a")))
    return called(xlamini.jit(lambda x: x * 113), *places)


@cause("sharding", "x", "x has sharding NamedSharding", "in_shardings")
def array_on_a_mesh():
    return called(xlamini.jit(lambda x: x * 127), X, xlamini.device_put(X, NamedSharding(mesh("a"), P("a"))))


@cause("sharding", "x", "x is float32[4@a] with sharding", "device_put x with one sharding")
def sharding_in_the_type():
    here = xlamini.make_mesh((2,), ("a",), axis_types=(xlamini.sharding.AxisType.Explicit,))
    with xlamini.sharding.set_mesh(here):
        places = (xlamini.device_put(X, NamedSharding(here, spec)) for spec in (P(), P("a")))
        return called(xlamini.jit(lambda x: x * 131), *places)


# --- what was dropped


@cause("cleared caches", "", "its caches were cleared since it was compiled", "call clear_caches() less often")
def cache_of_the_function():
    f = called(xlamini.jit(lambda x: x * 137), X)
    f.clear_cache()
    return called(f, X)


@cause("ahead of time", "", "it was traced before, and lowered again", "keep what lower() or compile() returns")
def compiled_ahead_of_time_again():
    f = xlamini.jit(lambda x: x * 139)
    traced = f.trace(X)
    traced.lower().compile(), traced.lower().compile()
    return f


@pytest.mark.parametrize("sample", CAUSES, ids=lambda sample: sample.run.__name__)
def test_causes(sample):
    entries = sample.run().compilations()
    assert [entry.cause.kind for entry in entries[:1]] == ["first call"]
    entry = entries[-1]
    assert (entry.cause.kind, entry.cause.path) == (sample.kind, sample.path)
    assert sample.text in entry.cause.text
    assert sample.edit in entry.cause.edit
    assert entry.where.startswith(f"{__file__}:")
    assert len(entries) == 2


def test_there_are_many_causes():
    assert len(CAUSES) >= 40 and len({sample.kind for sample in CAUSES}) >= 25


def test_symbolic_sizes_of_two_scopes_are_not_compared() -> None:
    double = xlamini.jit(lambda x: x * 2.5)
    for name in "bc":
        sizes = xlamini.export.symbolic_shape(name)
        exported = xlamini.export.export(xlamini.jit(lambda x: double(x) + 1))(xlamini.ShapeDtypeStruct(sizes, "f4"))
        assert exported.call(X).tolist() == [1, 3.5, 6, 8.5]
