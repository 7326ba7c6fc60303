# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.numpy.linalg.determinants import det as det, slogdet as slogdet
from xlamini.numpy.linalg.eigen import eig as eig, eigh as eigh, eigvals as eigvals, eigvalsh as eigvalsh
from xlamini.numpy.linalg.factorizations import (
    cholesky as cholesky, matrix_rank as matrix_rank, qr as qr, svd as svd, svdvals as svdvals,
)
from xlamini.numpy.linalg.norms import (
    cond as cond, matrix_norm as matrix_norm, norm as norm, vector_norm as vector_norm,
)
from xlamini.numpy.linalg.products import (
    cross as cross, diagonal as diagonal, matmul as matmul, matrix_power as matrix_power,
    matrix_transpose as matrix_transpose, multi_dot as multi_dot, outer as outer, tensordot as tensordot,
    trace as trace, vecdot as vecdot,
)
from xlamini.numpy.linalg.solving import (
    inv as inv, lstsq as lstsq, pinv as pinv, solve as solve, tensorinv as tensorinv, tensorsolve as tensorsolve,
)
