"""The version of the interface; docs/extending.md says what it promises."""

version = 1
"""It grows by one with each change after which a library that relies on `xlamini.extend` may have to be changed.

>>> from xlamini import extend
>>> extend.version
1
"""
