"""One run, every format: the same figures, and names that stay text."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ridgepole.errors import BadInput
from ridgepole.report import chrome, csvdoc, html, jsondoc, markdown, notebook, render, text
from tests.report import made


def test_the_json_buckets_and_causes_sum_to_the_window() -> None:
    document = json.loads(jsondoc.render(made.run()))
    assert document["schema"] == 1
    assert sum(document["buckets"].values()) == document["window_ns"] == 1_000_000
    assert sum(cause["ns"] for cause in document["causes"]) == 1_000_000
    assert set(document["buckets"]) == {"compute", "memory", "transfer", "communication", "overhead", "unknown"}
    assert set(document["coverage"]) == {"bucket", "op", "bytes", "flops", "in_graph", "inferred"}
    assert document["devices"][0] | {"buckets": 0} == {
        "device": "0",
        "gpu_events": 61,
        "busy_ns": 300_000,
        "gpu_window_ns": 1_000_000,
        "buckets": 0,
    }
    finding = document["findings"][0]
    assert (finding["id"], finding["fix"], finding["predicted_gain_ns"]) == ("launch-bound", "cuda-graph", 700_000)


def test_the_text_puts_the_largest_bucket_first_with_its_share() -> None:
    shown = text.render(made.run())
    assert shown.index("overhead") < shown.index("memory ") < shown.index("compute ")
    assert "70.0 %" in shown
    assert "nvidia-smi would say up to 100 %" in shown
    assert "some kernel ran 30.0 % of the time" in shown


def test_the_text_fits_a_narrow_terminal() -> None:
    shown = text.render(made.run(), width=80)
    assert max(map(len, shown.splitlines())) <= 80


def test_rich_markup_in_a_name_is_shown_not_obeyed() -> None:
    assert "[red]" in text.render(made.run(), width=160)


def test_colour_is_there_only_when_asked_for() -> None:
    assert "\x1b[" not in text.render(made.run())
    assert "\x1b[" in text.render(made.run(), color=True)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.said: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        assert not any(name in ("src", "href") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def test_a_hostile_name_is_text_in_the_page() -> None:
    page = _Tags()
    page.feed(html.render(made.run()))
    assert not {"script", "img", "link"} & set(page.tags)
    assert any(made.HOSTILE in said for said in page.said)


def test_the_page_shows_the_name_in_a_real_browser(tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    page = tmp_path / "report.html"
    render.write(made.run(), page)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    dump = subprocess.run(
        [browser, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in dump
    assert "<img" not in dump
    assert "Where the window went" in dump


def test_the_csv_has_every_cause_and_operator_and_no_formula() -> None:
    run = made.run()
    rows = list(csv.DictReader(io.StringIO(csvdoc.render(run))))
    assert [r["name"] for r in rows if r["row"] == "op"] == ["aten::mm", made.HOSTILE]
    assert sum(int(r["ns"]) for r in rows if r["row"] == "cause") == run.window_ns


def test_the_markdown_keeps_its_tables_whole() -> None:
    shown = markdown.render(made.run())
    widths = {line.replace("\\|", "").count("|") for line in shown.splitlines() if line.startswith("| `")}
    assert widths == {8}
    assert "<img" not in "\n".join(line for line in shown.splitlines() if not line.startswith(("`", "| `")))


def test_the_chrome_trace_has_spans_arrows_and_counters() -> None:
    events = json.loads(chrome.render(made.run()))["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert [(e["ts"], e["dur"]) for e in spans] == [(0.0, 3.0), (5.0, 200.0)]
    assert spans[1]["args"]["bucket"] == "memory"
    assert {e["ph"] for e in events} >= {"M", "X", "C", "s", "f"}


def test_a_notebook_gets_a_frame_without_scripts_and_text_beside_it() -> None:
    bundle = notebook.mimebundle(made.run())
    assert bundle["text/html"].startswith("<iframe sandbox ")
    assert "overhead" in bundle["text/plain"]


@pytest.mark.parametrize("ending", render.ENDINGS)
def test_every_ending_writes_a_file(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out{ending}"
    render.write(made.run(), path)
    assert path.stat().st_size > 100


def test_an_unknown_ending_or_folder_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="names no format"):
        render.write(made.run(), tmp_path / "out.pdf")
    with pytest.raises(BadInput, match="no folder"):
        render.write(made.run(), tmp_path / "nowhere" / "out.html")
