#!/bin/sh
# Builds json-c and SQLite as static libraries for another system than this one, from the sources in packaging/pins, by the tools
# that cmake/TARGET.cmake names. The libraries go to build/deps/static/TARGET. It does nothing if they are built already.
#
# usage: sh packaging/static-deps.sh TARGET
set -eu
# shellcheck source=packaging/lib.sh
. "$(dirname -- "$0")/lib.sh"

TARGET=${1:?usage: sh packaging/static-deps.sh TARGET}
TOOLCHAIN=$ROOT/cmake/$TARGET.cmake
PREFIX=$ROOT/$DEPS/static/$TARGET
TMP=

main() {
  [ -f "$TOOLCHAIN" ] || die "cmake/$TARGET.cmake does not exist; TARGET is the name of such a file: windows or macos"
  lock
  ! wanted | cmp -s - "$PREFIX/.made" || return 0
  use_node
  trap 'rm -rf "$TMP"' EXIT
  TMP=$(mktemp -d "$ROOT/$DEPS/.tmp.XXXXXX")
  rm -rf "$PREFIX"
  say "building json-c and SQLite for $TARGET"
  get json-c-src
  get sqlite-src
  # Builds both at once: one build mostly runs small checks of the compiler, the other compiles one file.
  (LOG=$LOG-json-c && build json-c "$TMP/json-c-src" -DBUILD_TESTING=OFF -DBUILD_APPS=OFF -DDISABLE_WERROR=ON) &
  json_c=$!
  build sqlite "$ROOT/cmake/static" "-DFM_SQLITE=$TMP/sqlite-src/deps/sqlite3"
  wait "$json_c" || exit 1
  wanted >"$PREFIX/.made"
}

# The inputs of a finished build.
wanted() {
  printf '%s\n' "$ROOT"
  grep -E '^(json-c|sqlite)-src ' packaging/pins
  cat "$TOOLCHAIN" cmake/static/CMakeLists.txt
}

# get NAME: unpacks the archive of this line in packaging/pins into $TMP/NAME.
get() {
  pin "$1"
  mkdir "$TMP/$1"
  say "downloading $package $version ($((bytes / 1000)) kB)"
  twice logged "the download" "get_$kind" ||
    die "could not download $file. Check the network and the settings of the registry, then run again"
  verify "$TMP/$file"
  tar -xzf "$TMP/$file" --no-same-owner --strip-components=1 -C "$TMP/$1"
}

get_npm() {
  npm pack "$package@$version" --ignore-scripts --no-update-notifier --loglevel=error --cache "$TMP/cache" \
    --pack-destination "$TMP"
}

# Downloads source packages from this system's apt sources, with separate package lists.
get_apt() {
  mkdir -p "$TMP/apt/parts" "$TMP/apt/lists/partial"
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$list" ] || sed 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$list" >"$TMP/apt/parts/$(basename -- "$list")"
  done
  set -- -q -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$TMP/apt/parts" -o "Dir::State::Lists=$TMP/apt/lists" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=
  apt-get "$@" update && (cd "$TMP" && apt-get "$@" source --download-only --tar-only "$package")
}

# build NAME SOURCE [OPTION...]: installs it to $PREFIX.
build() {
  build_name=$1
  build_source=$2
  shift 2
  logged "cmake ($build_name)" cmake -G Ninja -S "$build_source" -B "$TMP/$build_name" "-DCMAKE_TOOLCHAIN_FILE=$TOOLCHAIN" \
    "-DCMAKE_INSTALL_PREFIX=$PREFIX" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF "$@" || exit 1
  logged "the build of $build_name" cmake --build "$TMP/$build_name" --target install || exit 1
}

main
