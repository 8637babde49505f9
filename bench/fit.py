"""Fit the kernel models' constants to measured kernel times.

    pip install scipy
    python bench/fit.py [NAME ...] [--write] [--evaluations N]
    python bench/fit.py --ranges

NAME is a section of the tuning table (all of them, if none is given) or a GPU, whose constants are then fitted without
its own rows, to the other GPUs of its architecture or, where it is the only one, of its kind of matrix unit. Rows are
those of `truth/public/GPU-fit.jsonl`; the errors printed are on `GPU-heldout.jsonl`, whose shapes are in no fit file.
`--write` puts a section's constants into the table, each with the rows it was fitted to, and a GPU's, found without it,
into `truth/left_out.json`.

`--ranges` fits nothing: it writes how far prices reach to either side, for the constants as they stand. That is the
85th percentile of the fit rows, so that 80 % of others lie inside; a GPU that nobody measured gets that of left-out
GPUs.

A fit begins at the constants of the table. A left-out GPU may have had a part in those, so its fit is free of its rows
but not of where they led the search.

A constant is found by Nelder and Mead's simplex over logarithms; what is made small is the size of log(price /
measured), a row's held to 0.7 so that a few rows of another kernel do not bend the rest.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import accuracy

from ridgepole.machine import catalog
from ridgepole.machine.model import Figure, Machine, Source
from ridgepole.price import tuning
from ridgepole.price.flags import Flags
from ridgepole.price.kernel import KernelTime, kernel_time
from ridgepole.work.op import Cost, Op
from ridgepole.work.targets import expression

HERE = Path(__file__).parent
PUBLIC = HERE / "truth" / "public"
LEFT_OUT = HERE / "truth" / "left_out.json"
TABLE = HERE.parent / "src" / "ridgepole" / "price" / "tuning.toml"

GPUS = {
    "a100": "a100-sxm-80gb",
    "h100": "h100-sxm",
    "h200": "h200",
    "l40s": "l40s",
    "b200": "b200",
    "gb200": "gb200",
    "rtx-pro-6000": "rtx-pro-6000",
}
"""A GPU's files of truth: its name in the catalog."""

SECTIONS = {
    "hopper": ("h100", "h200"),
    "blackwell": ("b200", "gb200"),
    "blackwell gb202": ("rtx-pro-6000",),
    "ada": ("l40s",),
    "ampere": ("a100",),
    "default": ("a100", "l40s", "rtx-pro-6000"),
}
"""Sections of the table, and the GPUs they are fitted to. The default: warps that feed the matrix unit themselves."""

KINDS = (("h100", "h200", "b200", "gb200"), ("a100", "l40s", "rtx-pro-6000"))
"""GPUs whose matrix units take operands from shared memory by themselves, and those whose warps load them."""

LINEAR = (
    "gemm.start", "gemm.pace", "gemm.wave", "gemm.quantum", "gemm.feed", "gemm.split", "gemm.ramp", "gemm.dram",
    "gemm.reach", "achieved.tensor",
)  # fmt: skip
ATTENTION = (
    "attention.start", "attention.decode", "attention.join", "attention.dram", "attention.rate", "attention.block",
    "attention.edges", "attention.pace",
)  # fmt: skip
PARTS = {
    "bf16 linears": (LINEAR, ("linear",)),
    "bf16 attention calls": (ATTENTION, ("attention-decode", "attention-prefill")),
}
"""What is fitted together: the constants, and the families of rows they price."""

RANGES = {"bf16 linears": "error.matmul", "bf16 attention calls": "error.attention"}
INSIDE = 0.85
"""Share of the fit rows that lie in their prices' range."""

SHARES = {
    "gemm.quantum": 1.0, "gemm.dram": 1.0, "gemm.reach": 1.0, "achieved.tensor": 1.0, "attention.rate": 1.0,
    "attention.dram": 1.1, "attention.edges": 1.1,
}  # fmt: skip
"""The most that a share may be. Attention's are of the bandwidth that plain streaming reaches."""

WARM = {"l40s": 20_000_000}
"""Bytes of a linear below which a GPU's rows were measured with the weights left in its L2: not fitted to."""

MOST = 0.7
STEPS = (0.35, -0.2, 0.1)
"""First steps of the simplexes, one after another, in logarithms."""


@dataclass(frozen=True, slots=True)
class Measured:
    family: str
    ops: tuple[Op, ...]
    seconds: float


Group = tuple[Machine, Sequence[Measured]]


def rows(path: Path, families: Sequence[str]) -> list[Measured]:
    return [
        Measured(row["family"], tuple(expression.from_row(row).capture().ops), row["seconds"])
        for row in accuracy.read([path])
        if row["family"] in families
    ]


def tuned(machine: Machine, values: Mapping[str, float]) -> Machine:
    own = {key: Figure(value, "", Source("assumed", "being fitted")) for key, value in values.items()}
    return replace(machine, tuning={**machine.tuning, **own})


def errors(machine: Machine, measured: Sequence[Measured]) -> list[float]:
    """price / measured - 1, of each row."""
    found = []
    for row in measured:
        times = [kernel_time(op, machine, Flags()) for op in row.ops]
        priced = sum(t.seconds for t in times if isinstance(t, KernelTime))
        found.append(priced / row.seconds - 1)
    return found


def loss(groups: Sequence[Group], values: Mapping[str, float]) -> float:
    """Mean and median size of the rows' log errors, every group weighing the same."""
    total = 0.0
    for machine, measured in groups:
        sizes = [min(MOST, abs(math.log1p(e))) for e in errors(tuned(machine, values), measured)]
        total += 0.6 * statistics.fmean(sizes) + 0.4 * statistics.median(sizes)
    return total / len(groups)


def fit(groups: Sequence[Group], start: Mapping[str, float], evaluations: int) -> dict[str, float]:
    """The constants of `start`, to three digits, that make `loss` small."""
    import numpy as np
    from scipy.optimize import minimize

    def values(x: Any) -> dict[str, float]:
        return {k: min(float(f"{math.exp(v):.3g}"), SHARES.get(k, math.inf)) for k, v in zip(start, x, strict=True)}

    def worth(x: Any) -> float:
        past = (v - math.log(SHARES.get(k, math.inf)) for k, v in zip(start, x, strict=True))
        return loss(groups, values(x)) + sum(max(0.0, p) for p in past)

    x = np.array([math.log(value) for value in start.values()])
    for step in STEPS:
        simplex = np.vstack([x, *(x + step * unit for unit in np.eye(len(x)))])
        options = {"maxfev": evaluations, "initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-5}
        x = minimize(worth, x, method="Nelder-Mead", options=options).x
    return values(x)


def relatives(gpu: str) -> tuple[str, ...]:
    """The GPUs that stand in for `gpu` where its own rows are left out."""
    near = next(of for name, of in SECTIONS.items() if gpu in of and name != "default")
    return tuple(g for g in (near if len(near) > 1 else next(k for k in KINDS if gpu in k)) if g != gpu)


def fitted(gpus: Sequence[str], start: Machine, evaluations: int) -> dict[str, float]:
    """Every part's constants, fitted to the fit rows of `gpus`, beginning at those of `start`."""
    found: dict[str, float] = {}
    for keys, families in PARTS.values():
        groups = []
        for gpu in gpus:
            measured = to_fit(gpu, families)
            groups += [(catalog.find(GPUS[gpu]), [r for r in measured if r.family == f]) for f in families]
        found |= fit(groups, {key: tuning.constant(start, key).value for key in keys}, evaluations)
    return found


def to_fit(gpu: str, families: Sequence[str]) -> list[Measured]:
    """The fit rows of a GPU, but for linears whose weights were warm."""

    def cold(row: Measured) -> bool:
        moved = sum(op.cost.bytes for op in row.ops if isinstance(op.cost, Cost))
        return row.family != "linear" or moved >= WARM.get(gpu, 0)

    return [row for row in rows(PUBLIC / f"{gpu}-fit.jsonl", families) if cold(row)]


def heldout(gpu: str, values: Mapping[str, float]) -> dict[str, list[float]]:
    """Errors on the held-out rows of `gpu`, by family."""
    machine = tuned(catalog.find(GPUS[gpu]), values)
    found: dict[str, list[float]] = {}
    for _, families in PARTS.values():
        for family in families:
            of = [r for r in rows(PUBLIC / f"{gpu}-heldout.jsonl", families) if r.family == family]
            found[family] = errors(machine, of)
    return found


def write(section: str, values: Mapping[str, float], source: str) -> None:
    """Replace the constants' lines in the table, or add them to the section's end."""
    text = TABLE.read_text(encoding="utf-8")
    head = f'["{section}"]' if " " in section else f"[{section}]"
    if head not in text:
        text = text.rstrip("\n") + f"\n\n{head}\n"
    before, _, rest = text.partition(head + "\n")
    body, cut, after = rest.partition("\n[")
    for key, value in values.items():
        unit = re.search(rf'^"{re.escape(key)}" = .*unit = "([^"]*)"', text, re.MULTILINE)
        assert unit is not None, f"{key} is in no section of {TABLE.name}"
        line = f'"{key}" = {{ value = {value:g}, unit = "{unit[1]}", source = "{source}" }}'
        body, replaced = re.subn(rf'^"{re.escape(key)}" = .*$', line, body, flags=re.MULTILINE)
        if not replaced:
            body = body.rstrip("\n") + ("\n" if body.strip() else "") + f"{line}\n"
    TABLE.write_text(before + head + "\n" + body + cut + after, encoding="utf-8")


def said(gpus: Sequence[str]) -> str:
    return " and ".join([", ".join(gpus[:-1])] * (len(gpus) > 1) + [gpus[-1]])


def reach(found: Sequence[float]) -> float:
    """The error e for which INSIDE of the rows lie between price / (1 + e) and price x (1 + e)."""
    sizes = sorted(max(1 + e, 1 / (1 + e)) - 1 for e in found)
    return float(f"{sizes[min(len(sizes) - 1, math.ceil(INSIDE * len(sizes)))]:.2g}")


def ranges() -> None:
    left_out = json.loads(LEFT_OUT.read_text(encoding="utf-8"))
    for section, gpus in SECTIONS.items():
        table = {key: figure.value for key, figure in tuning.load()[section].items()}
        for part, (keys, families) in PARTS.items():
            found: list[float] = []
            for gpu in gpus:
                constants = left_out[gpu]["constants"] if section == "default" else table
                machine = tuned(catalog.find(GPUS[gpu]), {key: constants[key] for key in keys})
                found += errors(machine, to_fit(gpu, families))
            how = "priced by constants fitted without their GPU" if section == "default" else "it was fitted to"
            source = f"measured: {INSIDE:.0%} of the public {part} {how}, on {said(gpus)}, {date.today():%Y-%m}"
            write(section, {RANGES[part]: reach(found)}, source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*SECTIONS, *GPUS, []])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--evaluations", type=int, default=500, metavar="N", help="of the loss, a simplex (500)")
    parser.add_argument("--ranges", action="store_true")
    options = parser.parse_args()
    if options.ranges:
        ranges()
        return
    for name in options.names or SECTIONS:
        gpus = SECTIONS[name] if name in SECTIONS else relatives(name)
        # A machine may have constants of its own; a fit begins at its architecture's.
        start = replace(catalog.find(GPUS[gpus[0]]), tuning={})
        values = fitted(gpus, start, options.evaluations)
        print(f"{name}: fitted to {', '.join(gpus)}: {values}")
        for gpu in gpus if name in SECTIONS else (name,):
            for family, of in heldout(gpu, values).items():
                figures = accuracy.summary(of)
                print(f"  {gpu} {family}: median {figures['median']:.1%}, mean {figures['mean']:.1%}, n {len(of)}")
        if options.write and name in SECTIONS:
            for part, (keys, _) in PARTS.items():
                source = f"measured: fitted to public {part} on {said(gpus)} (bench/fit.py), {date.today():%Y-%m}"
                write(name, {key: values[key] for key in keys}, source)
        elif options.write:
            known = json.loads(LEFT_OUT.read_text(encoding="utf-8")) if LEFT_OUT.exists() else {}
            known[name] = {"fitted_to": list(gpus), "constants": values}
            LEFT_OUT.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
