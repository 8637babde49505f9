"""Time goes into copies between host and device that could be pinned, overlapped or left out."""

from __future__ import annotations

from ridgepole import units
from ridgepole.explain.case import Case
from ridgepole.explain.finding import Finding
from ridgepole.explain.findings import rule


@rule("transfer-bound")
def transfer_bound(case: Case) -> Finding | None:
    """Exposed host-device copies; pinned and asynchronous they run beside compute, so all of it may go."""
    entries = [e for e in case.device.entries if e.bucket == "transfer" and e.cause.startswith(("htod", "dtoh"))]
    ns = sum(e.ns for e in entries)
    if case.share(ns) < 0.02:
        return None
    pageable = sum(e.ns for e in entries if "pageable" in e.cause)
    how = "DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True), prefetching the next batch"
    kind = "pageable memory, which the driver copies twice" if 2 * pageable > ns else "pinned memory"
    return Finding(
        id="transfer-bound",
        fix="pin-and-overlap",
        summary=(
            f"{units.percent(case.share(ns))} of this window only copies between host and GPU ran, mostly from {kind}."
        ),
        fix_summary=(
            f"copy from pinned memory beside the compute: {units.nanoseconds(case.window)} → "
            f"{units.nanoseconds(case.window - ns)}"
        ),
        how=how,
        gain_ns=ns,
        after_ns=case.window - ns,
        arithmetic=f"all {units.nanoseconds(ns)} of exposed copies hidden behind kernels",
        upper_bound=True,
        evidence={"copies_ns": ns, "pageable_ns": pageable},
    )


@rule("communication-bound")
def communication_bound(case: Case) -> Finding | None:
    """Collectives with no kernel beside them: exposed communication."""
    ns = sum(e.ns for e in case.device.entries if e.bucket == "communication")
    if case.share(ns) < 0.02:
        return None
    return Finding(
        id="communication-bound",
        fix="overlap-communication",
        summary=f"{units.percent(case.share(ns))} of this window only collectives ran: communication nothing hid.",
        fix_summary=(f"overlap with compute: {case.change(ns)}"),
        how="DistributedDataParallel(gradient_as_bucket_view=True, bucket_cap_mb=…); fewer, larger calls",
        gain_ns=ns,
        after_ns=case.window - ns,
        arithmetic=f"all {units.nanoseconds(ns)} of exposed collectives hidden behind kernels",
        upper_bound=True,
        evidence={"exposed_ns": ns},
    )
