"""Sample published kernel times of serving engines into rows to hold prices against.

    git clone https://github.com/ai-dynamo/aiconfigurator
    pip install pyarrow
    python bench/truth/public.py aiconfigurator bench/truth/public

The tables (Apache-2.0, NVIDIA) were measured by their collectors: kernels in CUDA graphs, weights cold in the L2. Of
each GPU's vLLM tables in bfloat16: linears; decode attention, one query against what is kept; prefill attention,
causal. GPU-fit.jsonl may be fitted to. GPU-heldout.jsonl is never: no weight and no attention shape of it is in the
other, by a hash of the shape, which puts a shape on the same side for every GPU.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLES = "aic-core/src/aiconfigurator_core/systems/data"
GPUS = {
    "a100": ("a100_sxm", "0.14.0"),
    "h100": ("h100_sxm", "0.14.0"),
    "h200": ("h200_sxm", "0.14.0"),
    "l40s": ("l40s", "0.14.0"),
    "gb200": ("gb200", "0.14.0"),
    "b200": ("b200_sxm", "0.19.0"),
    "rtx-pro-6000": ("rtx_pro_6000_server", "0.19.0"),
}
"""File name: folder of the tables, version of vLLM."""
WANTED = {"linear": 150, "attention-decode": 50, "attention-prefill": 50}
"""Rows of each family on each side."""
SEED = 20261205

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path, help="of ai-dynamo/aiconfigurator")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, (folder, version) in GPUS.items():
        rows = list(_rows(options.clone / TABLES / folder, version))
        for side in ("fit", "heldout"):
            chosen = sample([row for row in rows if side_of(row) == side])
            text = "".join(json.dumps(row) + "\n" for row in chosen)
            (options.out / f"{name}-{side}.jsonl").write_text(text, encoding="utf-8")


def side_of(row: Row) -> str:
    """ "fit" or "heldout", by the shape alone: a linear's weight, an attention's heads and length."""
    inputs = row["inputs"]
    shape = inputs["w"]["shape"] if "w" in inputs else [*inputs["q"]["shape"][1:], *inputs["k"]["shape"][1:]]
    digest = hashlib.sha256(repr(shape).encode()).digest()
    return "fit" if digest[0] % 2 else "heldout"


def sample(rows: list[Row]) -> list[Row]:
    draw = random.Random(SEED)
    families = {family: [row for row in rows if row["family"] == family] for family in WANTED}
    return [row for family, of in families.items() for row in draw.sample(of, min(len(of), WANTED[family]))]


def _rows(folder: Path, version: str) -> Iterator[Row]:
    for r in _table(folder / "gemm/vllm" / version / "gemm_perf.parquet"):
        if r["gemm_dtype"] == "bfloat16":
            yield _row("linear", "F.linear(x, w)", r, x=[r["m"], r["k"]], w=[r["n"], r["k"]])
    for name, family in (("context", "attention-prefill"), ("generation", "attention-decode")):
        for r in _table(folder / "attention/vllm" / version / f"{name}_attention_perf.parquet"):
            if r["attn_dtype"] == r["kv_cache_dtype"] == "bfloat16" and not r.get("window_size"):
                yield _attention(family, r)


def _table(path: Path) -> list[Row]:
    from pyarrow import parquet

    rows: list[Row] = parquet.read_table(path).to_pylist()
    return rows


def _attention(family: str, r: Row) -> Row:
    prefill = family == "attention-prefill"
    batch, heads, depth, length = r["batch_size"], r["num_heads"], r["head_dim"], r["isl"]
    # Decode rows count their one token apart, as "step".
    kept = r["num_key_value_heads"]
    keys = [batch, kept, length if prefill else length + r["step"], depth]
    options = ["is_causal=True"] * prefill + ["enable_gqa=True"] * (kept != heads)
    call = f"F.scaled_dot_product_attention({', '.join(['q', 'k', 'v', *options])})"
    return _row(family, call, r, q=[batch, heads, length if prefill else 1, depth], k=keys, v=keys)


def _row(family: str, call: str, r: Row, **shapes: list[int]) -> Row:
    inputs = {name: {"shape": shape, "dtype": "bfloat16"} for name, shape in shapes.items()}
    return {"family": family, "call": call, "inputs": inputs, "seconds": r["latency"] * 1e-3}


if __name__ == "__main__":
    main()
