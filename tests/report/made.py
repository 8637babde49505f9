"""A run made by hand, with names that try to be something else."""

from __future__ import annotations

from dataclasses import replace

from ridgepole.attribute.ledger import Bucket, Coverage, DeviceLedger, Entry, OpRow
from ridgepole.explain.finding import Finding
from ridgepole.session import MachineUsed, Run, Track

HOSTILE = "</script><img src=x onerror=alert(1)>[red]`|"


def row(op: str, ns: int, bucket: Bucket = "memory") -> OpRow:
    return OpRow(
        op=op,
        where="layers.0",
        count=3,
        kernels=3,
        ns=ns,
        bucket=bucket,
        flops=ns * 10,
        bytes=ns * 100,
        known_ns=ns,
        efficiency=0.5,
        quality="exact",
        shapes="4096x4096 bf16",
    )


def run(**changes: object) -> Run:
    """A window of 1,000,000 ns: 100,000 compute, 200,000 memory, 700,000 overhead."""
    device = DeviceLedger(
        device="0",
        events=61,
        busy_ns=300_000,
        gpu_window_ns=1_000_000,
        entries=(
            Entry("compute", "compute", 100_000),
            Entry("memory", "memory", 200_000),
            Entry("overhead", "dispatch", 400_000),
            Entry("overhead", "launch", 300_000),
        ),
        resident_ns=300_000,
        roof_ns=150_000,
        coverage=Coverage(1.0, 1.0, 0.9, 0.8, 0.0, 0.1),
        ops=(row("aten::mm", 100_000, "compute"), row(HOSTILE, 200_000)),
    )
    finding = Finding(
        id="launch-bound",
        fix="cuda-graph",
        summary=f"the GPU waited for {HOSTILE}",
        fix_summary="1.00 ms → 300 µs",
        how="torch.compile(...)",
        gain_ns=700_000,
        after_ns=300_000,
        arithmetic="700 - 0",
        upper_bound=True,
        evidence={"kernels": 61},
    )
    made = Run(
        schema=1,
        version="0",
        created="2026-12-01T00:00:00+00:00",
        kind="measured",
        target=HOSTILE,
        machine=MachineUsed(name="H100 SXM", source="datasheet: a page", bandwidth=3.35e12),
        window_ns=1_000_000,
        window_rule="first to last event",
        devices=(device,),
        findings=(finding,),
        notes=(f"a note about {HOSTILE}",),
        track=Track(
            lanes=("CPU 1", "GPU 0 stream 7"),
            names=("cudaLaunchKernel", HOSTILE),
            lane=(0, 1),
            start=(0, 5_000),
            ns=(3_000, 200_000),
            kind=("launch", "kernel"),
            name=(0, 1),
            bucket=(-1, 1),
            link=(-1, 0),
        ),
    )
    return replace(made, **changes)  # type: ignore[arg-type]
