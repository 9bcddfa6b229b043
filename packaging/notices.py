#!/usr/bin/env python3
"""Writes THIRD-PARTY-NOTICES: the licences of what the programs contain or are linked with.

usage: python3 packaging/notices.py [--check]
  --check  writes nothing; exit status 1 where a pinned version is not in the file (needs no downloads)

Run it after a change of packaging/pins or of the Rust library's Cargo.lock, with the downloads in place
(sh packaging/windows.sh). The names and versions come from those two files, the texts from the downloads.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPS = ROOT / "build" / "deps"
VENDOR = DEPS / "rust" / "vendor"
JSON_C = pathlib.Path("/usr/share/doc/libjson-c-dev")
MINGW = pathlib.Path("/usr/share/doc/mingw-w64-x86-64-dev")
CARGO_LOCK = ROOT / "helper" / "engine" / "guide" / "guidance" / "Cargo.lock"
NOTICES = ROOT / "THIRD-PARTY-NOTICES"
TEXT_NAMES = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
RULE = "-" * 80

INTRODUCTION = """\
Third-party notices of fm-proxy

Made by packaging/notices.py from packaging/pins and helper/engine/guide/guidance/Cargo.lock. fm-proxy itself is under the
licence in LICENSE.

The programs for Linux are linked with GNU libc and the compiler's runtime libraries, which are not part of them. Those for
Windows contain mingw-w64's C library, and gcc's runtime libraries under the GCC Runtime Library Exception. Those for macOS
contain LLVM's libc++ (Apache-2.0 WITH LLVM-exception), and llama.cpp of another release than below, under the same licence.
The app for macOS has Apple's C bindings of its Foundation Models (Apache-2.0): FoundationModels-LICENSE.md is in it.

SQLite is in the public domain, and so are stb_image and miniaudio, which llama.cpp contains.
"""


def pinned(name):
    """The package and version of a line of packaging/pins."""
    for line in (ROOT / "packaging" / "pins").read_text().splitlines():
        words = line.split()
        if words and words[0] == name:
            return words[2], words[3]
    sys.exit(f"packaging/pins has no line {name}")


def crates():
    """Name and version of each crate of the Rust library, except the library itself."""
    found = re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"\nsource', CARGO_LOCK.read_text())
    return sorted(found)


def components():
    """The components of the notices: (title, licence as its authors name it, folder of its texts)."""
    package, version = pinned("llama-src")
    rows = [(f"llama.cpp and ggml, as in {package} {version}", "MIT", DEPS / "llama" / "src"),
            (f"JSON for Modern C++, in llama.cpp of {package} {version}", "MIT", DEPS / "llama" / "src" / "licenses"),
            ("json-c", "MIT", JSON_C),
            ("mingw-w64, in the programs for Windows", "ZPL-2.1, MIT and others, by file", MINGW)]
    for name, version in crates():
        manifest = VENDOR / name / "Cargo.toml"
        licence = re.search(r'^license = "([^"]+)"', manifest.read_text(), re.MULTILINE) if manifest.exists() else None
        rows.append((f"{name} {version}", licence[1] if licence else "see its text", VENDOR / name))
    return rows


def texts(folder):
    files = sorted(path for path in folder.iterdir() if path.is_file() and TEXT_NAMES.match(path.name))
    return [path.read_text(errors="replace").strip() for path in files]


def write():
    if not VENDOR.exists() or not MINGW.exists():
        sys.exit("the downloads are not there: run `sh packaging/windows.sh` first")
    rows = components()
    owners = {}
    for title, _, folder in rows:
        for text in texts(folder):
            owners.setdefault(text, []).append(title)
    index = "\n".join(f"  {title}: {licence}" for title, licence, _ in rows)
    parts = [INTRODUCTION, f"They contain these components:\n{index}\n"]
    parts += [f"{RULE}\n" + "\n".join(titles) + f"\n{RULE}\n\n{text}\n" for text, titles in owners.items()]
    NOTICES.write_text("\n".join(parts))
    return 0


def check():
    notices = NOTICES.read_text() if NOTICES.exists() else ""
    package, version = pinned("llama-src")
    wanted = [f"{package} {version}"] + [f"  {name} {version}:" for name, version in crates()]
    wanted += ["  json-c:", "  mingw-w64,"]
    missing = [name.strip(" :,") for name in wanted if name not in notices]
    for name in missing:
        print(f"THIRD-PARTY-NOTICES does not name {name}: run `python3 packaging/notices.py`", file=sys.stderr)
    return 1 if missing else 0


sys.exit(check() if sys.argv[1:] == ["--check"] else write() if not sys.argv[1:] else __doc__)
