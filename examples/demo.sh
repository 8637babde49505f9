#!/usr/bin/env bash
# The main job, end to end: explain traces taken on an H200, explain a live run on this machine, price the same step
# on GPUs that are not here, measure a matrix product's ladder, and write the reports.  usage: examples/demo.sh OUTDIR
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-demo-output}
mkdir -p "$out"
RIDGEPOLE_HOME="$(cd "$out" && pwd)/home"
export RIDGEPOLE_HOME

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "$@"; "$@"; }

run ridgepole why -o "$out/decode-eager.html" -o "$out/decode-eager.json" examples/traces/h200-decode-4-layers.eager.json.gz
run ridgepole why --beside examples/traces/h200-decode-4-layers.eager.json.gz -o "$out/decode-graph.html" \
    examples/traces/h200-decode-4-layers.graph.json.gz
run ridgepole why -o "$out/launch-bound.html" examples/traces/h200-launch-bound.json.gz
run ridgepole why -o "$out/train.html" -o "$out/train.trace.json" examples/traces/h200-train-item.json.gz

# Live, on this machine: its CPU is the machine unless there is a GPU.
run ridgepole why -o "$out/live.html" examples/decode.py --tokens 60

# The same kind of step on GPUs nobody here owns.
run ridgepole price examples/configs/llama-3-8b.json --step decode --batch 1 --context 128 --on h100 --on h200 \
    -o "$out/price.json"
run ridgepole price 'x * 2 + 1' -i x=4096x4096:bf16 --on h100 --mode eager --mode compiled

# What this machine can do: real kernels, on its GPU or, through OpenCL, on its CPU.
run ridgepole lab ladder --quick -o "$out/ladder.svg" -o "$out/ladder.md"

printf '\nReports:\n'
printf '  %s\n' "$out"/*.html "$out"/*.svg
