"""Collectives: alpha + bytes / link (Hockney 1994), ring volume."""

from __future__ import annotations

from ridgepole.price.kernel import Ask, Estimate, model


@model("collective")
def collective(ask: Ask) -> Estimate:
    """The payload once over the fastest link, twice for an all-reduce (reduce-scatter, then all-gather)."""
    rates = [figure.value for name, figure in ask.machine.links.items() if name != "pcie"]
    rates = rates or [figure.value for figure in ask.machine.links.values()]
    alpha = ask.constant("collective.alpha")
    if not rates:
        seconds = alpha + ask.cost.bytes / ask.machine.bandwidth
        return Estimate(seconds, "dram", "no link is known: memory bandwidth only, too fast")
    payload = max(ask.cost.read, ask.cost.written)
    trips = 2 if "all_reduce" in ask.op.operator or "allreduce" in ask.op.operator else 1
    seconds = alpha + trips * payload / (max(rates) * ask.constant("collective.fraction"))
    return Estimate(seconds, "link", f"{alpha * 1e6:.0f} µs + bytes over the link")
