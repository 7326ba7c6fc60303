# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.core.program.ref_types import AbstractRef as AbstractRef
from xlamini.numpy.refs import (
    Ref as Ref,
    addupdate as addupdate,
    empty_ref as empty_ref,
    free_ref as free_ref,
    freeze as freeze,
    get as get,
    new_ref as new_ref,
    set as set,
    swap as swap,
)
