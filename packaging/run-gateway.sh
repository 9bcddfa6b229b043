#!/bin/sh
# Starts the assistant on this machine (fm-gateway), prints a link that logs a browser in, and opens it where there is a desktop.
# The first run installs, downloads and builds what is missing (packaging/setup.sh --gateway); later ones start at once. If a
# gateway of this user already runs, the script only makes a new link.
#
# usage: sh packaging/run-gateway.sh [--background | --install-service] [--folder FOLDER] [--no-open] [-- OPTION...]
set -eu

usage() {
  cat <<'END'
usage: sh packaging/run-gateway.sh [--background | --install-service] [--folder FOLDER] [--no-open] [-- OPTION...]

Starts an assistant on this machine, and prints a link to its page. It runs until Ctrl-C.

  --background       it goes on when this command has ended
  --install-service  as a service of the user (systemd), which starts at each login
  --folder FOLDER    where its commands run; its agent is in FOLDER/workspace (default: ~/jarvis)
  --no-open          print the link, but open no browser
  --help             this text
  -- OPTION...       options of fm-gateway; fm-gateway --help lists them

Its settings and chats are in ~/.proj-jarvis.
END
}

wrong_usage() {
  printf 'fm-gateway: %s\n' "$1" >&2
  usage >&2
  exit 64
}

mode=foreground
folder=${HOME:?HOME is not set}/jarvis
open=yes
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --background) mode=background ;;
    --install-service) mode=service ;;
    --folder) [ $# -gt 1 ] || wrong_usage "--folder needs a path"
      folder=$2
      shift ;;
    --folder=*) folder=${1#--folder=} ;;
    --no-open) open= ;;
    --) shift && break ;;
    *) wrong_usage "unknown option $1" ;;
  esac
  shift
done
[ "$mode" != service ] || [ $# -eq 0 ] || wrong_usage "the service takes no options: edit its file when it is there"
case $folder in
  /*) ;;
  *) folder=$PWD/$folder ;;
esac

sh "$(dirname -- "$0")/setup.sh" --gateway
# shellcheck source=packaging/lib.sh
. "$(dirname -- "$0")/lib.sh"
BIN=$ROOT/build/bin
STATE=${PROJ_JARVIS_HOME:-$HOME/.proj-jarvis}
child=

main() {
  if link=$("$BIN/fm-gateway" --link 2>/dev/null); then
    say "a gateway runs already with $STATE; this is a new link to it"
    show_link
    exit 0
  fi
  make_folder
  case $mode in
    foreground) run_here "$@" ;;
    background) run_behind "$@" ;;
    service) install_service ;;
  esac
}

# Never changes an agent that the user made.
make_folder() {
  mkdir -p "$folder"
  [ -e "$folder/workspace" ] || cp -R gateway/workspace "$folder/workspace"
}

run_here() {
  detach=
  start "$@" >/dev/null # drops the gateway's line about its address: the link below is better
  trap 'kill -TERM "$child" 2>/dev/null || :' INT TERM HUP
  wait_until_up
  show_link
  say "it runs until Ctrl-C. Another link: $BIN/fm-gateway --link"
  status=0
  wait "$child" || status=$?
  while kill -0 "$child" 2>/dev/null; do # a signal ends `wait`, not the gateway
    status=0
    wait "$child" || status=$?
  done
  exit "$status"
}

run_behind() {
  mkdir -p "$STATE"
  chmod 700 "$STATE"
  log=$STATE/gateway.log
  detach=nohup
  start "$@" >>"$log" 2>&1
  wait_until_up
  show_link
  say "it runs as process $child, with its log in $log. To end it: kill $child"
}

# start OPTION...: starts the gateway. With `detach=nohup`, it goes on when the terminal closes.
start() {
  (
    cd "$folder"
    exec ${detach:+"$detach"} "$BIN/fm-gateway" --embedding-models "$ROOT/build/models-embedding" "$@"
  ) </dev/null &
  child=$!
}

# Waits until the gateway listens. If it ends before that, this script ends with its status. The gateway has printed the reason.
wait_until_up() {
  until link=$("$BIN/fm-gateway" --link 2>/dev/null); do
    kill -0 "$child" 2>/dev/null || {
      status=0
      wait "$child" || status=$?
      [ "$mode" != background ] || tail -n 1 "$log" >&2
      exit "$status"
    }
    sleep 0.1
  done
}

show_link() {
  printf '%s\n' "$link"
  say "the link logs a browser in, once, within 60 seconds"
  [ -n "$open" ] && has xdg-open && [ -n "${DISPLAY-}${WAYLAND_DISPLAY-}" ] || return 0
  xdg-open "$link" >/dev/null 2>&1 || say "no browser could be opened: open the link yourself"
}

install_service() {
  systemctl --user show-environment >/dev/null 2>&1 ||
    die "there is no systemd for this user here. Use --background instead"
  units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
  mkdir -p "$units"
  sed -e "s|@BIN@|$(quoted "$BIN")|g" -e "s|@MODELS@|$(quoted "$ROOT/build/models-embedding")|g" \
    -e "s|@FOLDER@|$(for_sed "$folder")|g" packaging/fm-gateway.service >"$units/fm-gateway.service.new"
  mv "$units/fm-gateway.service.new" "$units/fm-gateway.service"
  systemctl --user daemon-reload
  systemctl --user enable --now fm-gateway.service >&2 ||
    die "the service did not start; journalctl --user -u fm-gateway says why"
  until link=$("$BIN/fm-gateway" --link 2>/dev/null); do
    systemctl --user is-active --quiet fm-gateway.service ||
      die "the service ended; journalctl --user -u fm-gateway says why"
    sleep 0.1
  done
  show_link
  say "to stop it: systemctl --user disable --now fm-gateway"
}

# quoted PATH: escapes a path for double quotes in a command of a unit file, and for the sed command that writes the file.
quoted() { for_sed "$(printf '%s' "$1" | sed -e 's/\$/$$/g' -e 's/[\\"]/\\&/g')"; }

for_sed() {
  case $1 in
    *'
'*) die "a service can't have a newline in its path: $1" ;;
  esac
  printf '%s' "$1" | sed -e 's/%/%%/g' -e 's/[\\&|]/\\&/g'
}

main "$@"
