"""An error of the library names its place in the documentation, once and below its message."""

from __future__ import annotations

import traceback

import pytest

import xlamini
from xlamini import errors, numpy as jnp
from xlamini.commands.explain import main as explain
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.errors.error_page import address, is_explained

CLASSES = [getattr(errors, name) for name in errors.__all__ if not issubclass(getattr(errors, name), Warning)]


class OfUser(errors.ShapeError):
    """A class of a user's own."""


def note(cls: type) -> str:
    return f"See {address(cls)}, or run: python -m xlamini explain {cls.__name__}"


def raised(error: BaseException) -> BaseException:
    """The error, after it has left a public function."""

    @api_boundary
    def fails() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        fails()
    return caught.value


@pytest.mark.parametrize("cls", CLASSES)
def test_each_class_has_a_note(cls: type[Exception]) -> None:
    assert raised(cls("what is wrong")).__notes__ == [note(cls)]


def test_a_subclass_has_the_note_of_its_base() -> None:
    assert raised(OfUser("mine")).__notes__ == [note(errors.ShapeError)]


def test_other_errors_have_none() -> None:
    assert not hasattr(raised(ValueError("of a user")), "__notes__")


def test_an_error_through_several_functions_has_one_note() -> None:
    with pytest.raises(errors.TracerBoolConversionError) as caught:
        xlamini.jit(xlamini.grad(xlamini.jit(lambda x: x if x > 0 else -x)))(1.0)
    shown = traceback.format_exception_only(caught.value)
    assert shown[-1].rstrip() == note(errors.TracerBoolConversionError)
    assert sum("xlamini explain" in line for line in shown) == 1


def test_a_message_and_the_notes_of_a_user_stay() -> None:
    mine = errors.ShapeError("the message")
    mine.add_note("the user's")
    assert str(raised(mine)) == "the message"
    assert mine.__notes__ == ["the user's", note(errors.ShapeError)]


def test_what_jnp_raises_has_it() -> None:
    with pytest.raises(errors.ShapeError) as caught:
        jnp.ones(3) + jnp.ones(4)
    assert caught.value.__notes__ == [note(errors.ShapeError)]


def test_each_public_class_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert [name for name in errors.__all__ if not is_explained(getattr(errors, name))] == []
    assert explain(["ShapeError"]) == 0
    text = capsys.readouterr().out
    assert ">>> jnp.ones((2, 3)) @ jnp.ones((2, 3))" in text and text.endswith(f"{address(errors.ShapeError)}\n")


def test_a_name_that_is_no_class(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(["ShapeEror"]) == 2
    assert capsys.readouterr().err.strip().endswith("nearest: ShapeError")


def test_without_a_name_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*errors.__all__]
