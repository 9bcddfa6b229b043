#!/usr/bin/env python3
"""
Packs a fuzz target's corpus into one file, so that a changed corpus is one changed file of the repository.

    pack.py pack FOLDER FILE     packs the files of FOLDER
    pack.py unpack FILE FOLDER   writes each entry to FOLDER, as a file with its name
    pack.py list FILE            prints the name and the length of each entry
    pack.py show FILE NAME       writes one entry to stdout; the beginning of its name is enough

An entry is a line "NAME LENGTH", LENGTH bytes, and a line feed. NAME is the SHA-1 of the bytes in hexadecimal; entries are
sorted by it, so that the same inputs make the same file. replay.c reads this too.
"""

import hashlib
import os
import sys


class Damaged(Exception):
    """The file is not a pack. The text names the file and the place."""


def entries(path):
    """Yields (name, bytes) of each entry."""
    with open(path, "rb") as file:
        while True:
            at = file.tell()
            header = file.readline(64)
            if not header:
                return
            name, _, length = header.decode("latin-1").rstrip("\n").partition(" ")
            body = file.read(int(length)) if length.isdecimal() else b""
            if file.read(1) != b"\n" or hashlib.sha1(body).hexdigest() != name:
                raise Damaged(f"{path}: the entry at byte {at} is damaged; take the file from the repository again")
            yield name, body


def pack(folder, path):
    bodies = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            body = file.read()
        bodies[hashlib.sha1(body).hexdigest()] = body
    with open(path + ".new", "wb") as file:
        for name, body in sorted(bodies.items()):
            file.write(b"%s %d\n%s\n" % (name.encode(), len(body), body))
    os.replace(path + ".new", path)


def unpack(path, folder):
    os.makedirs(folder, exist_ok=True)
    for name, body in entries(path):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(body)


def list_entries(path):
    for name, body in entries(path):
        print(name, len(body))


def show(path, wanted):
    found = [body for name, body in entries(path) if name.startswith(wanted)]
    if len(found) != 1:
        raise Damaged(f"{path}: {len(found)} entries have a name that begins with {wanted}; `list` prints the names")
    sys.stdout.buffer.write(found[0])


COMMANDS = {"pack": (pack, 2), "unpack": (unpack, 2), "list": (list_entries, 1), "show": (show, 2)}


def main(command="", *arguments):
    run, count = COMMANDS.get(command, (None, -1))
    if len(arguments) != count:
        print(__doc__.strip(), file=sys.stderr)
        return 64
    try:
        run(*arguments)
    except (Damaged, OSError) as e:
        print(f"pack.py: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
