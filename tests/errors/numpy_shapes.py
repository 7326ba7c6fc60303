"""Errors of numpy's functions that edit, pack, vectorise and convert; of ufuncs, segment sums and DLPack."""

from __future__ import annotations

import numpy as np

from tests.support.error_rows import ones, row
from xlamini import dlpack, flatten_util, jit, numpy as jnp, ops
from xlamini.errors import ConcretizationTypeError, ShapeError

V = np.arange(4, dtype=np.float32)
IDS = np.array([0, 1, 1, 2])

ROWS = [
    row("out_sharding", lambda: jnp.zeros(3, out_sharding=1), TypeError, "zeros: out_sharding must", "got 1; write"),
    row("ufunc out", lambda: jnp.add(V, V, out=V), NotImplementedError, "add: `out` must be None"),
    row("ufunc where", lambda: jnp.add(V, V, where=V > 1), NotImplementedError, "add: `where` must be None"),
    row("reduce nothing", lambda: jnp.subtract.reduce(V[:0]), ValueError, "reduce: without elements", "initial"),
    row("reduce where", lambda: jnp.subtract.reduce(V, where=V > 1), ValueError, "with `where`", "give `initial`"),
    row("reduce unary", lambda: jnp.negative.reduce(V), ValueError, "negative.reduce", "takes 1 and gives 1"),
    row("accumulate axis", lambda: jnp.add.accumulate(V, axis=None), ValueError, "axis must be an integer", "ravel"),
    row("at inplace", lambda: jnp.add.at(V, 0, 1), NotImplementedError, "arrays are immutable", "inplace=False"),
    row("frompyfunc", lambda: jnp.frompyfunc(3, 1, 1), TypeError, "frompyfunc: func must be a function, got 3"),  # type: ignore[arg-type]
    row("signature", lambda: jnp.vectorize(jnp.dot, signature="n,n->"), ValueError, "'n,n->' is no signature"),
    row(
        "core sizes", lambda: jnp.vectorize(jnp.dot, signature="(n),(n)->()")(V, V[:3]), ShapeError,
        "axis 'n' of the signature", "sizes 4 and 3",
    ),
    row("vectorize shapes", lambda: jnp.vectorize(jnp.add)(V, V[:3]), ShapeError, "add: shapes (4,), (3,) do not"),
    row("excluded", lambda: jnp.vectorize(jnp.add, excluded={-1}), ValueError, "negative position"),
    row("insert places", lambda: jnp.insert(V, np.float32(1), 2), ValueError, "obj must be of integers", "float32"),
    row("delete bounds", lambda: jnp.delete(V, 7), ValueError, "delete: index 7 is out of bounds", "length 4"),
    row("delete traced", lambda: jit(jnp.delete)(V, 1), ConcretizationTypeError, "delete: the length", "assume_unique"),
    row("delete mask", lambda: jnp.delete(V, np.array([True])), ValueError, "mask has shape (1,)", "length 4"),
    row("place mask", lambda: jnp.place(V, V[:2], 1, inplace=False), ValueError, "place: the mask has shape (2,)"),
    row("fill_diagonal", lambda: jnp.fill_diagonal(V, 1, inplace=False), ValueError, "two axes are needed", "(4,)"),
    row("packbits", lambda: jnp.packbits(V), TypeError, "packbits: integers or bools", "float32"),
    row("unpackbits", lambda: jnp.unpackbits(IDS), TypeError, "unpackbits: the dtype must be uint8, got int"),
    row("bitorder", lambda: jnp.packbits(IDS, bitorder="x"), ValueError, "bitorder='x'", "'little'"),
    row("ravel_multi_index", lambda: jnp.ravel_multi_index((5, 0), (3, 4)), ValueError, "out of bounds", "length 3"),
    row("mgrid", lambda: jnp.mgrid[3], TypeError, "mgrid is indexed with slices, got 3", "mgrid[0:3]"),  # type: ignore[index]
    row("r_", lambda: jnp.r_["abc", 1], ValueError, "'abc' says nothing"),
    row("ix_", lambda: jnp.ix_(ones(2, 2)), ValueError, "ix_: argument 0 must be one-dimensional", "(2, 2)"),
    row("diag_indices_from", lambda: jnp.diag_indices_from(ones(2, 3)), ValueError, "axes of one length", "(2, 3)"),
    row("segment_ids", lambda: ops.segment_sum(V, V, 3), TypeError, "segment_sum: segment_ids must be integers"),
    row("segment lengths", lambda: ops.segment_max(V, IDS[:2], 3), ShapeError, "(2,)", "(4,)"),
    row("segments traced", lambda: jit(ops.segment_sum)(V, IDS), ConcretizationTypeError, "give num_segments"),
    row("num_segments", lambda: ops.segment_sum(V, IDS, -1), ValueError, "num_segments must be 0 or more, got -1"),
    row("unravel", lambda: flatten_util.ravel_pytree([V])[1](V[:2]), ValueError, "unravel: a vector of 4 elements"),
    row("dlpack", lambda: dlpack.from_dlpack([1]), TypeError, "from_dlpack: an object with __dlpack__", "list"),
    row("fromfile", lambda: jnp.fromfile("x"), NotImplementedError, "fromfile", "np.fromfile"),
    row("pad mode", lambda: jnp.pad(V, 1, "around"), NotImplementedError, "pad: mode='around'", "linear_ramp"),
    row("arange", lambda: jnp.arange(2**31, 2**31 + 2), OverflowError, "arange: 2147483648 does not fit in int32"),
    row("arange down", lambda: jnp.arange(-(2**31), -(2**31) - 2, -1), OverflowError, "does not fit in int32"),
]
