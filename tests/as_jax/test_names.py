"""What modules, functions and classes say of themselves where xlamini answers for JAX."""
from __future__ import annotations

import pytest

from tests.support.children import passes


@pytest.mark.full
def test_modules_functions_and_classes_have_names_of_jax() -> None:
    passes("""
    import importlib, pickle, types
    import xlamini.as_jax
    import jax, jax.numpy as jnp

    for name in ("jax", "jax.numpy", "jax.numpy.linalg", "jax.lax", "jax.nn", "jax.random", "jax.tree", "jax.tree_util",
                 "jax.scipy.special", "jax.sharding", "jax.core", "jax.errors", "jax.experimental.shard_map"):
        module = importlib.import_module(name)
        assert module.__name__ == name, (module.__name__, name)
        for member in [getattr(module, n) for n in dir(module) if not n.startswith("_")]:
            if isinstance(member, types.FunctionType | type):
                assert not member.__module__.startswith("xlamini"), (name, member)
    assert (jnp.sin.__module__, jnp.linalg.det.__module__) == ("jax.numpy", "jax.numpy.linalg")
    assert jax.jit.__module__ == "jax"
    assert jnp.float32.__module__ == jnp.add.__module__ == "jax.numpy"
    from jax.numpy import linalg
    assert linalg is jnp.linalg
    """)


@pytest.mark.full
def test_classes_of_values_have_names_of_jax_and_pickle() -> None:
    passes("""
    import pickle
    import xlamini.as_jax
    import jax, jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    def kind(x):
        return type(x).__module__.split(".")[0] in ("jax", "jaxlib")

    def check(x):
        assert kind(x), type(x)
        return x

    x, key, mesh = jnp.ones(3), jax.random.key(0), jax.make_mesh((1,), ("x",))
    for transform in (jax.jit, jax.vmap, jax.jacfwd, jax.jacrev, jax.checkpoint, jax.make_jaxpr):
        transform(lambda v: check(v) * 2)(x)
    jax.linearize(check, x), jax.vjp(check, x), jax.jvp(check, (x,), (x,))
    jax.lax.scan(lambda c, v: (check(c), check(v)), x, x)
    jax.vmap(check)(jax.random.split(key))
    program, (doubling,) = jax.make_jaxpr(jnp.sin)(x), jax.make_jaxpr(lambda x: x * 2)(x).eqns
    values = [x, key, mesh, key.dtype, mesh.abstract_mesh, PartitionSpec("x"), NamedSharding(mesh, PartitionSpec("x")),
              x.sharding, jax.ShapeDtypeStruct((2,), "float32"), jax.typeof(x), jax.tree_util.Partial(jnp.sin, 1.0),
              AxisType.Auto, jax.lax.Precision.HIGHEST, doubling.invars[1].val]
    assert all(map(kind, [*values, program, program.jaxpr, program.eqns[0], *program.jaxpr.invars, jax.devices()[0]]))
    for value in [*values, jnp.sin, jax.lax.dot_general, jax.grad, jax.errors.TracerArrayConversionError, jax.Array]:
        again = pickle.loads(pickle.dumps(value))
        assert type(again) is type(value)
        assert again is value or not isinstance(value, type | type(jnp.sin))
    """)


@pytest.mark.full
def test_aliases_have_names_of_their_own_in_a_program_that_imports_jax_first() -> None:
    passes("""
    import xlamini.as_jax
    from jax import numpy as jnp, tree

    assert [f.__name__ for f in (jnp.abs, jnp.acos, jnp.amax, tree.map)] == ["abs", "acos", "amax", "map"]
    """)
