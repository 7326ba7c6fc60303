"""Kernels of the library's own, for a TPU and for a GPU: attention, norms, losses, products in groups."""

import xlamini.numpy.refs  # the refs that kernels take
