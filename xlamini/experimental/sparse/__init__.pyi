# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.experimental.sparse.array import JAXSparse as JAXSparse
from xlamini.experimental.sparse.bcoo import BCOO as BCOO, bcoo_fromdense as bcoo_fromdense
from xlamini.experimental.sparse.bcsr import (
    BCSR as BCSR, bcsr_broadcast_in_dim as bcsr_broadcast_in_dim, bcsr_concatenate as bcsr_concatenate,
    bcsr_dot_general as bcsr_dot_general, bcsr_extract as bcsr_extract, bcsr_fromdense as bcsr_fromdense,
    bcsr_sum_duplicates as bcsr_sum_duplicates, bcsr_todense as bcsr_todense,
)
from xlamini.experimental.sparse.conversion import bcoo_extract as bcoo_extract, bcoo_todense as bcoo_todense
from xlamini.experimental.sparse.convolution import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from xlamini.experimental.sparse.creation import empty as empty, eye as eye, random_bcoo as random_bcoo
from xlamini.experimental.sparse.derivatives import (
    grad as grad, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev, value_and_grad as value_and_grad,
)
from xlamini.experimental.sparse.duplicates import (
    bcoo_sort_indices as bcoo_sort_indices, bcoo_sum_duplicates as bcoo_sum_duplicates,
)
from xlamini.experimental.sparse.efficiency import (
    CuSparseEfficiencyWarning as CuSparseEfficiencyWarning, SparseEfficiencyError as SparseEfficiencyError,
    SparseEfficiencyWarning as SparseEfficiencyWarning,
)
from xlamini.experimental.sparse.elementwise import (
    bcoo_multiply_dense as bcoo_multiply_dense, bcoo_multiply_sparse as bcoo_multiply_sparse,
)
from xlamini.experimental.sparse.layouts import bcoo_update_layout as bcoo_update_layout
from xlamini.experimental.sparse.matrices import (
    COO as COO, coo_fromdense as coo_fromdense, coo_matmat as coo_matmat, coo_matvec as coo_matvec,
    coo_todense as coo_todense, CSC as CSC, CSR as CSR, csr_fromdense as csr_fromdense, csr_matmat as csr_matmat,
    csr_matvec as csr_matvec, csr_todense as csr_todense,
)
from xlamini.experimental.sparse.products import (
    bcoo_dot_general as bcoo_dot_general, bcoo_dot_general_sampled as bcoo_dot_general_sampled,
)
from xlamini.experimental.sparse.shapes import (
    bcoo_broadcast_in_dim as bcoo_broadcast_in_dim, bcoo_concatenate as bcoo_concatenate,
    bcoo_reduce_sum as bcoo_reduce_sum, bcoo_reshape as bcoo_reshape, bcoo_rev as bcoo_rev,
    bcoo_squeeze as bcoo_squeeze, bcoo_transpose as bcoo_transpose,
)
from xlamini.experimental.sparse.slices import (
    bcoo_dynamic_slice as bcoo_dynamic_slice, bcoo_gather as bcoo_gather, bcoo_slice as bcoo_slice,
)
from xlamini.experimental.sparse.transform import sparsify as sparsify, todense as todense, todense_p as todense_p
