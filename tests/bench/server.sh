# Builds llama-server, llama-bench, llama-batched-bench and llama-quantize of the pinned release into
# build/deps/llama-server/bin, once for each release. Sourced after packaging/lib.sh.
# shellcheck shell=sh
SERVER=$DEPS/llama-server

build_server() {
  if ! cmp -s "$SERVER/.built" "$DEPS/.pin.llama-src"; then
    rm -rf "$SERVER"
  elif [ -x "$SERVER/bin/llama-server" ] && [ -x "$SERVER/bin/llama-quantize" ]; then
    return 0
  fi
  say "building llama-server"
  logged "cmake for llama-server" cmake -G Ninja -S tests/bench/server -B "$SERVER" -DFM_DEPS="$ROOT/$DEPS" &&
    logged "the build of llama-server" cmake --build "$SERVER" && cp "$DEPS/.pin.llama-src" "$SERVER/.built"
}
