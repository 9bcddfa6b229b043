# Builds llama-server, llama-bench and llama-batched-bench of the pinned release into build/deps/llama-server/bin, once for a
# release. Sourced after packaging/lib.sh.
# shellcheck shell=sh
SERVER=$DEPS/llama-server

build_server() {
  ! cmp -s "$SERVER/.built" "$DEPS/.pin.llama-src" || [ ! -x "$SERVER/bin/llama-server" ] || return 0
  say "building llama-server"
  rm -rf "$SERVER"
  logged "cmake for llama-server" cmake -G Ninja -S tests/bench/server -B "$SERVER" -DFM_DEPS="$ROOT/$DEPS" &&
    logged "the build of llama-server" cmake --build "$SERVER" && cp "$DEPS/.pin.llama-src" "$SERVER/.built"
}
