# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.scipy.spatial.transform.rotation import Rotation as Rotation
from xlamini.scipy.spatial.transform.slerp import Slerp as Slerp
