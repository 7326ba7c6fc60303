"""Aliases in the array namespace of functions that their own modules define under another name."""

from typing import Final

from xlamini.numpy.array_api import VERSION, namespace_info
from xlamini.numpy.dtypes import bool_
from xlamini.runtime import Array

bool: Final = bool_
ndarray = Array
__array_api_version__ = VERSION
__array_namespace_info__ = namespace_info
