"""Runs kernel modules, as the emitters make them for a GPU (Triton) and a TPU (Mosaic), in NumPy, without a device."""
