#!/bin/sh
# Shows that the commands work from nothing: makes a bare Debian 12 root with debootstrap (no compiler, no Node), clones this
# repository's last commit into it, and runs there packaging/run.sh, packaging/run.sh again without a network, the rest of
# README's first hour (tests/js/first-hour.test.mjs), packaging/run-gateway.sh until its page answers, packaging/run-system.sh,
# and packaging/test.sh. The conditions are hard: the clone is in root's home, which no other user may enter. The root is not a
# mount point, and has neither /sys nor /etc/hosts. With --container the conditions are Docker's defaults instead
# (packaging/container.py). The settings for the network (mirror, proxies, certificates, registries) are copied from the host.
# Needs root, debootstrap and a network; takes about 2 GB of disk. With --deb the root gets the Debian packages of build/deb and
# the model of build/models instead of a clone.
#
# usage: sh packaging/bare-root.sh [--root DIR] [--keep] [--fast] [--no-tests] [--container]
#                                    [--gateway | --system | --deb]
#   --root DIR   where the root is made (default: ${TMPDIR:-/tmp}/fm-proxy-bare); DIR.base.tar keeps the bare system for
#                the next time
#   --keep       leave the root behind
#   --fast       pass --fast to packaging/test.sh
#   --no-tests   leave packaging/test.sh out
#   --container  as in a container, with its rights (needs python3)
#   --gateway    only packaging/run-gateway.sh, as the first command of all
#   --system     only packaging/run-system.sh
#   --deb        only the Debian packages: checks them with lintian, installs them with apt, uses each as a user,
#                removes them, and looks for what they left. Needs lintian, and build/deb (packaging/deb/pack.mjs)
set -eu

PROMPT='Why is the sky blue?'
# The lines that the first run may print besides the answer.
FIRST_LINES='fm-proxy: (installing with apt: .*|downloading .* \([0-9]+ MB\)|building \(text\)|\[[0-9]+/[0-9]+\] after [0-9:]+'
FIRST_LINES="$FIRST_LINES|installing the npm packages of js-shim|compiling js-shim)"
# The gateway ends with the namespace of this command. Checks that its link leads to the page, and that the browser for its tool
# exists.
GATEWAY='set -e
  export PROJ_JARVIS_PORT=0
  link=$(sh packaging/run-gateway.sh --background)
  echo "$link"
  python3 - "${link%%#*}" <<END
import sys, urllib.request
page = urllib.request.urlopen(sys.argv[1]).read()
assert b"<jarvis-app" in page, page
print(len(page), "bytes of the page;", urllib.request.urlopen(sys.argv[1] + "health").read().decode())
END
  chromium --version'
# Checks that the printed configuration starts a server that answers.
SYSTEM='set -e
  sh packaging/run-system.sh >/tmp/configuration
  cat /tmp/configuration
  python3 - <<END
import json, subprocess
how = json.load(open("/tmp/configuration"))["mcpServers"]["desktop"]
hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}}
run = subprocess.run([how["command"], *how["args"]], input=json.dumps(hello) + "\n", capture_output=True, text=True, check=True)
print(json.loads(run.stdout)["result"]["serverInfo"])
END'
# Uses each program as a user who is not root. The gateway's page is read to its end.
# shellcheck disable=SC2016 # expanded by the inner shell
DEB_USE='set -eu
  export HOME=/tmp/user FM_PROXY_NO_KV_CACHE_FILES=1 PROJ_JARVIS_PORT=0
  for program in fm-proxy fm-gateway fm-system; do
    "$program" --version
    [ "$("$program" --help | wc -l)" -gt 10 ]
  done
  mkfifo "$HOME/in" "$HOME/out"
  fm-proxy sessions --log-level error <"$HOME/in" >"$HOME/out" &
  exec 3>"$HOME/in" 4<"$HOME/out"
  echo "{\"command\":\"open-session\"}" >&3
  read -r session <&4
  session=${session#*session_id\":\"}
  echo "{\"command\":\"message\",\"session_id\":\"${session%%\"*}\",\"prompt\":\"Say hello.\",\"content\":\"Hello\",
    \"output_format\":\"text\"}" | tr -d "\n" >&3
  echo >&3
  read -r answer <&4
  echo "fm-proxy: $answer"
  case $answer in *\"ok\":true*) ;; *) exit 1 ;; esac
  exec 3>&-
  wait
  mkdir "$HOME/jarvis"
  cd "$HOME/jarvis"
  cp -R /usr/share/fm-gateway/workspace .
  fm-gateway &
  until link=$(fm-gateway --link 2>/dev/null); do
    kill -0 $!
    sleep 0.1
  done
  port=${link#*127.0.0.1:}
  exec 5<>"/dev/tcp/127.0.0.1/${port%%/*}"
  printf "GET / HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n" "${port%%/*}" >&5
  page=$(cat <&5)
  echo "fm-gateway: ${#page} bytes of the page"
  case $page in *"<jarvis-app"*) ;; *) exit 1 ;; esac
  kill $!
  wait
  told=$(echo "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",
    \"capabilities\":{},\"clientInfo\":{\"name\":\"bare\",\"version\":\"1\"}}}" | tr -d "\n" | fm-system)
  echo "fm-system: $told" | head -c 200
  echo
  case $told in *\"serverInfo\"*) ;; *) exit 1 ;; esac'
# Tests the Debian packages. Files that apt and dpkg keep for every removed package are ignored.
# shellcheck disable=SC2016
DEB='set -eu
  files() {
    find / -xdev \( -path /proc -o -path /dev -o -path /host -o -path /root -o -path /tmp -o -path /var/cache \
      -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/log \) -prune -o -print | sort
  }
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  files >/tmp/before
  apt-get install -y -qq --no-install-recommends ./*.deb >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
  dpkg -l "fm-*" | tail -n 3
  files | comm -13 /tmp/before - | wc -l
  cp ./*.gguf /var/lib/fm-proxy/models
  mkdir /tmp/user
  chown 1000:1000 /tmp/user
  setpriv --reuid=1000 --regid=1000 --clear-groups bash -c "$1"
  rm /var/lib/fm-proxy/models/*.gguf
  apt-get remove -y -qq fm-system >/tmp/log
  [ ! -e /usr/bin/fm-system ] && [ -x /usr/bin/fm-gateway ]
  apt-get purge -y -qq --autoremove fm-proxy >/tmp/log # and with it fm-gateway
  files >/tmp/after
  comm -13 /tmp/before /tmp/after >/tmp/left
  cat /tmp/left
  [ ! -s /tmp/left ] && echo "nothing is left"'
SUITE=bookworm
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
root=${TMPDIR:-/tmp}/fm-proxy-bare
keep=
tests=yes
prompts=yes
gateway=yes
system=yes
container=
deb=
test_options=

say() { printf 'bare-root: %s\n' "$*" >&2; }

die() {
  say "$*"
  exit 1
}

main() {
  read_options "$@"
  [ "$(id -u)" = 0 ] || die "needs root: run it as root, or with sudo"
  command -v debootstrap >/dev/null || die "needs debootstrap: apt-get install debootstrap"
  [ ! -e "$root" ] || die "$root exists; delete it or choose another with --root"
  trap clean_up EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  make_root
  take_over_network
  chmod 700 "$root/root"
  if [ -n "$deb" ]; then
    try_packages
    exit
  fi
  git clone --quiet "file://$here" "$root/root/fm-proxy" || die "could not clone $here"
  run_commands
}

read_options() {
  while [ $# -gt 0 ]; do
    case $1 in
      --root) root=$(realpath -m -- "${2:?--root needs a folder}") && shift ;;
      --keep) keep=yes ;;
      --fast) test_options=--fast ;;
      --no-tests) tests= ;;
      --container) container=yes ;;
      --gateway) tests='' prompts='' system='' ;;
      --system) tests='' prompts='' gateway='' ;;
      --deb) deb=yes ;;
      *) say "unknown option $1; the comment in $0 lists them" && exit 64 ;;
    esac
    shift
  done
}

# Each mount is in the mount namespace of its command (see inside), so no mount can remain here.
clean_up() {
  if [ -n "$keep" ]; then
    say "left behind: $root"
  else
    rm -rf --one-file-system "$root"
  fi
}

make_root() {
  if [ ! -f "$root.base.tar" ]; then
    say "debootstrap of $SUITE"
    debootstrap --variant=minbase "$SUITE" "$root" "$(mirror)" >"$root.log" 2>&1 || die "debootstrap failed, see $root.log"
    tar -C "$root" -cf "$root.base.tar.new" .
    mv "$root.base.tar.new" "$root.base.tar"
  else
    mkdir -p "$root"
    tar -C "$root" -xf "$root.base.tar"
  fi
  for tool in gcc cc make cmake node npm python3 git; do
    [ ! -e "$root/usr/bin/$tool" ] || die "the root isn't bare: it has $tool"
  done
}

# The host's own Debian mirror.
mirror() {
  # shellcheck disable=SC2016 # apt expands it
  mirror_uri=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $SUITE" "Origin: Debian" | head -n 1)
  [ -n "$mirror_uri" ] || die "the host's apt knows no mirror with $SUITE; run apt-get update first"
  printf '%s\n' "$mirror_uri"
}

# Writes the host's network settings into the root, and /host/enter, which sets the environment and starts a command.
take_over_network() {
  cp -L /etc/resolv.conf "$root/etc/"
  [ -z "$container" ] || printf '%s\n' '127.0.0.1 localhost' '::1 localhost ip6-localhost ip6-loopback' >"$root/etc/hosts"
  apt-config dump | grep -iE '^Acquire::(http|https|ftp|retries)' >"$root/etc/apt/apt.conf.d/99host" || :
  # A Debian installation has the security updates among its sources. debootstrap's minimum lacks them.
  echo "deb $(mirror | sed 's,/*$,-security,') $SUITE-security main" >"$root/etc/apt/sources.list.d/security.list"
  mkdir -p "$root/host"
  pass HOME /root
  pass LANG C.UTF-8
  pass PATH /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  settings='https?_proxy|all_proxy|no_proxy|pip_[a-z_]+|npm_config_[a-z_:/.@-]+|cargo_[a-z_]+'
  env | grep -iE "^($settings)=" | while IFS='=' read -r key setting; do
    pass "$key" "$setting"
  done
  take_over_certificates
  take_over_registries
  printf '%s\n' 'cd /root/fm-proxy' 'exec "$@"' >>"$root/host/enter"
}

# pass NAME VALUE: sets a variable inside the root. A file that VALUE names is copied. A variable that names a folder is left out,
# because the folder does not exist there.
pass() {
  value=$2
  if [ -f "$value" ]; then
    value=/host/$(printf '%s' "$2" | tr / _)
    cp -L "$2" "$root$value"
  elif [ -d "$value" ] && [ "$1" != HOME ]; then
    return 0
  fi
  printf "export %s='%s'\n" "$1" "$(printf '%s' "$value" | sed "s/'/'\\\\''/g")" >>"$root/host/enter"
}

take_over_certificates() {
  bundle=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
  [ -f "$bundle" ] || return 0
  for key in SSL_CERT_FILE NODE_EXTRA_CA_CERTS PIP_CERT REQUESTS_CA_BUNDLE npm_config_cafile CARGO_HTTP_CAINFO; do
    pass "$key" "$bundle"
  done
}

take_over_registries() {
  if command -v npm >/dev/null; then
    for key in registry proxy https-proxy noproxy; do
      setting=$(npm config get "$key" 2>/dev/null) || continue
      case $setting in
        '' | null | undefined) ;;
        *) pass "npm_config_$(printf '%s' "$key" | tr - _)" "$setting" ;;
      esac
    done
  fi
  command -v python3 >/dev/null || return 0
  python3 -m pip config list 2>/dev/null | sed -n "s/^global\.\([a-z-]*\)='\(.*\)'\$/\1 \2/p" | while read -r key setting; do
    case $key in
      index-url | extra-index-url | proxy | trusted-host)
        pass "PIP_$(printf '%s' "$key" | tr a-z- A-Z_)" "$setting" ;;
    esac
  done
}

try_packages() {
  command -v lintian >/dev/null || die "needs lintian: apt-get install lintian"
  mkdir "$root/root/fm-proxy"
  cp "$here"/build/deb/*.deb "$here"/build/models/*.gguf "$root/root/fm-proxy" ||
    die "run \`sh packaging/setup.sh\`, then \`node packaging/deb/pack.mjs\`"
  lintian --allow-root --fail-on error,warning "$root"/root/fm-proxy/*.deb || die "lintian finds faults in the packages"
  say "lintian: no errors, no warnings"
  step "the packages" inside bash -c "$DEB" bash "$DEB_USE"
  say "all passed"
}

run_commands() {
  if [ -n "$prompts" ]; then
    step "first run" first_run
    step "second run, without a network" offline sh packaging/run.sh "$PROMPT"
    step "the first hour" inside build/deps/node/bin/node --test --test-reporter=spec tests/js/first-hour.test.mjs
  fi
  [ -z "$gateway" ] || step "the gateway" inside sh -c "$GATEWAY"
  [ -z "$system" ] || step "the desktop" inside sh -c "$SYSTEM"
  [ -z "$tests" ] || step "tests" inside sh packaging/test.sh $test_options
  say "all passed"
}

first_run() {
  inside sh packaging/run.sh "$PROMPT" 2>"$root/host/lines" && first_status=0 || first_status=$?
  cat "$root/host/lines" >&2
  if grep -vxE "$FIRST_LINES" "$root/host/lines" >&2; then
    say "first run: the line above was not expected"
    return 1
  fi
  return "$first_status"
}

# step TEXT COMMAND...: shows when the command's first output came and how long it took.
step() {
  say "== $1"
  step_text=$1
  shift
  start=$(date +%s%N)
  {
    "$@" && status=0 || status=$?
    echo "$status" >"$root/host/status"
  } | {
    first=$(dd bs=1 count=1 2>/dev/null && printf x) # the x keeps a newline
    first=${first%x}
    [ -n "$first" ] || say "$step_text: no output"
    first_at=$(date +%s%N)
    printf '%s' "$first"
    cat
    whole=$((($(date +%s%N) - start) / 1000000))
    say "$step_text: first output after $(((first_at - start) / 1000000)) ms, all of it after $whole ms"
  }
  read -r status <"$root/host/status"
  [ "$status" = 0 ] || die "$step_text failed with status $status"
}

# inside COMMAND...: runs a command in the root, in new namespaces for mounts and processes. Both end with the command.
inside() { in_root '' "$@"; }

offline() { in_root --net "$@"; }

in_root() {
  net=$1
  shift
  if [ -n "$container" ]; then
    set -- python3 -B "$here/packaging/container.py" "$root" /bin/sh /host/enter "$@"
  else
    # shellcheck disable=SC2016 # expanded by the inner shell
    set -- sh -eu -c '
      mount -t proc proc "$1/proc"
      mount --rbind /dev "$1/dev"
      exec env -i "$(command -v chroot)" "$@"' sh "$root" sh /host/enter "$@"
  fi
  unshare --mount --pid --fork --kill-child --propagation private ${net:+"$net"} "$@" </dev/null
}

main "$@"
