"""Names of `jax._src` and `jax.extend` that libraries read without making primitives."""
from __future__ import annotations

import pytest

from tests.support.children import passes


@pytest.mark.full
def test_private_names_of_dtypes_trees_and_equations() -> None:
    passes("""
    import collections
    import xlamini.as_jax
    import jax, numpy as np, jax.numpy as jnp
    from jax._src.ad_util import add_any_p
    from jax._src.numpy.ufuncs import isnan
    from jax._src.numpy.util import promote_dtypes_complex
    from jax._src.scipy.special import gammaln
    from jax._src.tree_util import _registry
    from jax._src.typing import Array, ArrayLike, DType, DTypeLike, Shape
    from jax.extend.core.primitives import add_jaxvals_p
    from jax.extend.source_info_util import summarize

    Point = collections.namedtuple("Point", "x y")
    for node in ({"b": [2], "a": 1}, (1, [2]), [1, None], Point(1, (2, 3)), ()):
        entry = _registry[type(node)]
        children, metadata = entry.to_iter(node)
        assert entry.from_iter(metadata, children) == node
    try:
        _registry[int]
    except KeyError as error:
        assert error.args == (int,)

    one, two = promote_dtypes_complex(1, np.float32(2.5))
    assert (one.dtype, one, two.dtype, two) == (np.complex64, 1, np.complex64, 2.5)
    assert Array is jax.Array and DType is np.dtype
    assert gammaln is jax.scipy.special.gammaln and isnan is jnp.isnan
    (eqn,) = jax.make_jaxpr(jnp.sin)(1.0).eqns
    assert summarize(eqn.source_info).endswith("(<module>)"), summarize(eqn.source_info)
    total = jax.make_jaxpr(jax.grad(lambda x: x * jnp.sin(x)))(1.0)
    assert add_any_p is add_jaxvals_p and add_any_p in {eqn.primitive for eqn in total.eqns}
    """)


@pytest.mark.full
def test_every_module_and_name_of_the_tables_is_there() -> None:
    passes("""
    import importlib
    import xlamini.as_jax
    import jax
    from xlamini.as_jax.tables import _MODULES, _NAMES

    for module, names in _MODULES.items():
        importlib.import_module(module)
        assert all(map(importlib.import_module, names)), module
    for module, sources in _NAMES.items():
        found = importlib.import_module(module)
        for name in " ".join(sources.values()).split():
            assert hasattr(found, name.partition("=")[0]), (module, name)
    """)


@pytest.mark.full
def test_a_private_module_has_the_names_of_the_public_one() -> None:
    passes("""
    import xlamini.as_jax
    import jax, jax.numpy as jnp
    import jax._src.lax.control_flow.loops as loops, jax._src.numpy.reductions, jax._src.tree_util as tree_util
    from jax._src import api, config, core, pjit, random, stages
    from jax._src.interpreters import ad, batching, mlir, partial_eval as pe
    from jax._src.lax import lax, linalg
    from jax._src.lax.control_flow import scan
    from jax._src.lib import xla_client

    assert scan is loops.scan is jax.lax.scan and lax.sin_p is jax.lax.sin_p and linalg.qr_p is jax.lax.linalg.qr_p
    assert jax._src.numpy.reductions.sum is jnp.sum and api.grad is jax.grad and random.normal is jax.random.normal
    assert stages.Lowered is jax.stages.Lowered and tree_util.tree_map is jax.tree_util.tree_map
    assert pe.dce_jaxpr is jax.interpreters.partial_eval.dce_jaxpr and ad.jvp is jax.interpreters.ad.jvp
    assert pjit.jit_p is jax.extend.core.primitives.jit_p is jax.make_jaxpr(jax.jit(jnp.sin))(1.0).eqns[0].primitive
    assert config.enable_x64.value is False and issubclass(xla_client.XlaRuntimeError, RuntimeError)
    assert core.Literal is jax.extend.core.Literal and core.JaxprTypeError is jax.core.JaxprTypeError
    assert jax.core.is_concrete(jnp.ones(2)) and core.trace_ctx.trace is core.trace_ctx.trace
    seen = []
    jax.jit(lambda x: seen.append((jax.core.is_concrete(x), core.trace_ctx.is_top_level())) or x)(1.0)
    jax.grad(lambda x: seen.append((jax.core.is_concrete(x), core.trace_ctx.is_top_level())) or x)(1.0)
    assert seen == [(False, False), (True, False)]
    jax.vmap(lambda x: seen.append(core.trace_ctx.axis_env.axis_sizes) or x, axis_name="i")(jnp.ones(3))
    assert seen[-1] == {"i": 3} and core.unsafe_get_axis_names_DO_NOT_USE() == []
    for name in ("jax._src.lax.nothing", "jax._src.numpy.nothing", "jax._src.nothing.lax"):
        try:
            __import__(name)
        except ModuleNotFoundError as error:
            assert "docs/dropin.md says what there is" in str(error)
        else:
            raise AssertionError(name)
    """)


@pytest.mark.full
def test_helpers_for_lists() -> None:
    passes("""
    import xlamini.as_jax
    from jax._src.util import (
        OrderedSet, canonicalize_axis, curry, merge_lists, partition_list, safe_map, safe_zip, split_list, subs_list,
        tuple_delete, tuple_insert, tuple_update, unflatten, unzip2, unzip3)

    mask, items = [True, False, True], [1, 2, 3]
    assert partition_list(mask, items) == ([2], [1, 3]) and merge_lists(mask, [2], [1, 3]) == items
    assert split_list(range(6), [1, 2]) == [[0], [1, 2], [3, 4, 5]]
    assert unflatten(range(3), [2, 0, 1]) == [[0, 1], [], [2]]
    assert unzip2([(1, 2), (3, 4)]) == ((1, 3), (2, 4)) and unzip3([]) == ((), (), ())
    assert subs_list([None, 1], [7, 8], [1, 2]) == [1, 8] and curry(pow)(2)(3) == 8
    assert tuple_insert((1, 2), 1, 9) == (1, 9, 2) and tuple_delete((1, 2), 0) == (2,)
    assert tuple_update((1, 2), 1, 0) == (1, 0)
    assert canonicalize_axis(-1, 3) == 2 and list(OrderedSet([3, 1, 3])) == [3, 1]
    for wrong in (lambda: safe_map(abs, [1], []), lambda: safe_zip([1], []), lambda: canonicalize_axis(3, 3)):
        try:
            wrong()
        except ValueError:
            continue
        raise AssertionError
    """)


@pytest.mark.full
def test_lines_and_scopes_of_equations() -> None:
    passes("""
    import xlamini.as_jax
    import jax, jax.numpy as jnp
    from jax.extend import source_info_util as info

    (eqn,) = jax.make_jaxpr(jax.named_scope("outer")(jnp.sin))(1.0).eqns
    names = info.new_name_stack("first") + eqn.source_info.name_stack
    with info.user_context(eqn.source_info.traceback, name_stack=names):
        (again,) = jax.make_jaxpr(jnp.sin)(1.0).eqns
        assert str(info.current_name_stack()) == "first/outer" == again.source_info.name_stack
        with info.reset_name_stack(), info.extend_name_stack("alone"):
            assert info.current().name_stack == "alone"
    assert info.current_name_stack() == () and info.new_source_info().name_stack == ""
    """)


@pytest.mark.full
def test_names_that_the_tests_of_libraries_import() -> None:
    passes("""
    import xlamini.as_jax
    import jax, numpy as np, jax.numpy as jnp
    from jax._src import array, config, core, deprecations, dtypes, op_shardings, sharding_impls
    from jax._src.compilation_cache import is_persistent_cache_enabled
    from jax._src.interpreters import pxla
    from jax._src.lax import lax as lax_internal, utils as lax_utils
    from jax._src.numpy.util import promote_args, promote_dtypes, promote_dtypes_inexact
    from jax._src.sharding import Sharding
    from jax._src.util import HashableFunction, split_list_checked

    config.parse_flags_with_absl()
    assert config.use_shardy_partitioner.value and config.config_states["jax_enable_x64"].value is False
    with config.numpy_rank_promotion("raise"):
        assert config.read("jax_numpy_rank_promotion") == "raise"
    assert core.typeof is jax.typeof and core.ConcretizationTypeError is jax.errors.ConcretizationTypeError
    assert array.make_array_from_callback is jax.make_array_from_callback and pxla.Mesh is jax.sharding.Mesh
    assert Sharding is jax.sharding.Sharding and issubclass(sharding_impls.GSPMDSharding, Sharding)
    assert dtypes.is_weakly_typed(1) and dtypes.default_float_dtype() == np.float32 and dtypes.int4 is jnp.int4
    assert dtypes.safe_to_cast("int16", "float32") and not dtypes.safe_to_cast("float32", "int16")
    assert dtypes.to_inexact_dtype("int32") == np.float32 and dtypes.to_numeric_dtype(bool) == np.int32

    weak = lax_internal._convert_element_type(np.ones(2, np.int32), np.float32, weak_type=True)
    assert weak.weak_type and weak.dtype == np.float32 and lax_internal._const(weak, 1) == 1
    assert np.array_equal(lax_internal._delta(np.float32, (2, 3), (0, 1)), np.eye(2, 3))
    assert lax_utils.int_dtype_for_shape([2**31, 2], signed=True) == np.int64
    assert [x.dtype for x in promote_dtypes(np.int8(1), np.float16(2))] == [np.float16] * 2
    assert [x.dtype for x in promote_dtypes_inexact(1, np.int8(2))] == [np.float32] * 2
    assert [x.shape for x in promote_args("f", np.ones((1, 3)), np.ones((2, 1)))] == [(2, 3)] * 2

    f = lambda n: HashableFunction(lambda: n, closure=n)
    assert f(1) == f(1) and hash(f(1)) == hash(f(1)) and f(1) != f(2) and f(3)() == 3
    assert split_list_checked([1, 2, 3], [1, 2]) == [[1], [2, 3]] and isinstance(is_persistent_cache_enabled(), bool)
    assert not deprecations.is_accelerated("a thing")
    sharding = jax.sharding.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))._to_xla_hlo_sharding(1)
    assert op_shardings.is_hlo_sharding_replicated(sharding)
    assert op_shardings.are_hlo_shardings_equal(sharding, sharding)
    """)
