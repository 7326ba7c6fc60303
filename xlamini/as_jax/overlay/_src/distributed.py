"""`jax._src.distributed`: the process group."""

from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.runtime.processes.group import here

__getattr__ = fall_through(__name__)


class _GlobalState:
    """This process in its group; a process alone is number 0 of 1, and has no client."""

    @property
    def client(self) -> Any:
        return here.group and here.group.client

    @property
    def process_id(self) -> int:
        return 0 if here.group is None else here.group.process_id

    @property
    def num_processes(self) -> int:
        return 1 if here.group is None else here.group.num_processes


global_state = _GlobalState()
