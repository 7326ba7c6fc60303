# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.custom.custom_vmap import custom_vmap as custom_vmap
from xlamini.transforms.custom.custom_vmap import sequential_vmap as sequential_vmap
