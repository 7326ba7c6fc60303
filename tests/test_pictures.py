"""Pages draw pictures from the sessions they show: for light and for dark, and an error where a session is not true."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytest.importorskip("matplotlib")

from docs.builder.pictures import FENCE, draw

PAGES = sorted(path for path in ROOT.glob("docs/**/*.md") if FENCE.search(path.read_text()))
PAGE = """
>>> height = 1 + 1
>>> height
{result}

```{{picture}} A line
>>> import matplotlib.pyplot as plt
>>> _ = plt.plot([0, height], color=plt.rcParams["text.color"])
```
"""


def written(folder: Path, result: int) -> Path:
    page = folder / "page.md"
    page.write_text(PAGE.format(result=result))
    return page


def test_a_picture_is_drawn_for_light_and_for_dark(tmp_path: Path) -> None:
    draw(written(tmp_path, 2), 0, tmp_path / "pictures")
    light, dark = ((tmp_path / "pictures" / f"{mode}.svg").read_text() for mode in ("light", "dark"))
    assert "#333333" in light and "#333333" not in dark
    assert "#cccccc" in dark and "#cccccc" not in light


def test_a_page_that_shows_a_wrong_result_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match=r"page\.md: a session does not give what the page shows"):
        draw(written(tmp_path, 3), 0, tmp_path)
    assert "Expected:\n    3\nGot:\n    2" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_picture_has_a_title_of_its_own(page: Path) -> None:
    titles = [found[1] for found in FENCE.finditer(page.read_text())]
    assert all(titles) and len(set(titles)) == len(titles)
    assert page.read_text().count("```{picture}") == len(titles)
