"""The language: types, programs, primitives and the tracer. Nothing here compiles or runs."""
