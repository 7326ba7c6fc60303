"""Clusters, under the names of `jax.scipy.cluster`."""
from xlamini.scipy.cluster import vq as vq
