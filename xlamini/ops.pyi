# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.numpy.segments import (
    segment_max as segment_max,
    segment_min as segment_min,
    segment_prod as segment_prod,
    segment_sum as segment_sum,
)
