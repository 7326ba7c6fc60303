"""A folder for PYTHONPATH: in processes that a program starts, `import jax` finds the package in it."""
