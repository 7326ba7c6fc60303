"""A small pretty printer after Wadler: say where a text may break, and it breaks where it does not fit.

A document is a string, or one of the five classes below. A group is laid out on one line if all of it fits into what is
left of the line, else its own breaks become new lines. How wide a document is on one line is known when it is built, so
that deciding costs nothing and printing is linear.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final


class Break:
    """A place for a new line; on one line it is the text `flat`."""

    __slots__ = ("flat", "width")
    flat: str
    width: int

    def __init__(self, flat: str):
        self.flat, self.width = flat, len(flat)


class Concat:
    """Documents one after the other."""

    __slots__ = ("parts", "width")

    def __init__(self, parts: Sequence[Doc]):
        self.parts: Sequence[Doc] = parts
        self.width: int = sum([len(part) if isinstance(part, str) else part.width for part in parts])


class Nest:
    """A document whose new lines are indented by `by` more."""

    __slots__ = ("body", "by", "width")
    body: Doc
    by: int

    def __init__(self, by: int, body: Doc):
        self.by, self.body = by, body
        self.width: int = _width(body)


class Group:
    """A document that is on one line if it fits."""

    __slots__ = ("body", "width")

    def __init__(self, body: Doc):
        self.body: Doc = body
        self.width: int = _width(body)


class Comment:
    """A remark at the end of the line it stands in; it takes no room."""

    __slots__ = ("text",)
    width = 0

    def __init__(self, text: str):
        self.text: str = text


Doc = str | Break | Concat | Nest | Group | Comment


def _width(doc: Doc) -> int:
    return len(doc) if isinstance(doc, str) else doc.width


line: Final = Break(" ")
softline: Final = Break("")
_where_full = Group(line)


def concat(*parts: Doc) -> Doc:
    return Concat(parts)


def join(separator: Doc, docs: Iterable[Doc]) -> Doc:
    """The documents with a separator between them."""
    parts: list[Doc] = []
    for doc in docs:
        parts += (separator, doc)
    return Concat(parts[1:])


def fill(docs: Sequence[Doc], separator: str = "") -> Doc:
    """Documents in lines that are as full as they get: a new line begins only after one that is full."""
    between = Concat([separator, _where_full]) if separator else _where_full
    return docs[0] if len(docs) == 1 else Nest(2, join(between, docs))


def bracketed(opening: str, docs: Sequence[Doc], closing: str) -> Doc:
    """`[a b c]`, or each on a line of its own, indented."""
    return Group(Concat([Nest(2, Concat([opening, softline, join(line, docs)])), softline, closing]))


def render(doc: Doc, width: int = 80) -> str:
    """A document as text, in lines of at most `width` columns where its breaks allow it."""
    return layout(doc, width).text()


def layout(doc: Doc, width: int = 80) -> Page:
    """Lay a document out in lines of at most `width` columns where its breaks allow it."""
    page = Page()
    todo: list[tuple[int, Doc]] = [(0, doc)]
    while todo:
        indent, doc = todo.pop()
        if isinstance(doc, str):  # a `match` takes twice as long
            page.write(doc)
        elif isinstance(doc, Concat):
            todo += [(indent, part) for part in reversed(doc.parts)]
        elif isinstance(doc, Group) and page.column + doc.width <= width:
            _write_on_one_line(doc.body, page.pieces[-1], page.comments[-1])
            page.column += doc.width
        elif isinstance(doc, Group):
            todo.append((indent, doc.body))
        elif isinstance(doc, Nest):
            todo.append((indent + doc.by, doc.body))
        elif isinstance(doc, Break):
            page.new_line(indent)
        elif doc.text:
            page.comments[-1].append(doc.text)
    return page


def _write_on_one_line(doc: Doc, pieces: list[str], comments: list[str]) -> None:
    if isinstance(doc, str):
        pieces.append(doc)
    elif isinstance(doc, Concat):
        for part in doc.parts:
            _write_on_one_line(part, pieces, comments)
    elif isinstance(doc, Break):
        pieces.append(doc.flat)
    elif not isinstance(doc, Comment):
        _write_on_one_line(doc.body, pieces, comments)
    elif doc.text:
        comments.append(doc.text)


class Page:
    """Lines being written, and the comments on each."""

    def __init__(self) -> None:
        self.pieces: list[list[str]] = [[]]
        self.comments: list[list[str]] = [[]]
        self.column: int = 0

    def write(self, text: str) -> None:
        self.pieces[-1].append(text)
        self.column += len(text)

    def new_line(self, indent: int) -> None:
        self.pieces.append([" " * indent])
        self.comments.append([])
        self.column = indent

    @property
    def lines(self) -> list[str]:
        """The lines without their comments."""
        return ["".join(pieces) for pieces in self.pieces]

    def text(self) -> str:
        lines = self.lines
        if not any(self.comments):
            return "\n".join(lines)
        column = max(map(len, lines))
        return "\n".join(
            written
            for text, comments in zip(lines, self.comments, strict=True)
            for written in _commented(text, comments, column)
        )


def _commented(text: str, comments: Sequence[str], column: int) -> list[str]:
    """A line with its comments in one column, further ones below."""
    if not comments:
        return [text]
    first, *others = comments
    return [f"{text:<{column}} {first}", *(f"{'':<{column}} {other}" for other in others)]
