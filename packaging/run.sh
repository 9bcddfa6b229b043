#!/bin/sh
# Asks the local model and streams its answer to stdout, through the npm package. The first run installs, downloads and builds
# what is missing for that (packaging/setup.sh --text); later runs start at once and need no network. If the reader of the answer
# closes its end, as `| head` does, the script ends with status 141 and prints no error.
#
# usage: sh packaging/run.sh [--model PATH] PROMPT
set -eu

usage() {
  cat <<'END'
usage: sh packaging/run.sh [--model PATH] PROMPT

Asks a language model on this machine, and prints its answer as it is produced.

  --model PATH  a GGUF file to use instead of the default model (SmolLM2-135M-Instruct)
  --help        this text

example: sh packaging/run.sh "Why is the sky blue?"
END
}

wrong_usage() {
  printf 'fm-proxy: %s\n' "$1" >&2
  usage >&2
  exit 64
}

set_model() {
  [ -f "$1" ] || wrong_usage "there is no file $1"
  case $1 in
    /*) FM_PROXY_MODEL=$1 ;;
    *) FM_PROXY_MODEL=$PWD/$1 ;;
  esac
  export FM_PROXY_MODEL
}

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --model) [ $# -gt 1 ] || wrong_usage "--model needs a path"
      set_model "$2"
      shift ;;
    --model=*) set_model "${1#--model=}" ;;
    --) shift && break ;;
    -*) wrong_usage "unknown option $1" ;;
    *) break ;;
  esac
  shift
done
[ -n "$*" ] || wrong_usage "the prompt is missing"

sh "$(dirname -- "$0")/setup.sh" --text
# shellcheck source=packaging/lib.sh
. "$(dirname -- "$0")/lib.sh"
use_node
exec node js-shim/examples/openai-stream.mjs "$*"
