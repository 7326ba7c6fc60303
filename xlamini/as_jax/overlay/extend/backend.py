"""`jax.extend.backend`: the PJRT clients."""

from typing import Any, Final

import xlamini
from xlamini.as_jax.missing_names import fall_through

__getattr__: Final = fall_through(__name__)


def get_backend(platform: str | None = None) -> Any:
    """The client of a platform, or of the default one."""
    return xlamini.devices(platform)[0].client


def backends() -> dict[str, Any]:
    """The client of the default platform, and that of the CPU, by name."""
    clients = [get_backend(), get_backend("cpu")]
    return {client.platform: client for client in clients}


def get_default_device() -> xlamini.Device:
    """The device on which arrays are made."""
    return next(iter(xlamini.numpy.zeros(()).devices()))
