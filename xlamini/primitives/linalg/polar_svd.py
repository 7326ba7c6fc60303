"""The singular value decomposition by a polar one, where there is no kernel for it: A = U H, and H = V diag(s) V^H."""
from __future__ import annotations

from typing import Any

from xlamini.core import aval_of, literal
from xlamini.core.dtypes.limits import finfo
from xlamini.primitives.base.dtype_kinds import is_complex
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.arithmetic import max, sub
from xlamini.primitives.elementwise.comparison import eq, lt
from xlamini.primitives.elementwise.complex import real
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.linalg.cholesky import symmetrized
from xlamini.primitives.linalg.eigh import eigh
from xlamini.primitives.linalg.qdwh import unitary_factor, weights
from xlamini.primitives.linalg.qr import qr
from xlamini.primitives.linalg.spectra import as_rows, diagonal
from xlamini.primitives.linalg.stacks import matmul, mH, or_nan
from xlamini.primitives.reductions.reductions import reduce_and
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.shape import rev
from xlamini.primitives.shape.slice import slice_in_dim


def svd_by_polar(x: Any, full_matrices: bool) -> list[Any]:
    """The singular values, U and V^H; NaN for matrices with elements that are not finite."""
    *_, m, n = aval_of(x).shape
    if m < n:
        s, u, vh = svd_by_polar(mH(x), full_matrices)
        return [s, mH(vh), mH(u)]
    if m == n:
        return _of_square(x)
    q, r = qr(x, full_matrices=full_matrices)
    s, u, vh = _of_square(slice_in_dim(r, 0, n, axis=-2))
    whole = matmul(slice_in_dim(q, 0, n, axis=-1), u)
    if full_matrices:
        whole = concatenate([whole, slice_in_dim(q, n, m, axis=-1)], aval_of(q).ndim - 1)
    return [s, whole, vh]


def _of_square(x: Any) -> list[Any]:
    aval = aval_of(x)
    factor = unitary_factor(x, list(weights(float(finfo(aval.dtype).eps))))
    v, w = eigh(symmetrized(matmul(mH(factor), x)), symmetrize_input=False)
    last = aval.ndim - 1
    v, w = rev(v, (last,)), rev(w, (last - 1,))
    s = max(w, zeros(aval_of(w)))
    outs = [s, _orthonormal(matmul(factor, v)), mH(v)]
    difference = sub(x, x)  # zero where finite, else NaN
    finite = reduce_and(eq(difference, difference), (last - 1, last))
    return [or_nan(finite, y) for y in outs]


def _orthonormal(u: Any) -> Any:
    """Columns of which some may be short, where singular values are zero, completed to orthonormal ones."""
    q, r = qr(u)
    sign = diagonal(r)
    sign = real(sign) if is_complex(sign) else sign
    one = literal(1, aval_of(sign).dtype)
    signs = where(lt(sign, literal(0, aval_of(sign).dtype)), literal(-1, aval_of(sign).dtype), one)
    return mul(q, convert(as_rows(signs, aval_of(q).shape), aval_of(q).dtype))
