"""`jax._src.op_shardings`: shardings as XLA has them."""

from typing import Any

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)


def is_hlo_sharding_replicated(hc: Any) -> bool:
    """Whether every device has all data."""
    return hc.num_devices() == 1 or hc.is_replicated()


def are_hlo_shardings_equal(hc1: Any, hc2: Any) -> bool:
    """Whether two shardings put the same data on the same devices."""
    return hc1 is hc2 or (is_hlo_sharding_replicated(hc1) and is_hlo_sharding_replicated(hc2)) or hc1 == hc2
