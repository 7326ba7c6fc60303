# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.primitives.linalg.cholesky import cholesky as cholesky, cholesky_p as cholesky_p
from xlamini.primitives.linalg.cholesky_update import (
    cholesky_update as cholesky_update, cholesky_update_p as cholesky_update_p,
)
from xlamini.primitives.linalg.eig import eig as eig, eig_p as eig_p, EigImplementation as EigImplementation
from xlamini.primitives.linalg.eigh import eigh as eigh, eigh_p as eigh_p, EighImplementation as EighImplementation
from xlamini.primitives.linalg.hessenberg import hessenberg as hessenberg, hessenberg_p as hessenberg_p
from xlamini.primitives.linalg.householder import (
    householder_product as householder_product, householder_product_p as householder_product_p, ormqr as ormqr,
    ormqr_p as ormqr_p,
)
from xlamini.primitives.linalg.lu import lu as lu, lu_p as lu_p
from xlamini.primitives.linalg.lu_pivots import (
    lu_pivots_to_permutation as lu_pivots_to_permutation, lu_pivots_to_permutation_p as lu_pivots_to_permutation_p,
)
from xlamini.primitives.linalg.qdwh import qdwh as qdwh
from xlamini.primitives.linalg.qr import qr as qr, qr_p as qr_p
from xlamini.primitives.linalg.schur import schur as schur, schur_p as schur_p
from xlamini.primitives.linalg.svd import svd as svd, svd_p as svd_p, SvdAlgorithm as SvdAlgorithm
from xlamini.primitives.linalg.symmetric_product import (
    symmetric_product as symmetric_product, symmetric_product_p as symmetric_product_p,
)
from xlamini.primitives.linalg.triangular_solve import (
    triangular_solve as triangular_solve, triangular_solve_p as triangular_solve_p,
)
from xlamini.primitives.linalg.tridiagonal import tridiagonal as tridiagonal, tridiagonal_p as tridiagonal_p
from xlamini.primitives.linalg.tridiagonal_solve import (
    tridiagonal_solve as tridiagonal_solve, tridiagonal_solve_p as tridiagonal_solve_p,
)
