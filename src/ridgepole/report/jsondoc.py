"""The JSON that scripts may rely on: keys stable, more may be added."""

from __future__ import annotations

import json
from typing import Any

from ridgepole.attribute.ledger import DeviceLedger
from ridgepole.session import Priced, PriceRun, Run


def render(run: Run) -> str:
    """A run as JSON text."""
    return json.dumps(document(run), indent=1, ensure_ascii=False) + "\n"


def render_price(run: PriceRun) -> str:
    """A price as JSON text."""
    return json.dumps(price_document(run), indent=1, ensure_ascii=False) + "\n"


def document(run: Run) -> dict[str, Any]:
    """A run as plain JSON values; `buckets` sums to `window_ns`."""
    device = run.busiest
    return {
        "schema": run.schema,
        "kind": run.kind,
        "target": run.target,
        "machine": {"name": run.machine.name, "source": run.machine.source},
        "window_ns": run.window_ns,
        "window_rule": run.window_rule,
        "buckets": dict(device.buckets),
        "causes": [{"bucket": e.bucket, "cause": e.cause, "ns": e.ns} for e in device.entries],
        "devices": [_device(d) for d in run.devices],
        "coverage": _coverage(device),
        "ops": [
            {
                "op": row.op,
                "count": row.count,
                "kernels": row.kernels,
                "ns": row.ns,
                "bucket": row.bucket,
                "flops": row.flops,
                "bytes": row.bytes,
                "intensity": row.intensity,
                "efficiency": row.efficiency,
                "quality": row.quality,
                "shapes": row.shapes,
                "where": row.where,
                "kernel_names": list(row.names),
            }
            for row in device.ops
        ],
        "findings": [
            {
                "id": f.id,
                "fix": f.fix,
                "summary": f.summary,
                "fix_summary": f.fix_summary,
                "how": f.how,
                "predicted_gain_ns": f.gain_ns,
                "predicted_window_ns": f.after_ns,
                "arithmetic": f.arithmetic,
                "upper_bound": f.upper_bound,
                "evidence": dict(f.evidence),
            }
            for f in run.findings
        ],
        "utilization": {
            "nvidia_smi_up_to": 1.0 if device.resident_ns else 0.0,
            "resident": _share(device.resident_ns, run.window_ns),
            "roofs": _share(device.roof_ns, run.window_ns),
        },
        "inflation": run.inflation,
        "scaled": run.scaled,
        "notes": list(run.notes),
        "version": run.version,
        "created": run.created,
    }


def _device(device: DeviceLedger) -> dict[str, Any]:
    return {
        "device": device.device,
        "gpu_events": device.events,
        "busy_ns": device.busy_ns,
        "gpu_window_ns": device.gpu_window_ns,
        "buckets": dict(device.buckets),
    }


def _coverage(device: DeviceLedger) -> dict[str, float]:
    c = device.coverage
    return {
        "bucket": c.bucket,
        "op": c.op,
        "bytes": c.bytes,
        "flops": c.flops,
        "in_graph": c.in_graph,
        "inferred": c.inferred,
    }


def _share(ns: int, window: int) -> float:
    return ns / window if window else 0.0


def price_document(run: PriceRun) -> dict[str, Any]:
    """A price as plain JSON values, seconds."""
    return {
        "schema": run.schema,
        "target": run.target,
        "prices": [_price(p) for p in run.prices],
        "version": run.version,
        "created": run.created,
    }


def _price(p: Priced) -> dict[str, Any]:
    return {
        "machine": p.machine,
        "mode": p.mode,
        "seconds": p.seconds,
        "low": p.low,
        "high": p.high,
        "range_source": p.range_source,
        "gpu_seconds": p.gpu_seconds,
        "launches": p.launches,
        "bytes": p.bytes,
        "flops": p.flops,
        "launch_seconds": p.launch_seconds,
        "travel_seconds": p.travel_seconds,
        "math_seconds": p.math_seconds,
        "parameter_bytes": p.parameter_bytes,
        "peak_memory_bytes": p.peak_memory_bytes,
        "fused": None
        if p.fused is None
        else {
            "seconds": p.fused.seconds,
            "travel_seconds": p.fused.travel_seconds,
            "launches": p.fused.launches,
        },
        "buckets": dict(p.buckets),
        "geometry": [
            {
                "op": g.op,
                "elements": g.elements,
                "grid": g.grid,
                "block": g.block,
                "blocks_per_sm": g.blocks_per_sm,
                "wave": g.wave,
                "waves": g.waves,
            }
            for g in p.geometry
        ],
        "ops": [
            {
                "op": o.op,
                "where": o.where,
                "count": o.count,
                "seconds": o.seconds,
                "bucket": o.bucket,
                "flops": o.flops,
                "bytes": o.bytes,
                "limit": o.limit,
                "why": o.why,
            }
            for o in p.ops
        ],
        "unpriced": [{"op": u.op, "count": u.count, "reason": u.reason, "share": u.share} for u in p.unpriced],
        "sources": dict(p.sources),
        "notes": list(p.notes),
    }
