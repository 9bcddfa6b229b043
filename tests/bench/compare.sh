#!/bin/sh
# Compares the speed with llama.cpp's own server of the same release, its bare loop and node-llama-cpp: the same requests to each,
# in turns. Prints a table of medians and ratios, and a line for each row that is lost; progress goes to stderr, all figures to
# build/compare.json, and a picture of them to build/compare.svg. Builds llama-server first if it is missing (about five
# minutes on two cores). Then it takes about ten minutes; run nothing else meanwhile.
#
# Only the servers differ: llama-server, fm-engine-llama and node-llama-cpp run on the same prebuilt libraries of llama.cpp.
#
# With --models there are other rows, measured on five files: SmolLM2-135M in Q4_1; Qwen2.5-Coder-0.5B-Instruct in Q4_K_M, and in
# Q8_0 and Q4_0, which llama-quantize makes; Qwen2.5-Coder-1.5B-Instruct in Q4_K_M. tests/models/fetch.py downloads the files (1.6
# GB), once. Five rounds take about two hours on two cores: the larger the model is, the fewer tokens a row has (model_files.py).
# A warm-up round has a quarter of a round's tokens. The prompts have 1,000 tokens up to 0.5B, and 600 with 1.5B, because 1,000
# would take half a minute for each side in each round. With 135M, the prompt beside streams has 2,000 tokens. An interrupted run
# continues where it stopped, unless a commit has changed the helper or the measurement. A row is also not lost if it is within 3%
# of its limit, which is llama.cpp's own loop (llama-batched-bench).
#
# usage: sh tests/bench/compare.sh [--rounds N] [--rows A,B] [--busy N] [--quick]
#        sh tests/bench/compare.sh --models [--files A,B] [--page FILE] [--table] [...]
#   --rounds N   how often each contender of a row has its turn; 5 if absent
#   --rows A,B   only these, by the numbers of the table
#   --busy N     run beside N busy loops. With --models a row is then lost if it is worse than llama-server's, or if it is below
#                0.8 of the speed that a fair scheduler would leave it
#   --quick      one round with few tokens, only to show that everything works
#   --files A,B  only these files, by their names in the table, as '0.5B Q8_0'
#   --page FILE  where the tables go (build/benchmarks.md); their picture is in the same folder
#   --table      measures nothing; writes the tables of what was measured before
set -eu
FM_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=packaging/lib.sh
. "$FM_ROOT/packaging/lib.sh"
# shellcheck source=tests/bench/server.sh
. "$FM_ROOT/tests/bench/server.sh"

case ${1-} in -h | --help) exec python3 -B tests/bench/compare.py --help ;; esac
sh packaging/setup.sh --tests
use_node
lock
build_server
build_native default build bare_llama
# Without the libraries for other machines: npm ci wants all of them, and not every registry has them.
logged "npm install in tests/bench/peers" npm install --prefix tests/bench/peers --ignore-scripts --omit=optional --no-save \
  --no-audit --no-fund --no-update-notifier || say "without node-llama-cpp"
unlock
python3 -B tests/bench/compare.py "$@" && status=0 || status=$?
case " $* " in *" --models "*) exit "$status" ;; esac
[ "$status" -gt 1 ] || python3 -B tests/bench/chart.py build/compare.json build/compare.svg >/dev/null
exit "$status"
