# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.numpy.refs import (
    Ref as Ref,
    addupdate as addupdate,
    freeze as freeze,
    get as get,
    new_ref as new_ref,
    set as set,
    swap as swap,
)
