"""`jax.a.b` is the module `xlamini.a.b` itself, or one of the overlay; what is not there says which page to read."""
from __future__ import annotations

import pytest

from tests.support.children import passes


@pytest.mark.full
def test_modules_and_classes_are_the_same_under_both_names() -> None:
    passes("""
        import xlamini.as_jax
        import copy, importlib.metadata, importlib.util, pickle, sys
        import jax, jax.numpy.linalg, jax.scipy.special as special
        import jax.core, jax._src.core
        from jax import lax, numpy as jnp
        from jax.extend.core.primitives import add_p, jit_p
        import xlamini

        assert jax.numpy is xlamini.numpy is jnp is sys.modules["jax.numpy"]
        assert jax.numpy.linalg is xlamini.numpy.linalg and special is xlamini.scipy.special
        assert jax.Array is xlamini.Array and jax.grad is xlamini.grad and lax.sin is xlamini.lax.sin
        assert (jax.__version__, jax.__xlamini__) == (xlamini.core.version.JAX_VERSION, xlamini.__version__)
        assert importlib.metadata.version("jax") == jax.version.__version__ == ".".join(map(str, jax.__version_info__))
        assert (jax.numpy.__spec__.name, jax.numpy.__name__) == ("xlamini.numpy", "jax.numpy")
        assert importlib.util.find_spec("jax.numpy").name == "xlamini.numpy"
        assert jax._src.core.ShapedArray is jax.core.ShapedArray is type(xlamini.typeof(1.0))
        assert add_p is xlamini.lax.add_p and isinstance(add_p, jax.extend.core.Primitive)
        assert {"numpy", "grad", "__version__"} <= set(dir(jax)) and "grad" in jax.__all__
        assert pickle.loads(pickle.dumps(jnp.sin)) is jnp.sin
        tree = jax.tree.structure({"a": (1, 2)})
        assert pickle.loads(pickle.dumps(tree)) == tree == copy.deepcopy(tree)
        seen = []
        jax.make_jaxpr(lambda x: seen.append(isinstance(x, jax.core.Tracer)) or x)(1.0)
        assert seen == [True] and not isinstance(jnp.ones(2), jax.core.Tracer)
    """)


@pytest.mark.full
def test_what_is_not_there_says_which_page_to_read() -> None:
    passes("""
        import xlamini.as_jax
        import jax, jax.core, jax._src.core, jax.extend.core, jax.extend.linear_util

        def error(code):
            try:
                exec(code)
            except Exception as caught:
                return type(caught).__name__, str(caught)

        page = "xlamini answers for jax in this process; docs/dropin.md says what there is instead"
        assert error("jax.core.Sublevel") == ("AttributeError", f"jax.core has no 'Sublevel': {page}")
        assert error("jax._src.core.nothing") == ("AttributeError", f"jax._src.core has no 'nothing': {page}")
        assert error("from jax.core import Sublevel") == ("ImportError", f"jax.core has no 'Sublevel': {page}")
        assert error("from jax._src import nothing") == ("ImportError", f"jax._src has no 'nothing': {page}")
        assert error("jax.nothing") == ("AttributeError", f"jax has no 'nothing': {page}")
        assert not hasattr(jax, "tree_map") and not hasattr(jax.core, "cur_sublevel")
        for module in ("jax._src.nothing", "jax.experimental.jax2tf", "jax.runtime", "jax.staging.run"):
            kind, text = error(f"import {module}")
            assert kind == "ModuleNotFoundError" and "and has no such module; docs/dropin.md says" in text, module
    """)


@pytest.mark.full
def test_another_thread_that_reads_shards_does_not_change_what_jax_is() -> None:
    """jaxlib imports from `jax` whenever it hands out shards; while it did, `jax.core` was empty in all threads."""
    passes("""
        import sys, threading
        import xlamini.as_jax
        import jax
        jax.config.update("jax_num_cpu_devices", 2)
        import jax.numpy as jnp
        sys.setswitchinterval(1e-6)
        split = jax.NamedSharding(jax.make_mesh((2,), ("x",)), jax.P("x"))
        x = jax.device_put(jnp.arange(2.0), split)
        def read():
            for _ in range(100):
                assert [s.data.item() for s in (x + 1).addressable_shards] == [1, 2]
        threads = [threading.Thread(target=read) for _ in range(2)]
        [thread.start() for thread in threads]
        while any(thread.is_alive() for thread in threads):
            import jax.core
            assert jax.__xlamini__ and jax.core.Tracer and sys.modules["jax.core"] is jax.core
        [thread.join() for thread in threads]
    """)
