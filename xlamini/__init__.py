"""xlamini: see, trust and change what happens between your Python and the machine."""
import xlamini.transforms.eager
from xlamini.transforms.jit import jit
from xlamini.transforms.value_and_grad import grad, value_and_grad
from xlamini.transforms.vmap import vmap
