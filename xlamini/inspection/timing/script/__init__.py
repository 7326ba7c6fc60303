"""The profile of a whole script: what its host did, and the kernels that ran meanwhile."""
