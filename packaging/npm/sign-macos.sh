#!/bin/sh
# Signs fm-proxy.app of the package for macOS with a Developer ID and the hardened runtime, has Apple notarise it, and attaches
# Apple's ticket. Without that, Gatekeeper does not let the helper start on a user's Mac. It needs no entitlement.
# packaging/README.md says how to get the certificate and the profile.
#
# usage: sh packaging/npm/sign-macos.sh [--dry-run] --identity NAME --profile NAME FOLDER/fm-proxy.app
#   --identity NAME  the certificate "Developer ID Application: ..." in the keychain
#   --profile NAME   the account at Apple, as `xcrun notarytool store-credentials` has put it into the keychain
#   --dry-run        prints the commands and runs none; works on each system
set -eu

identity=
profile=
dry_run=
app=
work=

say() { printf 'sign-macos: %s\n' "$*" >&2; }

die() {
  say "$*"
  exit 1
}

main() {
  read_options "$@"
  check_app
  trap clean_up EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  work=${TMPDIR:-/tmp}/fm-proxy-sign
  [ -n "$dry_run" ] || work=$(mktemp -d)
  sign_all
  notarise
  run spctl --assess --type execute --verbose "$app" || die "Gatekeeper refuses $app; see above"
}

read_options() {
  while [ $# -gt 0 ]; do
    case $1 in
      --identity) identity=${2:?--identity needs a name} && shift ;;
      --profile) profile=${2:?--profile needs a name} && shift ;;
      --dry-run) dry_run=yes ;;
      -*) say "unknown option $1; the comment in $0 lists them" && exit 64 ;;
      *) app=${1%/} ;;
    esac
    shift
  done
  [ -n "$identity" ] && [ -n "$profile" ] && [ -n "$app" ] || {
    say "--identity, --profile and the app are needed; the comment in $0 has more"
    exit 64
  }
  [ -n "$dry_run" ] || for tool in codesign ditto spctl xcrun; do
    command -v "$tool" >/dev/null || die "there is no $tool: this needs a Mac with Xcode's command line tools, or --dry-run"
  done
}

clean_up() { [ -n "$dry_run" ] || rm -rf "$work"; }

# Before anything is changed, refuses files that would be signed wrongly or lost in an npm package.
check_app() {
  for file in Info.plist MacOS/fm-proxy; do
    [ -f "$app/Contents/$file" ] || die "$app has no Contents/$file"
  done
  links=$(find "$app" -type l)
  [ -z "$links" ] || die "npm packages have no symbolic links; replace these:" "$links"
  find "$app" -type f | LC_ALL=C sort | while IFS= read -r file; do
    check_file "$file"
  done
}

check_file() {
  case ${1#"$app/Contents/"} in
    MacOS/* | Frameworks/*)
      is_code "$1" || die "$1 is no program or library. codesign would put its signature into an attribute, which npm" \
        "packages don't have. Move it to Contents/Resources" ;;
    *)
      ! is_code "$1" || die "$1 would not be signed. Move it to Contents/MacOS or Contents/Frameworks" ;;
  esac
}

# Mach-O, for one processor or for several.
is_code() {
  case $(od -An -tx1 -N4 "$1" | tr -d ' ') in
    cffaedfe | cafebabe) return 0 ;;
  esac
  return 1
}

# Signs from the inside out, because the app's signature covers the signatures of its parts.
sign_all() {
  for folder in Frameworks MacOS; do
    [ -d "$app/Contents/$folder" ] || continue
    find "$app/Contents/$folder" -type f ! -path "$app/Contents/MacOS/fm-proxy" | LC_ALL=C sort |
      while IFS= read -r file; do
        sign "$file"
      done
  done
  sign "$app"
  run codesign --verify --deep --strict --verbose=2 "$app" || die "the signature is not valid; see above"
}

sign() {
  run codesign --force --options runtime --timestamp --sign "$identity" "$1" </dev/null || die "could not sign $1; see above"
}

notarise() {
  run ditto -c -k --keepParent "$app" "$work/fm-proxy.zip" || die "could not pack $app; see above"
  run xcrun notarytool submit "$work/fm-proxy.zip" --keychain-profile "$profile" --wait ||
    die "Apple did not notarise it. For the reasons, run: xcrun notarytool log ID --keychain-profile $profile"
  run xcrun stapler staple "$app" ||
    die "there is no ticket, so Apple did not accept it. For the reasons, run:" \
      "xcrun notarytool log ID --keychain-profile $profile"
  run xcrun stapler validate "$app" || die "the ticket is not valid; see above"
}

# run COMMAND...: runs a command. With --dry-run, prints it in a form that a shell can run.
run() {
  if [ -z "$dry_run" ]; then
    "$@"
    return
  fi
  printed=
  for word; do
    case $word in
      *[!A-Za-z0-9_./=:-]*) word="'$(printf '%s' "$word" | sed "s/'/'\\\\''/g")'" ;;
    esac
    printed="$printed${printed:+ }$word"
  done
  printf '%s\n' "$printed"
}

main "$@"
