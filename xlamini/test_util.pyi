# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.derivatives.check_grads import (
    check_grads as check_grads, check_jvp as check_jvp, check_vjp as check_vjp,
)
