"""Decompositions and solvers of stacks of matrices: kernels of LAPACK and its like, with derivatives."""
