"""checkpoint and what belongs to it: names for values, answers of policies, a look at what is kept."""

from xlamini import checkpoint_policies
from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.transforms.remat.checkpoint import checkpoint
from xlamini.transforms.remat.checkpoint import checkpoint as remat
from xlamini.transforms.remat.checkpoint_name import checkpoint_name
from xlamini.transforms.remat.policies import Offloadable, Recompute, Saveable
from xlamini.transforms.remat.saved_residuals import SavedResidual, print_saved_residuals, saved_residuals

__all__ = [
    "Offloadable",
    "Recompute",
    "SavedResidual",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]

_edge_of_face(globals())
