"""The errors about where a program runs: a platform or a device that is not there, processes apart, a fork."""

from __future__ import annotations

__all__ = ["DeviceNotHereError", "ForkError", "PlatformError", "ProcessError"]


class PlatformError(RuntimeError):
    """A platform was asked for that is not there or does not start.

        XLAMINI_PLATFORMS=cuda python train.py  # fails where no GPU is attached

    The message says what is missing; `python -m xlamini doctor` looks at everything a platform needs and has one fix
    for each problem. Nothing falls back to the CPU in silence: name it to allow it.

        XLAMINI_PLATFORMS=cpu python train.py

    >>> xlamini.devices("abacus")
    Traceback (most recent call last):
        ...
    xlamini.core.errors.platform_errors.PlatformError: Unknown backend abacus: there is no platform 'abacus'; xlamini
    knows cpu, cuda, rocm, tpu, ...
    """


class DeviceNotHereError(PlatformError):
    """A program that was compiled for a target was called.

    >>> step = xlamini.jit(jnp.sin).lower(1.0).compile(target=xlamini.target("tpu:v5e:2x2"))  # doctest: +SKIP
    >>> step(1.0)  # doctest: +SKIP
    Traceback (most recent call last):
        ...
    xlamini.core.errors.platform_errors.DeviceNotHereError: sin was compiled for tpu:v5e:2x2 (TPU v5 lite), which is not
    here, so it cannot be called; write serialize() to a file and xlamini.load it on a machine that has the device, or
    compile() without a target to run it here

    It can be inspected; to run it, take it to a machine that has the device:

        open("step.bin", "wb").write(step.serialize())
        step = xlamini.load("step.bin")  # there
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

    A process that is missing at the start is named:

    >>> xlamini.distributed.initialize(  # doctest: +SKIP
    ...     "localhost:1234", num_processes=2, process_id=0, initialization_timeout=1
    ... )
    Traceback (most recent call last):
        ...
    xlamini.core.errors.platform_errors.ProcessError: distributed.initialize: process 1 did not come within 1 s; this is
    process 0 of 2, the coordinator is at localhost:1234. Look at the output of the missing, or wait longer with
    initialization_timeout
    """


class ForkError(RuntimeError):
    """An operation in a process that was forked after its parent had used a device.

    >>> import subprocess, sys
    >>> program = '''
    ... import os
    ... import xlamini.numpy as jnp
    ... x = jnp.ones(3)  # starts XLA's threads
    ... if os.fork() == 0:
    ...     x + 1  # fails: the threads that would compute it are the parent's
    ... '''
    >>> printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr
    >>> print(next(line for line in printed.splitlines() if "ForkError: " in line))
    xlamini.core.errors.platform_errors.ForkError: this process was forked from one that had used a device, ...

    Start processes anew, which also multiprocessing and PyTorch's DataLoader can:

        multiprocessing.get_context("spawn").Process(target=work).start()
        DataLoader(data, num_workers=4, multiprocessing_context="spawn")

    or use NumPy in the child; reading arrays that the parent has computed works.
    """
