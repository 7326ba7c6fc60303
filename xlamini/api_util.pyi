# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.staging.trace.flat_calls import (
    argnums_partial as argnums_partial,
    donation_vector as donation_vector,
    flatten_axes as flatten_axes,
    rebase_donate_argnums as rebase_donate_argnums,
    shaped_abstractify as shaped_abstractify,
)
