# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.metadata_call import (
    scheduling_group as scheduling_group, xla_metadata_call as xla_metadata_call,
)
