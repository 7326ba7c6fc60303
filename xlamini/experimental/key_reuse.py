"""Checks against the reuse of random keys; JAX's module of this name has no public names either.

A program that uses a key twice warns when it is compiled. Under flag `debug_key_reuse` it is an error, and keys outside
of programs are looked at too. `random.clone(key)` is the key, as a new one to these checks.
"""
