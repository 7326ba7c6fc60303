"""What a process waits for before it leaves its group."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from xlamini import numpy as jnp
from xlamini.runtime.processes.shutdown import finish


def client_of(*arrays: Any) -> Any:
    return SimpleNamespace(live_arrays=lambda: arrays)


def test_an_array_that_another_thread_deletes_is_passed_over() -> None:
    gone = jnp.arange(3.0)
    gone.delete()
    finish(client_of(gone, jnp.arange(3.0)))


def test_a_program_that_failed_is_an_error() -> None:
    def fail() -> None:
        raise RuntimeError("the program failed")

    with pytest.raises(RuntimeError, match="the program failed"):
        finish(client_of(SimpleNamespace(block_until_ready=fail, is_deleted=lambda: False)))
