"""The definition of a program: types, equations, primitives, and jaxprs as text."""
