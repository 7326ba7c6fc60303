# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.primitives.placement.layout_constraint import with_layout_constraint as with_layout_constraint
from xlamini.runtime.arrays.layout import Format as Format, Layout as Layout
