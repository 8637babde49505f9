"""Write docs/accuracy.md: how far prices are from measured kernel times, on rows fitted to and on rows that were not.

    python bench/accuracy_page.py [--ops FILE ...] > docs/accuracy.md

Every figure is priced as the page is written. `--ops`: files of calls measured on an H200, beside those in `truth/`.
The constants of "left out" are those that `fit.py GPU --write` found without that GPU's rows.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import accuracy
from fit import GPUS, LEFT_OUT, PUBLIC, tuned

from ridgepole.machine import catalog
from ridgepole.machine.model import Machine

HEAD = """\
# How far prices are from measured times

Written by `python bench/accuracy_page.py`; nothing here is typed in by hand but the words. An error is price / measured
- 1; median, mean and p90 are of its size, bias is of itself. "in range" is the share of rows that lie in the price's
own range, which is meant to hold 80 %. "roofline" is the mean error of max(FLOPs / peak, bytes / bandwidth) on the same
rows. Prices are of kernels back to back, as in a CUDA graph.

Three kinds of rows are kept apart:

- **fitted**: the constants were fitted to them (`bench/fit.py`);
- **held out**: other shapes of the same GPU. No weight and no attention shape of them is among the fitted, of any GPU;
- **left out**: the held-out rows of a GPU, priced with constants fitted to other GPUs only: of the same architecture,
  or of the same kind of matrix unit where it is the only one of its architecture. This is what a GPU that nobody
  measured gets. (The search for those constants began at the table's, in which the GPU's own rows may have had a part.)
"""

ROWS = """\
The public rows (`bench/truth/public/`) are bf16 kernels of vLLM, measured by their publisher, sampled by
`bench/truth/public.py`. Three things in them are not the op that is priced:

- attention is called as a serving engine does it, with the new keys and values written to its paged cache, and on an
  A100 without splitting a long cache where each query head has its own keys (a price there is up to 14x too fast;
  PyTorch's own kernel does split);
- the H200 has attention constants of PyTorch's own kernel (torch 2.11), which takes about half as long as vLLM's. Its
  public attention rows are counted here against prices of PyTorch's; "left out" prices them as vLLM's;
- on the L40S, weights below about 18 MB were left warm in its 96 MB L2; a price takes them from memory. Such rows are
  not fitted to, but they are counted here.
"""

OPS = """\
Measured in a CUDA graph with cold inputs, torch 2.11. Not held out: where a family has a constant of its own, it comes
from some of these calls, or from calls like them.
"""

PEERS = """\
## Beside others' published figures

Published by their authors, AIConfigurator's run with its own tables; on their rows and GPUs: not a race on one track.

| who | what it needs of the GPU | mean error a kernel or op |
|---|---|---|
| plain roofline, in the papers below | its datasheet | 16 to 49 % |
| KernelSight-LM (arXiv 2606.28565), unseen GPUs | its datasheet | 12.1 % (roofline on its rows: 22.0 %) |
| KernelSight-LM, a sweep on the GPU | measurements of it | 3.8 % |
| NeuSight (ASPLOS 2025), learned, whole models | its datasheet | 6.1 % H100, 6.5 % A100, 14.6 % L4; ops 14 to 26 % |
| SynPerf (arXiv 2601.14910) | a learned model over 11 GPUs | 6.1 % kernels, 8.5 % end to end |
| PM2Lat (arXiv 2603.00549) | measurements of it | 3 to 8 % |
| AIConfigurator 0.12, its own measured tables | measurements of it | 20 % median, 31 % mean of a step |
"""


class Table:
    """Rows of a Markdown table of errors."""

    def __init__(self, first: str) -> None:
        self.lines = [
            f"| {first} | rows | n | median | mean | p90 | bias | in range | roofline |",
            "|---|---|---|---|---|---|---|---|---|",
        ]

    def add(self, name: str, kind: str, rows: Sequence[accuracy.Row]) -> None:
        document = accuracy.report(rows, Counter())
        self._line(name, kind, document["overall"], document["roofline"]["overall"])

    def add_families(self, name: str, kind: str, rows: Sequence[accuracy.Row]) -> None:
        document = accuracy.report(rows, Counter())
        for family, figures in document["families"].items():
            self._line(f"{name}{family}", kind, figures, document["roofline"]["families"][family])

    def _line(self, name: str, kind: str, s: dict[str, Any], plain: dict[str, Any]) -> None:
        self.lines.append(
            f"| {name} | {kind} | {s['n']} | {s['median']:.1%} | {s['mean']:.1%} | {s['p90']:.1%} | {s['bias']:+.1%} "
            f"| {s['in_range']:.0%} | {plain['mean']:.1%} |"
        )

    def __str__(self) -> str:
        return "\n".join(self.lines)


def priced(path: Path, machine: Machine) -> list[accuracy.Row]:
    return [accuracy.priced(row, machine) for row in accuracy.read([path])]


def public() -> Iterable[str]:
    """A table of all GPUs, and one of each GPU's families on held-out rows."""
    left_out: dict[str, Any] = json.loads(LEFT_OUT.read_text(encoding="utf-8"))
    whole, parts = Table("GPU"), Table("GPU, family")
    every: dict[str, list[accuracy.Row]] = {"held out": [], "left out": []}
    titles = {name: catalog.find(known).name for name, known in GPUS.items()}
    for name, title in titles.items():
        machine = catalog.find(GPUS[name])
        held = priced(PUBLIC / f"{name}-heldout.jsonl", machine)
        others = left_out[name]
        whole.add(title, "fitted", priced(PUBLIC / f"{name}-fit.jsonl", machine))
        whole.add(title, "held out", held)
        strange = priced(PUBLIC / f"{name}-heldout.jsonl", tuned(machine, others["constants"]))
        whole.add(title, f"left out (from {', '.join(titles[g] for g in others['fitted_to'])})", strange)
        every["held out"] += held
        every["left out"] += strange
        parts.add_families(f"{title}, ", "held out", held)
    for kind, rows in every.items():
        whole.add("all", kind, rows)
    yield str(whole)
    yield "By family, held-out rows:"
    yield str(parts)


def ops(paths: Sequence[Path]) -> Iterable[str]:
    """A table of calls measured on an H200, by family."""
    machine, table = catalog.find("h200"), Table("family")
    rows = [row for path in paths for row in priced(path, machine)]
    table.add("all", "", rows)
    table.add_families("", "", rows)
    yield str(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", nargs="*", type=Path, default=[], metavar="FILE")
    options = parser.parse_args()
    parts = [HEAD, "## Seven GPUs, public kernel times", ROWS, *public()]
    if options.ops:
        parts += ["## PyTorch calls on an H200", OPS, *ops(options.ops)]
    parts.append(PEERS)
    print("\n\n".join(part.strip("\n") for part in parts))


if __name__ == "__main__":
    main()
