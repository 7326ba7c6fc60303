"""Every row of tests/rows with symbolic sizes: it gives what the plain function gives, or is refused by name here.

One number among the sizes of a sample becomes a symbol, then two. An array may be empty, where the function takes that.
Derivatives and batches are those of the function from a file. The full tier takes one row in eight.
"""
from __future__ import annotations

from typing import Any

import pytest

from tests.rows import all_rows
from tests.rows.row import Row
from tests.support.symbolic_rows import REFUSALS, check_buckets, check_derivatives, check_empty, check_symbolic
from xlamini.errors import InconclusiveDimensionOperation, ShapeError

REFUSED = {
    "a comparison of sizes decides what it computes, or whether it is an error; a constraint would tell": """
        approx_max_k
        approx_min_k
        conv_general_dilated: groups of the batch
        dynamic_slice
        dynamic_slice: by a vector
        dynamic_slice_in_dim
        dynamic_update_slice
        dynamic_update_slice_in_dim
        gather
        gather: of windows
        gather: with clipping
        gather: with filling
        index_in_dim
        lax.linalg.eigh: subset
        lax.linalg.lu_pivots_to_permutation
        nn.dot_product_attention
        nn.dot_product_attention: causal, with bias
        nn.scaled_dot_general: mxfp8
        nn.scaled_matmul
        numpy.argpartition
        numpy.array_split
        numpy.compress
        numpy.correlate: same
        numpy.extract
        numpy.gradient
        numpy.hsplit
        numpy.isin
        numpy.linalg.multi_dot
        numpy.partition
        numpy.roots
        numpy.vsplit
        pbroadcast
        ppermute
        precv
        psend
        scatter_apply
        scipy.fft.dct: type=1
        scipy.fft.dct: type=1, norm=ortho
        scipy.fft.idct: type=1
        scipy.fft.idct: type=1, norm=ortho
        scipy.linalg.companion
        scipy.linalg.convolution_matrix: same
        scipy.linalg.convolution_matrix: valid
        scipy.linalg.qr
        scipy.ndimage.map_coordinates: 0 mirror False
        scipy.ndimage.map_coordinates: 1 mirror False
        scipy.ndimage.map_coordinates: 1 mirror True
        scipy.signal.convolve2d: valid
        scipy.signal.convolve: fft: valid
        scipy.signal.convolve: valid
        scipy.signal.correlate2d: valid
        scipy.signal.correlate: valid
        scipy.signal.csd
        scipy.signal.detrend: pieces
        scipy.signal.fftconvolve: valid
        scipy.signal.istft
        scipy.signal.stft
        scipy.signal.welch
        slice
        slice: with strides
        slice_in_dim
        top_k
    """,
    "a size is a number of operations, or of StableHLO's attribute for a Fourier transform": """
        nn.logmeanexp
        numpy.delete
        numpy.fft.fft
        numpy.fft.fft2
        numpy.fft.fftn
        numpy.fft.fftn: axes=(0, 1, 2, 3)
        numpy.fft.hfft
        numpy.fft.ifft
        numpy.fft.ifft2
        numpy.fft.ifftn
        numpy.fft.ihfft
        numpy.fft.irfft
        numpy.fft.irfft2
        numpy.fft.irfftn: axes=(0, 1)
        numpy.fft.irfftn: axes=(0, 1, 2, 3), norm=ortho
        numpy.fft.rfft
        numpy.fft.rfft2
        numpy.fft.rfftn
        numpy.fft.rfftn: norm=ortho
        numpy.histogramdd
        numpy.poly
        numpy.polydiv
        scipy.fft.dct: type=2
        scipy.fft.dct: type=2, norm=ortho
        scipy.fft.dct: type=3
        scipy.fft.dct: type=3, norm=ortho
        scipy.fft.dct: type=4
        scipy.fft.dct: type=4, norm=ortho
        scipy.fft.dctn
        scipy.fft.idct: type=2
        scipy.fft.idct: type=2, norm=ortho
        scipy.fft.idct: type=3
        scipy.fft.idct: type=3, norm=ortho
        scipy.fft.idct: type=4
        scipy.fft.idct: type=4, norm=ortho
        scipy.fft.idctn: norm=ortho
        scipy.signal.convolve: fft: full
        scipy.signal.convolve: fft: same
        scipy.signal.detrend
        scipy.signal.fftconvolve: full
        scipy.signal.fftconvolve: same
    """,
    "XLA or LAPACK takes a number": """
        lax.linalg.hessenberg
        scipy.linalg.hessenberg
    """,
    "one number of the sample is two sizes, which the row's function does not let change together": """
        broadcast_in_dim
        numpy.bartlett
        numpy.blackman
        numpy.broadcast_to
        numpy.choose
        numpy.hamming
        numpy.hanning
        numpy.insert
        numpy.linalg.tensorinv
        numpy.linalg.tensorsolve
        numpy.mean: where
        numpy.prod: where
        numpy.put_along_axis
        numpy.sum: where
        numpy.unstack
        numpy.where
        random.uniform
        scaled_dot
        scipy.linalg.dft: (3, 'sqrtn') {}
        scipy.linalg.dft: (4,) {}
        scipy.linalg.eigh_tridiagonal
        scipy.linalg.hadamard: (4,) {}
        scipy.linalg.helmert: (3,) {'full': True}
        scipy.linalg.helmert: (4,) {}
        scipy.linalg.hilbert: (4,) {}
        scipy.linalg.invhilbert: (4,) {}
        scipy.linalg.invpascal: (4, 'lower') {}
        scipy.linalg.invpascal: (4, 'symmetric') {}
        scipy.linalg.invpascal: (4, 'upper') {}
        scipy.linalg.pascal: (4, 'lower') {}
        scipy.linalg.pascal: (4, 'symmetric') {}
        scipy.linalg.pascal: (4, 'upper') {}
        scipy.special.sph_harm_y
        scipy.stats.dirichlet.logpdf
        scipy.stats.dirichlet.pdf
        scipy.stats.multinomial.logpmf
        scipy.stats.multinomial.pmf
        unstack
    """,
    "the size 1 has a result of another rank": """
        numpy.corrcoef
        numpy.cov
    """,
}
"""Rows that are refused for one symbol or two, one a line, by the reason."""

REFUSED_EMPTY = {
    "an empty axis is another case, which a comparison decides; the constraint that it names leaves it out": """
        associative_scan
        geqp3
        lax.linalg.lu: product
        numpy.diagonal
        numpy.ediff1d
        numpy.einsum: ii,ij->j
        numpy.einsum: iij,jk->ik
        numpy.fft.fftshift
        numpy.fft.ifftshift
        numpy.logaddexp: reduce
        numpy.put
        numpy.resize
        numpy.roll
        numpy.subtract: accumulate
        numpy.trace
        numpy.unwrap
        scipy.linalg.circulant
        scipy.linalg.expm
        scipy.linalg.expm: small
        scipy.linalg.expm: upper
        scipy.linalg.expm_frechet
        scipy.linalg.hankel
        scipy.linalg.toeplitz
    """,
}
"""Rows that are refused where a size may be 0."""
REFUSED_DERIVATIVES = {
    "the derivative is a program that depends on the size": """
        cumlogsumexp_reverse
        numpy.multiply: accumulate
        reduce: of pairs
        reduce_window: product
        reduce_window: sum
    """,
    "the row's function has no derivative in one of its arguments, which an exported one needs": """
        betainc
        polygamma
    """,
    "at the other size the convolution has no windows, so its derivative has an empty kernel, which XLA refuses": """
        conv_general_dilated: strides and dilations
        conv_with_general_padding
    """,
}
"""Rows of which the exported function has no derivative."""


def _names(refused: dict[str, str]) -> set[str]:
    return {name.strip() for names in refused.values() for name in names.splitlines() if name.strip()}


NAMES, OF_EMPTY, OF_DERIVATIVES = map(_names, (REFUSED, REFUSED_EMPTY, REFUSED_DERIVATIVES))
CHANGED = {"numpy.cov", "numpy.corrcoef"}
"""Those that are exported, and differ for the size 1."""


SLOW = {"random.f", "random.beta", "random.t", "scipy.stats.gamma.logsf"}


def _marks(row: Row) -> list[Any]:
    # A row may warn of sizes that it is not made for.
    return [pytest.mark.filterwarnings("ignore"), *([pytest.mark.slow] if row.name in SLOW else [])]


def _dtype(row: Row) -> str:
    return "float32" if "float32" in row.dtypes else row.dtypes[0]


FLOATS = [row for row in all_rows() if _dtype(row) == "float32" and row.name not in NAMES]


def each(rows: list[Row]) -> Any:
    params = [pytest.param(r, id=r.name, marks=_marks(r)) for r in rows]
    return lambda test: pytest.mark.sample(40, full=8)(pytest.mark.parametrize("row", params)(test))


@pytest.mark.parametrize("count", [1, 2], ids=["one", "two"])
@each([row for row in all_rows() if row.name not in NAMES])
def test_symbolic_sizes(row: Row, count: int) -> None:
    check_symbolic(row, row.samples[0], _dtype(row), count)


@each([row for row in all_rows() if row.name in NAMES - CHANGED])
def test_refusals_are_typed(row: Row) -> None:
    with pytest.raises((*REFUSALS, ShapeError, TypeError, ValueError)):
        for count in (1, 2):
            check_symbolic(row, row.samples[0], _dtype(row), count)


@each([row for row in all_rows() if row.name not in NAMES | OF_EMPTY])
def test_empty_arrays(row: Row) -> None:
    check_empty(row, row.samples[0], _dtype(row))


@each([row for row in all_rows() if row.name in OF_EMPTY])
def test_refusals_of_empty_arrays_name_a_constraint(row: Row) -> None:
    with pytest.raises(InconclusiveDimensionOperation, match="constraints="):
        check_empty(row, row.samples[0], _dtype(row))


@each([row for row in all_rows() if row.name not in NAMES])
def test_buckets(row: Row) -> None:
    check_buckets(row, row.samples[0], _dtype(row))


@pytest.mark.full
@each([row for row in FLOATS if row.name not in OF_DERIVATIVES])
def test_derivatives_and_batches(row: Row) -> None:
    check_derivatives(row, row.samples[0], "float32")


@pytest.mark.full
@each([row for row in FLOATS if row.name in OF_DERIVATIVES])
def test_refusals_of_derivatives_are_typed(row: Row) -> None:
    with pytest.raises((*REFUSALS, ValueError)):
        check_derivatives(row, row.samples[0], "float32")


def test_refused_rows_exist() -> None:
    assert {row.name for row in all_rows()} >= NAMES | OF_EMPTY | OF_DERIVATIVES
