"""What XLA made of a program: passes, kernels, memory traffic, buffers and collectives, read from the compiler's texts."""
