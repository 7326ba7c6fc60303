"""What the CPU computes in place of operations that XLA's backend for it takes one element at a time.

Each file has one family of functions. A formula is a Python function of simpler operations, all of which LLVM
vectorises; `vectorised` makes a lowering of it, which an elementwise operation names as its `on_cpu`.
"""
