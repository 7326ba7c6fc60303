# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.numpy.resampling import (
    ResizeMethod as ResizeMethod,
    resize as resize,
    scale_and_translate as scale_and_translate,
)
