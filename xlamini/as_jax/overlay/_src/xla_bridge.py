"""`jax._src.xla_bridge`: the PJRT clients that have been started."""

from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.extend.backend import backends as backends, get_backend as get_backend
from xlamini.runtime.devices.clients import started_clients
from xlamini.runtime.devices.platforms import local_devices as local_devices, process_count as process_count

_fall_through = fall_through(__name__)


def __getattr__(name: str) -> Any:
    return started_clients() if name == "_backends" else _fall_through(name)
