"""Rotations in three dimensions, under the names of `jax.scipy.spatial.transform`."""
from xlamini.scipy.spatial.transform.rotation import Rotation as Rotation
from xlamini.scipy.spatial.transform.slerp import Slerp as Slerp
