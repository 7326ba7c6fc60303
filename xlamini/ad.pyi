# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.derivatives.grad_refs import (
    DidntWant as DidntWant,
    DontWant as DontWant,
    GradRef as GradRef,
    GradValue as GradValue,
)
