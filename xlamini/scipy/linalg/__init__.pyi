# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.scipy.linalg.factorizations import (
    cho_factor as cho_factor, cholesky as cholesky, eigh as eigh, hessenberg as hessenberg, lu as lu,
    lu_factor as lu_factor, polar as polar, qr as qr, qr_multiply as qr_multiply, schur as schur, svd as svd,
)
from xlamini.scipy.linalg.matrix_functions import (
    expm as expm, expm_frechet as expm_frechet, funm as funm, rsf2csf as rsf2csf, sqrtm as sqrtm,
)
from xlamini.scipy.linalg.solving import (
    cho_solve as cho_solve, det as det, inv as inv, lu_solve as lu_solve, solve as solve,
    solve_triangular as solve_triangular,
)
from xlamini.scipy.linalg.special_matrices import (
    block_diag as block_diag, circulant as circulant, companion as companion, convolution_matrix as convolution_matrix,
    dft as dft, fiedler as fiedler, fiedler_companion as fiedler_companion, hadamard as hadamard, hankel as hankel,
    helmert as helmert, hilbert as hilbert, invhilbert as invhilbert, invpascal as invpascal, leslie as leslie,
    pascal as pascal, toeplitz as toeplitz,
)
from xlamini.scipy.linalg.sylvester import solve_sylvester as solve_sylvester
from xlamini.scipy.linalg.tridiagonal import eigh_tridiagonal as eigh_tridiagonal
