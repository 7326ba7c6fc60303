"""The errors about where a program runs: a platform that does not start, processes apart, a fork."""

from __future__ import annotations

__all__ = ["ForkError", "PlatformError", "ProcessError"]


class PlatformError(RuntimeError):
    """A platform was asked for that is not there or does not start.

        XLAMINI_PLATFORMS=cuda python train.py  # fails where no GPU is attached

    The message says what is missing; `python -m xlamini doctor` looks at everything a platform needs and has one fix
    for each problem. Nothing falls back to the CPU in silence: name it to allow it.

        XLAMINI_PLATFORMS=cpu python train.py
    """


class ProcessError(RuntimeError):
    """Processes that compute together did not come together: one is missing, or they run different programs.

        distributed.initialize()
        if process_index() == 0:
            total = jnp.sum(x)  # fails: x lies on devices of all processes, and the others do not compute its sum

    All processes run the same program on what they share; what one does alone comes after:

        total = jnp.sum(x)
        if process_index() == 0:
            print(total)
    """


class ForkError(RuntimeError):
    """An operation in a process that was forked after its parent had used a device.

        jnp.ones(3)  # starts XLA's threads
        if os.fork() == 0:
            jnp.ones(3) + 1  # fails: the threads that would compute it are the parent's

    Start processes anew, which also multiprocessing and PyTorch's DataLoader can:

        multiprocessing.get_context("spawn").Process(target=work).start()
        DataLoader(data, num_workers=4, multiprocessing_context="spawn")

    or use NumPy in the child; reading arrays that the parent has computed works.
    """
