"""Kernels with operands and the numbers that NumPy gives, for the tests of the emitters."""
