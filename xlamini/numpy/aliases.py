"""Names of the array namespace for what has another name in its own module."""

from xlamini.numpy.array_api import VERSION, namespace_info
from xlamini.numpy.dtypes import bool_
from xlamini.runtime.array import Array

bool = bool_
ndarray = Array
__array_api_version__ = VERSION
__array_namespace_info__ = namespace_info
