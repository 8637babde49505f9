"""What a Python user calls, on real torch programs on this machine's CPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ridgepole as rp
from ridgepole import api

torch = pytest.importorskip("torch")


def test_the_rooms_are_functions_too() -> None:
    assert rp.machine("h100").name == "H100 SXM"
    import ridgepole.machine.catalog
    import ridgepole.price.price

    assert rp.machine("h200").name == "H200 SXM"
    assert ridgepole.machine.catalog.load()
    assert callable(rp.price)


def test_a_price_needs_no_data_and_moves_each_byte_once() -> None:
    x = torch.empty(4096, 4096, dtype=torch.bfloat16, device="meta")
    priced = rp.price(lambda x: x * 2 + 1, x, on=["h100", "h200"])
    first, second = priced.run.prices
    # Two kernels, 33.55 MB in and 33.55 MB out each: 134.2 MB at 3.35 and at 4.8 TB/s.
    assert first.launches == 2
    assert first.bytes == 4 * 4096 * 4096 * 2
    assert first.travel_seconds == pytest.approx(40.1e-6, rel=0.005)
    assert second.travel_seconds == pytest.approx(28.0e-6, rel=0.005)
    assert first.low <= first.seconds <= first.high
    assert priced.seconds == first.seconds > first.travel_seconds
    assert first.fused is not None and first.fused.launches == 1
    assert sum(first.buckets.values()) == pytest.approx(first.seconds)
    assert len(priced.to_pandas()) == 2
    assert "40.1 µs" in str(priced)


def test_a_graph_pays_no_launches() -> None:
    x = torch.empty(64, device="meta")

    def many(x: object) -> object:
        for _ in range(100):
            x = x * 2  # type: ignore[operator]
        return x

    eager, graph = (rp.price(many, x, on="h200", mode=mode).seconds for mode in ("eager", "graph"))
    # 7.7 µs of dispatch and launch a kernel against about 1.2 µs in a graph.
    assert eager == pytest.approx(100 * 7.7e-6, rel=0.1)
    assert graph < eager / 4


def test_a_block_is_explained_and_its_ledger_adds_up() -> None:
    a = torch.randn(256, 256)
    with rp.why() as w:
        for _ in range(20):
            a = torch.tanh(a @ a)
    run = w.run
    assert run.devices[0].device == "cpu"
    assert sum(run.buckets.values()) == run.window_ns
    assert {"aten::mm", "aten::tanh"} <= {row["op"] for row in w.records()}
    assert set(w._repr_mimebundle_()) == {"text/plain", "text/html"}
    assert "window" in str(w)


def test_before_the_block_ends_there_is_nothing_to_read() -> None:
    with pytest.raises(rp.BadInput, match="leave the"):
        _ = rp.why().run


def test_an_exception_in_the_block_passes() -> None:
    with pytest.raises(ZeroDivisionError), rp.why():
        torch.ones(3).sum()
        _ = 1 / 0


def test_a_decorated_function_returns_what_it_returned(capsys: pytest.CaptureFixture[str]) -> None:
    calls = []

    @rp.why
    def step(x: int) -> int:
        calls.append(x)
        torch.ones(64, 64) @ torch.ones(64, 64)
        return x + 1

    assert [step(x) for x in range(400)] == list(range(1, 401))
    assert calls == list(range(400))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "overhead" in printed.err


def test_a_function_target_is_explained(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import torch\na = torch.randn(128, 128)\ndef step():\n    return (a @ a).relu()\n")
    run = api.explain_function(f"{program}:step")
    assert sum(run.buckets.values()) == run.window_ns
    # On a machine that others use as well the recorded steps may be the faster ones: then nothing is scaled.
    assert run.inflation is not None
    assert run.scaled == (run.inflation >= 0.9)


def test_a_script_keeps_its_output_and_exit_code(tmp_path: Path, own_home: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, torch\nprint('hello', *sys.argv[1:])\n"
        "x = torch.randn(64, 64)\nfor _ in range(30):\n    x = torch.tanh(x @ x)\nsys.exit(7)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "ridgepole", "why", str(program), "--flag", "-o", "x"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 7
    assert done.stdout == "hello --flag -o x\n"
    assert "aten::mm" in done.stderr


@pytest.mark.parametrize(("target", "kind"), [("package.module:step", "function"), ("p/file.py:step", "function")])
def test_a_colon_and_a_name_mean_a_function(target: str, kind: str) -> None:
    assert api.target_kind(target) == kind


def test_a_trace_is_read_from_python(shared: Callable[[str], Path]) -> None:
    read = rp.read(shared("traces/h100-bert-small.json.gz"))
    assert read.run.machine.name == "H100 SXM"
    assert read.run.findings[0].fix == "cuda-graph"
    asked = rp.read(shared("traces/two-ranks-0.json.gz"), machine="a100")
    assert asked.run.machine.name == "A100 SXM 80GB"


def test_the_h200_decode_trace_predicts_its_graph_within_ten_percent(shared: Callable[[str], Path]) -> None:
    eager = rp.read(shared("traces/h200-llama3-8b-decode-b1-ctx128.eager.json.gz")).run
    graph = rp.read(shared("traces/h200-llama3-8b-decode-b1-ctx128.graph.json.gz")).run
    first = eager.findings[0]
    assert (first.id, first.fix) == ("launch-bound", "cuda-graph")
    assert first.upper_bound
    assert first.after_ns == pytest.approx(graph.busiest.gpu_window_ns, rel=0.10)


def test_timesformer_is_told_that_softmax_is_memory_bound(shared: Callable[[str], Path]) -> None:
    found = {f.id: f for f in rp.read(shared("traces/h100-timesformer.json.gz")).run.findings}
    assert "softmax (aten::_softmax) is memory-bound" in found["memory-bound"].summary
    assert found["memory-bound"].fix == "sdpa"


def test_llama_3_8b_decode_prints_launches_weights_and_their_times() -> None:
    pytest.importorskip("transformers")
    config = Path(__file__).resolve().parents[1] / "examples/configs/llama-3-8b.json"
    run = api.price_target(str(config), (), ("h100", "h200"), ("eager", "graph"), step="decode", batch=1, context=128)
    h100 = run.prices[0]
    # 8.03e9 parameters of 2 bytes; 16.06 GB / 3.35 TB/s.
    assert h100.parameter_bytes == pytest.approx(16.06e9, rel=0.001)
    assert h100.parameter_bytes / h100.bandwidth == pytest.approx(4.79e-3, rel=0.005)
    assert h100.launch_seconds == pytest.approx(h100.launches * 5e-6)
    assert not h100.unpriced
    # An H200 measured 13.0 ms eager and 5.9 ms as a graph.
    eager, graph = run.prices[2], run.prices[3]
    assert eager.seconds == pytest.approx(13.0e-3, rel=0.15)
    assert graph.seconds == pytest.approx(5.9e-3, rel=0.10)
