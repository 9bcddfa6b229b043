#!/bin/sh
# Faults between the remote engine and a server, made by third-party programs: toxiproxy (slow, cut, reset, no answer), haproxy
# (TLS, its own errors, a server that is gone), tinyproxy and squid (the `proxy` of the configuration). Installs them (apt as
# root, and toxiproxy by Go at the versions and checksums of go.mod and go.sum), and prints a table.
#
# usage: sh tests/proxies/run.sh [CASE...]      needs build/bin/fm-engine-remote, openssl, and Debian or Ubuntu
set -eu
FM_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=packaging/lib.sh
. "$FM_ROOT/packaging/lib.sh"

TOXIPROXY=$DEPS/toxiproxy/toxiproxy-server

missing=
has go || missing="$missing golang-go"
has openssl || missing="$missing openssl"
[ -x /usr/sbin/haproxy ] || missing="$missing haproxy"
[ -x /usr/bin/tinyproxy ] || missing="$missing tinyproxy-bin"
[ -x /usr/sbin/squid ] || missing="$missing squid"
if [ -n "$missing" ]; then
  say "installing with apt:$missing"
  become_root "$missing"
  run_apt update
  # shellcheck disable=SC2086 # a list of words
  run_apt install --yes --no-install-recommends $missing
fi
if ! cmp -s tests/proxies/go.sum "$DEPS/toxiproxy/go.sum"; then
  say "building toxiproxy"
  mkdir -p "$DEPS/toxiproxy"
  # -mod=readonly: a module that is not in go.sum is an error
  (cd tests/proxies && GOFLAGS='-mod=readonly -buildvcs=false' go build -o "$ROOT/$TOXIPROXY" \
    github.com/Shopify/toxiproxy/v2/cmd/server)
  cp tests/proxies/go.sum "$DEPS/toxiproxy/go.sum"
fi
exec python3 -B tests/proxies/proxies.py build/bin/fm-engine-remote "$TOXIPROXY" "$@"
