#!/usr/bin/env python3
"""Checks that everything that the documents name exists. Three rules for the Markdown files; uses only the standard library.

    names.py [ROOT]       prints "path:line: message" for each finding and a total, exit status 1 if any; check.py does too

    (a) a path or file name between backticks is that of a file or folder of the repository
    (b) an identifier (a_b, aB) or an option (--a-b) between backticks is a word of a file that is not Markdown
    (c) the table of files in helper/README.md names each C file of helper/ and protocol/, and no other

"..." and "*" stand for any text, and so do capitals in a path (NAME.c). Code blocks are not checked.
selftest.py proves that each rule fires.
"""
import fnmatch
import os
import re
import sys

SKIPPED = {".git", "node_modules", "build", "dist", "__pycache__"}
MADE = ("build/", "dist/", "node_modules/")  # folders that a build or an installation makes
OWN = ("tests/style/names.py", "tests/style/selftest.py")  # these pages name things that do not exist
ASKED = "docs/requirements"  # pages whose tables have the users' requests in their left half
TABLE = "helper/README.md"
TABLE_ROOTS = ("helper/", "protocol/")
TABLE_ENDINGS = (".c", ".h", ".cpp", ".hpp")
BYTES_MAX = 1_000_000  # a larger file is treated as data
ENDINGS = ("c h cpp rs py mjs cjs js ts sh md json jsonl cmake in txt svg png pack dict service css html toml"
           " yaml test").split()

# Names from other programs, and of files that a user, a build or a package has.
ELSEWHERE = {
    "_NET_CLOSE_WINDOW": "EWMH",
    "NODE_USE_ENV_PROXY": "Node",
    "asarUnpack": "electron-builder",
    "cache_aware": "vllm-router", "consistent_hash": "vllm-router", "proxy_buffering": "nginx",
    "--no-git-tag-version": "npm", "--summary": "vulkaninfo",
    "llama.cpp": "a project",
    "bin/": "a platform's package", "manifest.json": "a platform's package", "sbom.cdx.json": "a platform's package",
    "fm-engine-llama.json": "a build", "fm-engine-NAME.json": "a build",
    "mcp.json": "VS Code, Cursor", "remote.json": "a user's", "key.txt": "a user's",
    "example.mjs": "a user's",
}

SPAN = re.compile(r"`([^`\n]+)`")
BLOCK = re.compile(r"^```.*?^```", re.M | re.S)
PATH = re.compile(r"(?:\.\./)*[\w.@*-]+(?:/[\w.@*-]+)*(?:/|\.\[\w+\])?")
IDENTIFIER = re.compile(r"(?:\.{3}|\*)?\w+(?:(?:\.{3}|\*)\w*)*")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")
NAMED = re.compile(r"\w_\w|_(?:\.{3}|\*)|(?:\.{3}|\*)_|[a-z]{2}[A-Z]")  # an identifier that is not an English word
PLACEHOLDER = re.compile(r"[A-Z]{3,}(?:_[A-Z]+)*")


class Tree:
    """Everything that exists: files, folders, and the words and options of all files that are not Markdown."""

    def __init__(self, files):
        self.texts = {path: text for path, text in files.items() if path.endswith(".md")}
        self.files = set(files)
        self.folders = {path[:at.start()] for path in files for at in re.finditer("/", path)}
        self.names = self.files | self.folders
        self.ends = {path[at:] for path in self.names for at in [0, *(m.end() for m in re.finditer("/", path))]}
        self.words = set()
        self.options = set()
        for path, text in files.items():
            self.words.update(re.findall(r"\w+", path))
            if text is not None and not path.endswith(".md") and path not in OWN:
                self.words.update(re.findall(r"\w+", text))
                self.options.update(OPTION.findall(text))

    def has_path(self, page, name):
        """Whether a name on that page is a path from the root or from the page's folder, or the end of a path."""
        variants = re.fullmatch(r"(.*\.)\[(\w+)\]", name)
        if variants:
            return all(self.has_path(page, variants.group(1) + letter) for letter in variants.group(2))
        name = name.rstrip("/")
        if name in self.ends or os.path.normpath(os.path.join(os.path.dirname(page), name)) in self.names:
            return True
        pattern = PLACEHOLDER.sub("*", name)
        return pattern != "*" and "*" in pattern and any(fnmatch.fnmatch(end, pattern) for end in self.ends)

    def has_word(self, word):
        if "..." not in word and "*" not in word:
            return word in self.words
        pattern = re.compile(re.sub(r"\.{3}|\*", r"\\w*", word))
        return any(map(pattern.fullmatch, self.words))


def is_path(word):
    """Whether a word can only mean one of our files or folders."""
    return PATH.fullmatch(word) and (word.endswith(("/", "]")) or re.search(rf"\w\.(?:{'|'.join(ENDINGS)})$", word))


def spans(page, text):
    """(line, contents) of each text between backticks. Users' requests may contain any names: they are skipped."""
    text = BLOCK.sub(lambda block: re.sub(r"[^\n]", " ", block.group(0)), text)
    for number, line in enumerate(text.split("\n"), 1):
        if page.startswith(ASKED) and line.startswith("|"):
            cells = line.split("|")
            line = "|".join(cells[len(cells) // 2:])
        for match in SPAN.finditer(line):
            yield number, match.group(1)


def missing(tree, page, span):
    """(a), (b): the names in a text that exist nowhere."""
    for word in re.split(r"[\s,;:=\"'()]+", span):
        if word in ELSEWHERE or os.path.basename(word) in ELSEWHERE:
            continue
        if is_path(word):
            if not word.startswith(MADE) and not tree.has_path(page, word):
                yield word
            continue
        yield from (option for option in OPTION.findall(word) if option not in tree.options)
        for name in IDENTIFIER.findall(word):
            if NAMED.search(name) and not tree.has_word(name):
                yield name


def named_files(tree):
    """(line, text of the cell, files) of each row of the table. A row without names stands for its whole folder."""
    folder = ""
    for number, line in enumerate(tree.texts.get(TABLE, "").split("\n"), 1):
        cells = [cell.strip() for cell in line.split("|")]
        if not line.startswith("|") or len(cells) != 5:
            continue
        first = SPAN.fullmatch(cells[1])
        if cells[1] and not (first and first.group(1).endswith("/")):
            continue  # this is a row of another table
        if first:
            folder = os.path.normpath(os.path.join("" if first.group(1) == "helper/" else "helper", first.group(1)))
        inside = {path for path in tree.files if os.path.dirname(path) == folder}
        names = SPAN.findall(cells[2])
        for name in names:
            path = os.path.normpath(os.path.join(folder, name))
            yield number, name, {path} & tree.names or {each for each in inside if os.path.splitext(each)[0] == path}
        if not names:
            yield number, cells[2], inside


def table_of_files(tree):
    """(c) for the table in helper/README.md."""
    named = set()
    for number, name, paths in named_files(tree):
        named |= paths
        if not paths:
            yield TABLE, number, f"{name}: the row's folder has no such file"
    for path in sorted(tree.files - named if TABLE in tree.texts else ()):
        if path.startswith(TABLE_ROOTS) and path.endswith(TABLE_ENDINGS):
            yield TABLE, 1, f"{path} has no line in the table of files"


def all_findings(files):
    """(path, line, message) for {path: text, or None for a file that is not text}."""
    tree = Tree(files)
    for page, text in sorted(tree.texts.items()):
        for number, span in spans(page, text):
            for name in missing(tree, page, span):
                yield page, number, f"{name}: there is no such name outside of the documents"
    yield from table_of_files(tree)


def read_files(root):
    files = {}
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("build-"))
        for name in names:
            path = os.path.join(folder, name)
            try:
                with open(path, encoding="utf-8") as file:
                    text = file.read() if os.path.getsize(path) <= BYTES_MAX else None
            except (UnicodeDecodeError, OSError):
                text = None
            files[os.path.relpath(path, root).replace(os.sep, "/")] = text
    return files


def main(root):
    files = read_files(root)
    found = list(all_findings(files))
    for path, line, message in found:
        print(f"{path}:{line}: {message}")
    print(f"names: {sum(path.endswith('.md') for path in files)} pages, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")))
