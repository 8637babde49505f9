"""An experiment's report: the meaning first, figures whole, pictures that open, files by their endings."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from ridgepole.errors import BadInput, Missing
from ridgepole.lab.experiment import Axis, Column, Picture, Result, Series
from ridgepole.report import lab_text, lab_write, picture

ROOFS = Picture(
    "Roofline",
    Axis("arithmetic intensity", "FLOP/B", 2),
    Axis("rate", "FLOP/s", 10),
    (
        Series("measured roof", (0.1, 20.0, 1000.0), (4.2e11, 5.1e13, 5.1e13)),
        Series("operators", (0.083, 0.5), (3.5e11, 2e12), "points"),
    ),
    (("ridge", 20.0),),
)
BARS = Picture(
    "Bandwidth", Axis("", "text"), Axis("bandwidth", "B/s"),
    (Series("measured", ("add", "a <b> & c"), (4.3e12, 2.7e12), "bars"),),
)  # fmt: skip


def made(**changes: object) -> Result:
    """The bandwidth of a made-up device: 12 B an element, two kernels."""
    result = Result(
        experiment="bandwidth",
        question="How fast does memory move?",
        machine={"name": "Made Device", "backend": "cuda"},
        columns=(
            Column("kernel", "kernel", "text"),
            Column("seconds", "time", "s"),
            Column("bandwidth", "bandwidth", "B/s", bar=True),
            Column("share", "of datasheet", "share"),
            Column("note", "note", "text"),
        ),
        rows=(
            {"kernel": "add", "seconds": 1e-3, "bandwidth": 4e12, "share": 0.833, "note": ""},
            {"kernel": "copy", "seconds": 2e-3, "bandwidth": 2e12, "share": 0.417, "note": ""},
            {"kernel": "big", "seconds": None, "bandwidth": None, "share": None, "note": "not run: no room"},
        ),
        meaning="The best moves 4.00 TB/s.",
        conditions={"date": "2026-12-01T00:00:00+00:00", "driver": "1.2", "clocks": "1,980 MHz", "versions": {}},
        picture=BARS,
    )
    return replace(result, **changes)  # type: ignore[arg-type]


def test_the_meaning_comes_before_the_table() -> None:
    text = lab_text.render(made())
    assert text.index("The best moves 4.00 TB/s.") < text.index("4.00 TB/s ")


def test_half_the_rate_is_half_the_bar() -> None:
    assert lab_text.bar(4e12, 4e12) == "█" * lab_text.BAR
    assert lab_text.bar(2e12, 4e12) == "█" * (lab_text.BAR // 2)
    assert lab_text.bar(None, 4e12) == "" == lab_text.bar(1.0, 0.0)


def test_what_was_not_run_is_a_dash_with_its_reason() -> None:
    line = next(line for line in lab_text.render(made()).splitlines() if line.startswith("big"))
    assert "-" in line and "not run: no room" in line


@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_lines_fit_and_figures_stay_whole(width: int) -> None:
    text = lab_text.render(made(), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "4.00 TB/s" in text and "…" not in text
    assert ("83.3 %" in text) != ("no room for: of datasheet" in text)


def test_an_extra_column_gives_way_before_any_other() -> None:
    columns = tuple(replace(c, extra=c.key == "seconds") for c in made().columns)
    text = lab_text.render(made(columns=columns, rows=made().rows[:2]), width=46)
    assert "no room for: time;" in text and "83.3 %" in text


def test_an_interrupted_run_says_so_under_its_rows() -> None:
    text = lab_text.render(made(stopped="interrupted"))
    assert "stopped: interrupted; what was measured until then is above" in text


def test_the_document_has_the_keys_that_scripts_rely_on() -> None:
    document = json.loads(json.dumps(lab_text.document(made()), allow_nan=False))
    assert {"schema", "experiment", "machine", "rows", "meaning", "conditions"} <= set(document)
    assert document["schema"] == 1 and document["rows"][0]["bandwidth"] == 4e12
    assert {"date", "driver", "clocks", "versions"} <= set(document["conditions"])


@pytest.mark.parametrize("drawn", [ROOFS, BARS])
def test_a_picture_is_an_svg_with_its_words_as_text(drawn: Picture, tmp_path: Path) -> None:
    picture.draw(drawn, tmp_path / "x.svg")
    text = (tmp_path / "x.svg").read_text()
    words = " ".join(ElementTree.fromstring(text).itertext())
    assert drawn.title in words
    assert all(str(name) in words for series in drawn.series if series.style == "bars" for name in series.x)


def test_a_legend_lies_under_the_plot_where_it_hides_nothing(tmp_path: Path) -> None:
    bars = tuple(Series(name, ("a", "b"), (1.0, 1.0), "bars") for name in ("reported", "of peak"))
    picture.draw(Picture("Bars", Axis("", "text"), Axis("share", "share"), bars), tmp_path / "x.svg")
    found = ElementTree.parse(tmp_path / "x.svg").getroot().iter("{http://www.w3.org/2000/svg}text")
    height = {text.text: float(text.get("y") or 0) for text in found}
    assert height["reported"] > height["0 %"]
    assert height["of peak"] > height["0 %"]


def test_the_same_picture_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        picture.draw(ROOFS, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("ending", lab_write.ENDINGS)
def test_every_ending_writes_a_file(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out{ending}"
    lab_write.write(made(), path)
    assert path.stat().st_size > 100


def test_a_markdown_table_has_a_row_for_each_measurement() -> None:
    lines = lab_text.render_markdown(made(rows=({"kernel": "a|b", "bandwidth": 1e12},))).splitlines()
    assert sum(line.startswith("| a\\|b") for line in lines) == 1


@pytest.mark.parametrize(
    ("name", "said"), [("out.gif", "its ending names no format"), ("nowhere/out.svg", "there is no folder")]
)
def test_what_cannot_be_written_is_one_line_before_anything_is_measured(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=said):
        lab_write.check(tmp_path / name)


def test_no_picture_of_nothing_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no picture"):
        lab_write.write(made(picture=None), tmp_path / "x.svg")


def test_a_folder_is_refused_before_the_measuring(tmp_path: Path) -> None:
    (tmp_path / "x.json").mkdir()
    with pytest.raises(BadInput, match="it is a folder"):
        lab_write.check(tmp_path / "x.json")


def test_a_picture_without_matplotlib_is_refused_before_the_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Missing, match="a picture needs matplotlib"):
        lab_write.check(tmp_path / "x.svg")
    lab_write.check(tmp_path / "x.json")
