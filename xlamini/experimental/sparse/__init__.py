"""Sparse arrays, under the names of `jax.experimental.sparse`: pytrees of data and indices, and functions of them.

A `BCOO` of shape `(*batch, *sparse, *dense)` stores `nse` specified elements for each batch: `data` of shape
`(*batch, nse, *dense)`, and `indices` of shape `(*batch, nse, n_sparse)`. A batch dimension of size 1 is broadcast.
Rows of indices may repeat: elements at the same place are added. A row out of bounds is padding, without effect;
functions here write padding as a row of sizes. A `BCSR` compresses the rows of two sparse dimensions.

All functions are compositions of operations on dense arrays, so that jit, derivatives (in the data) and vmap (over
batch dimensions) apply. Sizes are static: where the number of elements of a result depends on values, it is an upper
bound, or the argument `nse` gives it.
"""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
