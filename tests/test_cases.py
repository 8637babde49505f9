"""The fourteen symptoms that users of other tools have reported in public, each right here, from file to report.

The rooms hold most of them in detail; these go the whole way.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ridgepole as rp
from ridgepole.machine import catalog
from ridgepole.report import chrome, csvdoc, html, markdown
from ridgepole.report import text as terminal
from ridgepole.session import Run
from tests.timeline.written import HOPPER, kernel, launch, op, put, text


def explained(folder: Path, *events: dict[str, object], machine: str | None = None, **around: object) -> Run:
    path = put(folder, text(*events, **{"deviceProperties": [HOPPER], **around}))
    run = rp.read(path, machine=machine).run
    assert sum(run.buckets.values()) == run.window_ns
    return run


def ridgepole(home: Path, *args: str, **how: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ridgepole", *args],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "RIDGEPOLE_HOME": str(home)},
        **how,  # type: ignore[call-overload]
    )


MM = {"Input Dims": [[512, 512], [512, 512]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}


def product(correlation: int, start: float, length: float, **where: object) -> tuple[dict[str, object], ...]:
    """An op, its launch, and its kernel of `length` µs, 10 µs after the op's start."""
    return (
        op("aten::mm", start, 8, **MM),
        launch(correlation, start + 3),
        kernel(correlation, start + 10, length, name="nvjet_sm90_tst_128x128_64x4", **where),
    )


def test_case_1_a_duration_that_runs_past_the_next_kernel_is_clipped_and_said(tmp_path: Path) -> None:
    # The first claims 99 % of all time; the next on its stream starts 20 µs after it.
    run = explained(tmp_path, *product(1, 0, 5000), *product(2, 20, 10), *product(3, 40, 10))
    assert run.window_ns == 60_000
    # 5,000 are cut to 20 by the next one: 4,980 µs less; 20 + 10 + 10 remain.
    assert run.busiest.busy_ns == 5_000_000
    assert any("clipped 1 event" in note and "4.98 ms" in note for note in run.notes)
    ran = sum(entry.ns for entry in run.busiest.entries if entry.bucket != "overhead")
    assert ran + sum(e.ns for e in run.busiest.entries if e.cause == "kernel-floor") <= 40_000


def test_case_2_a_graph_launch_without_kernel_records_is_unknown_not_idle(tmp_path: Path) -> None:
    run = explained(
        tmp_path,
        *product(1, 0, 10),
        launch(2, 30, 10, name="cudaGraphLaunch"),
        launch(3, 40, 960, name="cudaDeviceSynchronize"),
        *product(4, 1000, 10),
    )
    hidden = {entry.cause: entry.ns for entry in run.busiest.entries}["unrecorded-graph"]
    assert hidden == pytest.approx(970_000, rel=0.02)
    assert any("graph" in note and "%" in note for note in run.notes)
    assert "unrecorded-graph" in terminal.render(run, width=120)


def test_case_3_a_graph_of_hundreds_of_kernels_without_ops_is_attributed(tmp_path: Path) -> None:
    name = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    )
    kernels = [kernel(7, 20 + 10 * i, 9, name=name, grid=[4096, 1, 1], block=[128, 1, 1]) for i in range(300)]
    run = explained(tmp_path, launch(7, 0, 15, name="cudaGraphLaunch"), *kernels)
    assert run.busiest.coverage.in_graph == 1.0
    assert run.busiest.coverage.bucket == 1.0
    assert run.busiest.coverage.inferred == 1.0
    assert run.buckets["memory"] == 300 * 9_000


def test_case_4_zero_durations_time_zero_disorder_and_duplicate_ids_do_no_harm(tmp_path: Path) -> None:
    first, second = product(1, 0, 10), product(1, 100, 0)
    events = [*first, *second, *product(2, 50, 10)]
    run, turned = explained(tmp_path, *events), explained(tmp_path, *reversed(events))
    assert run.busiest.events == 3
    assert run.buckets == turned.buckets


def test_case_5_without_rank_shapes_or_anything_but_python_frames_it_still_explains(tmp_path: Path) -> None:
    frames = [
        {"ph": "X", "cat": "python_function", "name": f"f{i}", "pid": 1, "tid": 1, "ts": i, "dur": 1, "args": {}}
        for i in range(900)
    ]
    run = explained(
        tmp_path,
        *frames,
        op("aten::mm", 0, 8),
        launch(1, 3),
        kernel(1, 10, 10, name="sm90_xmma_gemm_f32f32"),
    )
    assert run.busiest.coverage.op == 1.0
    assert run.busiest.events == 1


@pytest.mark.parametrize("ending", ["trace.json", "trace.json.gz"])
def test_case_6_a_file_cut_in_the_middle_gives_what_is_whole_and_says_what_is_lost(tmp_path: Path, ending: str) -> None:
    events = [event for i in range(2000) for event in product(i + 1, 40 * i, 10)]
    whole = text(*events, deviceProperties=[HOPPER])
    path = put(tmp_path, whole, ending)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    run = rp.read(path).run
    assert 900 < run.busiest.events < 1500
    assert run.notes
    assert sum(run.buckets.values()) == run.window_ns


def test_case_6_names_that_are_not_quite_json_are_read(tmp_path: Path) -> None:
    broken = text(*product(1, 0, 10), deviceProperties=[HOPPER]).replace(
        b"nvjet_sm90", b'C:\\x\\"a"\x01\xff nvjet_sm90'
    )
    run = rp.read(put(tmp_path, broken)).run
    assert run.busiest.events == 1
    assert run.notes


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def test_case_7_what_is_no_trace_is_refused_in_one_line(tmp_path: Path, own_home: Path) -> None:
    bombs = {
        "zeros.json.gz": (b"", b"\0"),
        "blanks.json.gz": (b'{"traceEvents": [', b" "),
        "string.json.gz": (b'{"traceEvents": [{"name": "', b"a"),
    }
    for name, (head, rest) in bombs.items():
        with gzip.open(tmp_path / name, "wb", compresslevel=9) as file:
            file.write(head)
            for _ in range(300):
                file.write(rest * (1 << 20))
    for name, content in {
        "empty.json": b"",
        "other.json": b'{"nodes": [], "schema": "1.0.1"}',
        "number.json": b"7",
        "words.json": b"not json at all",
        "pickle.json": b"\x80\x04\x95\x00",
    }.items():
        (tmp_path / name).write_bytes(content)
    for path in [*sorted(tmp_path.iterdir()), tmp_path]:
        done = ridgepole(own_home, "why", str(path), preexec_fn=_limited)
        assert done.returncode == 2, (path, done.stderr)
        assert done.stdout == ""
        assert done.stderr.startswith("ridgepole: ") and done.stderr.count("\n") == 1, done.stderr


def test_case_8_streams_at_once_count_once_and_collectives_have_many_names(tmp_path: Path) -> None:
    names = ["ncclDevKernel_AllReduce", "rcclGenericKernel", "hcclAllReduce", "cross_device_reduce_1stage"]
    both = [*product(1, 0, 100, stream=7), *product(2, 0, 100, stream=8)]
    collectives = [kernel(10 + i, 200 + 50 * i, 40, name=name, stream=9) for i, name in enumerate(names)]
    run = explained(tmp_path, *both, *collectives)
    assert run.busiest.busy_ns == 100_000 + 4 * 40_000
    assert run.buckets["communication"] == 4 * 40_000


def test_case_9_an_unknown_gpu_is_said_and_lends_nobody_elses_figures(tmp_path: Path) -> None:
    unknown = {"id": 0, "name": "NVIDIA Z900", "computeMajor": 9, "computeMinor": 0, "numSms": 132}
    run = explained(tmp_path, *product(1, 0, 10), deviceProperties=[unknown])
    assert run.machine.name == ""
    assert any("NVIDIA Z900" in note and "--on" in note for note in run.notes)
    assert explained(tmp_path, *product(1, 0, 10)).machine.name == "H100 SXM"
    for near_miss in ("H20", "RTX 4090 Laptop GPU", "A10X", "H2000"):
        with pytest.raises(rp.BadInput, match="no machine"):
            catalog.find(near_miss)


ROW = """[family]
vendor = "NVIDIA"
compute = "9.0"
limits = {{ source = "datasheet: made", warp = 32 }}
[family.overheads]
dispatch = 5e-6
launch = 3e-6
floor = 1e-6
graph_gap = 5e-7
round_trip = 1e-5
queue_depth = 1024
[[machine]]
name = "Mine"
source = "datasheet: made, today"
sms = 132
clock = 1.83e9
bandwidth = {bandwidth}
peaks = {{ "vector float32" = 6.7e13, "tensor bfloat16" = {bf16} }}
"""


def test_case_10_sparse_peaks_and_bandwidths_off_by_1000_do_not_load(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(ROW.format(bandwidth="3.35e12", bf16="9.89e14"))
    assert round(catalog.find(str(path)).ridge("bfloat16") or 0) == 295
    for bandwidth, bf16, said in [
        ("3.35e15", "9.89e14", "bandwidth"),
        ("3.35e9", "9.89e14", "bandwidth"),
        ("3.35e12", "1.979e15", "sparsity"),
        ("3.35e12", "9.89e11", "ridge"),
    ]:
        path.write_text(ROW.format(bandwidth=bandwidth, bf16=bf16))
        with pytest.raises(rp.BadInput, match=said):
            catalog.find(str(path))


def test_case_11_a_multiply_add_is_two_causal_is_half_and_grouped_keys_are_read_once() -> None:
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    x, w = torch.empty(1, 100, device="meta"), torch.empty(10, 100, device="meta")
    assert rp.price(functional.linear, x, w).run.prices[0].flops == 2_000
    q, kv = (torch.empty(1, heads, 256, 64, dtype=torch.bfloat16, device="meta") for heads in (32, 8))

    def attention(causal: bool, k: object) -> rp.PriceRun:
        grouped = {"enable_gqa": True} if k is kv else {}
        run: rp.PriceRun = rp.price(functional.scaled_dot_product_attention, q, k, k, is_causal=causal, **grouped).run
        return run

    full, half, grouped = attention(False, q).prices[0], attention(True, q).prices[0], attention(False, kv).prices[0]
    # 4 x heads x queries x keys x size.
    assert full.flops == pytest.approx(4 * 32 * 256 * 256 * 64, rel=0.05)
    assert half.flops == pytest.approx(full.flops / 2, rel=0.05)
    # Keys and values of 24 heads fewer: 2 x 24 x 256 x 64 x 2 bytes.
    assert full.bytes - grouped.bytes == 2 * 24 * 256 * 64 * 2


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["h100", "h200", "a100", "mi300x", "b200", "t4", "l4"]),
    st.sampled_from(["float32", "float16"]),
    *(st.integers(1, 5000) for _ in range(3)),
)
def test_case_12_no_price_is_below_its_physical_bound(name: str, dtype: str, m: int, n: int, k: int) -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.empty(shape, dtype=getattr(torch, dtype), device="meta") for shape in ((m, k), (k, n)))
    price = rp.price(torch.mm, a, b, on=name, mode="graph").run.prices[0]
    machine = catalog.find(name)
    unit = "tensor" if dtype == "float16" else "vector"
    peak = machine.rate(unit, dtype)  # type: ignore[arg-type]
    assert peak is not None
    l2 = machine.level("l2")
    fits = l2 is not None and l2.capacity is not None and l2.bandwidth is not None and price.bytes <= l2.capacity.value
    rate = l2.bandwidth.value if fits and l2 is not None and l2.bandwidth is not None else machine.bandwidth
    assert price.gpu_seconds >= max(price.flops / peak.value, price.bytes / rate) * (1 - 1e-9)


def test_case_13_a_script_that_leaves_by_os_exit_keeps_its_code_and_its_report(tmp_path: Path, own_home: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "leaves.py"
    script.write_text(
        "import os, sys, torch\nprint(sys.stdin.read().strip(), sys.argv[1:], flush=True)\n"
        "x = torch.randn(128, 128)\nfor _ in range(50):\n    x = torch.tanh(x @ x)\nos._exit(5)\n"
    )
    done = ridgepole(own_home, "why", str(script), "--on", "x", input="from stdin\n")
    assert done.returncode == 5
    assert done.stdout == "from stdin ['--on', 'x']\n"
    assert "aten::mm" in done.stderr
    assert ridgepole(own_home, "show").returncode == 0


WORK = "import os, signal, sys, torch\nx = torch.randn(64, 64)\nfor _ in range(30):\n    x = torch.tanh(x @ x)\n"

SCRIPTS: dict[str, tuple[str, int, bytes]] = {
    "reads stdin, prints megabytes of bytes and exits with 7": (
        "data = sys.stdin.buffer.read()\nsys.stdout.buffer.write(data[::-1] + bytes(range(256)) * 8192)\nsys.exit(7)\n",
        7,
        b"nidts" + bytes(range(256)) * 8192,
    ),
    "raises": ("print('before', flush=True)\nraise ValueError('its own')\n", 1, b"before\n"),
    "is interrupted": ("os.kill(os.getpid(), signal.SIGINT)\n", 130, b""),
    "forks workers": (
        "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    print(pool.map(abs, [-1, -2, 3]), flush=True)\n"
        "child = os.fork()\nif child == 0:\n    sys.exit(4)\nprint(os.waitpid(child, 0)[1] >> 8)\n",
        0,
        b"[1, 2, 3]\n4\n",
    ),
}


@pytest.mark.parametrize(("body", "code", "out"), SCRIPTS.values(), ids=SCRIPTS)
def test_case_13_a_script_behaves_as_ever_and_what_was_recorded_is_kept(
    tmp_path: Path, own_home: Path, body: str, code: int, out: bytes
) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "script.py"
    script.write_text(WORK + body)
    done = subprocess.run(
        [sys.executable, "-m", "ridgepole", "why", str(script)],
        input=b"stdin",
        capture_output=True,
        timeout=120,
        env={**os.environ, "RIDGEPOLE_HOME": str(own_home)},
    )
    assert (done.returncode, done.stdout) == (code, out), done.stderr
    assert b"aten::mm" in done.stderr and done.stderr.count(b"saved as run 1 ") == 1
    assert (b"Traceback" in done.stderr) == ("Error" in body or "SIGINT" in body)
    assert len(list((own_home / "runs").iterdir())) == 1


HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m[red]"


def test_case_14_hostile_names_are_text_in_every_report(tmp_path: Path) -> None:
    events = (op(HOSTILE, 0, 8), launch(1, 3), kernel(1, 10, 500, name=HOSTILE))
    run = explained(tmp_path, *events)
    page = html.render(run)
    assert "<img" not in page and "&lt;img src=x onerror=alert(1)&gt;" in page
    assert json.loads(chrome.render(run))
    for shown in (terminal.render(run, width=160), markdown.render(run), csvdoc.render(run), page):
        # An escape sequence in a name must not reach a terminal.
        assert "\x1b" not in shown
    assert "[red]" in terminal.render(run, width=160)


def test_case_14_names_are_no_formulas_no_markup_and_no_table_cells(tmp_path: Path) -> None:
    names = ['=HYPERLINK("http://x")', "+1+1", "@SUM(A1)", "-2", "a|b`c`", "[link](http://x)", "\t=1", "\u202egnp"]
    events = [
        event
        for i, name in enumerate(names)
        for event in (op(name, 40 * i, 8), launch(i + 1, 40 * i + 3), kernel(i + 1, 40 * i + 10, 9, name=name))
    ]
    run = explained(tmp_path, *events)
    rows = list(csv.reader(io.StringIO(csvdoc.render(run))))
    cells = [cell for row in rows[1:] for cell in row if not cell.lstrip("-").replace(".", "").isdigit()]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r")]
    tables = [line for line in markdown.render(run).splitlines() if line.startswith("| `")]
    assert len(tables) == len(names)
    assert {line.replace("\\|", "").count("|") for line in tables} == {8}
    spans = [e for e in json.loads(chrome.render(run))["traceEvents"] if e["ph"] == "X"]
    assert names[0] in {span["name"] for span in spans}
    assert not {"\t", "\u202e"} & set(terminal.render(run, width=160) + html.render(run))
