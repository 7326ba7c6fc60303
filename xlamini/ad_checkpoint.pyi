# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini import checkpoint_policies as checkpoint_policies
from xlamini.transforms.remat.checkpoint import checkpoint as checkpoint, remat as remat
from xlamini.transforms.remat.checkpoint_name import (
    checkpoint_name as checkpoint_name, checkpoint_name_fwd as checkpoint_name_fwd, name_p as name_p,
)
from xlamini.transforms.remat.policies import Offloadable as Offloadable, Recompute as Recompute, Saveable as Saveable
from xlamini.transforms.remat.saved_residuals import (
    print_saved_residuals as print_saved_residuals, saved_residuals as saved_residuals, SavedResidual as SavedResidual,
)
