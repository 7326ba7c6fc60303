"""Where an error is explained: the page of errors has a place for each class, and the errors raised name it.

The place is in a note (PEP 678): a traceback prints it below the message, and `str(error)` is the message alone.
"""

from __future__ import annotations

from xlamini.core import errors
from xlamini.core.errors import file_errors, kernel_errors

PAGE = "reference/errors.html"
"""The page of errors in the documentation, which `python -m docs` builds. Each class has a place of its name there."""


def address(cls: type) -> str:
    """The place of an error class in the documentation.

    >>> address(errors.ShapeError)
    'reference/errors.html#xlamini.errors.ShapeError'
    """
    return f"{PAGE}#xlamini.errors.{cls.__name__}"


def is_explained(cls: type) -> bool:
    """Whether a class is one of `xlamini.errors`, and so has a place on the page."""
    return any(vars(module).get(cls.__name__) is cls for module in (errors, file_errors, kernel_errors))


def name_the_page(error: BaseException) -> None:
    """Add the note to an error of the library that has none yet; a subclass of a user's has that of its base."""
    explained = next(filter(is_explained, type(error).__mro__), None)
    if explained is None:
        return
    note = f"See {address(explained)}, or run: python -m xlamini explain {explained.__name__}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
