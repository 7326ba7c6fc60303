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
