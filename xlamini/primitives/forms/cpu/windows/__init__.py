"""CPU formulations of convolutions and pools: the same sums by operations for which XLA has fast code.

XLA's CPU backend has a fast kernel for convolutions of one group in float32; of groups it computes one after another,
and what is grouped by batch, dilated or pooled in a loop over scalars. Each file here has one formulation, with `fits`,
the condition under which it computes the same and is faster, and the figures that say so. Some are rewrites, which
apply the same primitive to other operands. `choice.py` picks the first that fits; where none does, and on other
platforms, XLA's own operation stays.

The figures are of a busy machine: milliseconds of the processor's time on an AMD EPYC with AVX-512. Those in
`benchmarks/results` are of quiet ones.
"""
