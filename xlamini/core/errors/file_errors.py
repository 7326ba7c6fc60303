"""The errors about files: what was saved cannot be read here."""
from __future__ import annotations

__all__ = ["LoadError", "ReportFormatError"]


class LoadError(ValueError):
    """What was saved cannot be loaded here: it is damaged, or was made for another jaxlib, device or processor.

        blob = jit(step).lower(x).compile().serialize()  # on a machine with an H200
        xlamini.load(blob)  # fails on one without: it is machine code for that device

    A compiled program is for one version of jaxlib and one kind of device. Compile it again where it shall run, or keep
    what does not depend on them:

        blob = export.export(jit(step), platforms=("cpu", "cuda"))(x).serialize()
        step = export.deserialize(blob).call

    What is no such file, or was cut off, is refused too:

    >>> blob = xlamini.export.export(xlamini.jit(jnp.sin))(1.0).serialize()
    >>> xlamini.export.deserialize(blob).call(0.0)
    Array(0., dtype=float32, weak_type=True)
    >>> xlamini.export.deserialize(blob[:100])
    Traceback (most recent call last):
        ...
    xlamini.core.errors.file_errors.LoadError: deserialize: it has another checksum than it should; ...
    """


class ReportFormatError(ValueError):
    """What should be a report of `xlamini.inspect` is something else, is damaged, or is of a newer version.

        python -m xlamini inspect train.py:step --arg 'f32[8]' --diff step.html  # fails: that is the page

    Reports are compared by their JSON. A report of an older version can be read, one of a newer version cannot:

        python -m xlamini inspect train.py:step --arg 'f32[8]' --json old.json
        python -m xlamini inspect train.py:step --arg 'f32[8]' --diff old.json

    >>> from xlamini.inspection.schema import read_report
    >>> read_report({"losses": [1.0, 0.5]})
    Traceback (most recent call last):
        ...
    xlamini.core.errors.file_errors.ReportFormatError: the dict is not a report of xlamini.inspect: it has no ...
    """
