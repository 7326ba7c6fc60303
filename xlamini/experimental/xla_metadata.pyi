# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.primitives.placement.xla_metadata import set_xla_metadata as set_xla_metadata
from xlamini.transforms.metadata_call import must_fuse_call as must_fuse_call, xla_metadata_call as xla_metadata_call
