"""`jax.experimental.colocated_python`: xlamini's module, as a package."""

from typing import Final

from xlamini.as_jax.missing_names import fall_through
from xlamini.experimental.colocated_python import (
    colocated_cpu_devices as colocated_cpu_devices,
    colocated_python as colocated_python,
    colocated_python_class as colocated_python_class,
)

__getattr__: Final = fall_through(__name__)
