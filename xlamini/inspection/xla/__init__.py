"""What XLA made of a program: passes, kernels, buffers and collectives, read from the compiler's texts."""
