"""The tables of docs/requirements-*.md, which list what users asked for, how it works here, and which test shows it. check.py
checks these rules, only with the standard library:

    (a) a row has four cells; the third begins with a word of STATES; "yes" has a test
    (b) each test exists: first a file, below tests/ or from the root, then names in the file, as `name` or "words of a name"
    (c) docs/requirements.md has the number of rows of each table, by state

selftest.py proves that each rule fires.
"""
import os
import re

INDEX = "docs/requirements.md"
HEADER = "| Part | Requirement | Here | Test |"
STATES = ("yes", "other", "not yet", "no")
TOKEN = re.compile(r'`([^`]+)`|"([^"]+)"|the same')
FILE = re.compile(r"[\w./-]+/[\w.-]+\.\w+")


def tables(page):
    """(heading, line of the heading, [(line, cells)]) of each table of requirements on a page."""
    heading, at, rows, inside = "", 0, [], False
    for number, line in enumerate([*page.split("\n"), "## "], 1):
        if line.startswith("## "):
            if rows:
                yield heading, at, rows
            heading, at, rows = line[3:], number, []
        inside = line == HEADER or inside and line.startswith("|")
        if inside and line != HEADER and not line.startswith("|--"):
            rows.append((number, [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]))


def state_of(cell):
    return next((state for state in STATES if re.match(rf"{state}\b", cell)), None)


def wrong_tests(files, cell):
    """The names in a cell that do not exist."""
    text = None
    for match in TOKEN.finditer(cell):
        name = match.group(1) or match.group(2)
        if name and match.group(1) and FILE.fullmatch(name):
            path = next((path for path in ("tests/" + name, name) if path in files), None)
            text = files.get(path)
            if path is None:
                yield f"{name} is no file"
        elif name and (text is None or name not in text):
            yield f"{name} is in no file that is named before it"


def findings_of_row(files, cells):
    if len(cells) != 4 or not all(cells):
        yield "a row has four cells, none of them empty"
        return
    if state_of(cells[2]) is None:
        yield f'"{cells[2]}" begins with none of {", ".join(STATES)}'
    if cells[3] == "-":
        if state_of(cells[2]) == "yes":
            yield "what is met has a test"
        return
    if not TOKEN.search(cells[3]):
        yield f'"{cells[3]}" names no test'
    yield from wrong_tests(files, cells[3])


def counts(rows):
    states = [state_of(cells[2]) for _, cells in rows if len(cells) == 4]
    return [len(states), *(states.count(state) for state in STATES)]


def anchor(heading):
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def all_findings(files):
    """(path, line, message) for {path: text}."""
    index = files.get(INDEX) or ""
    for path in sorted(path for path in files if re.fullmatch(r"docs/requirements-\w+\.md", path)):
        for heading, at, rows in tables(files[path]):
            for number, cells in rows:
                yield from ((path, number, message) for message in findings_of_row(files, cells))
            row = re.search(rf"\]\({os.path.basename(path)}#{anchor(heading)}\) \|(.*)\|$", index, re.M)
            told = [int(number) for number in re.findall(r"\d+", row.group(1))] if row else []
            if told != counts(rows):
                yield path, at, f"{heading}: {counts(rows)} rows (all, {', '.join(STATES)}), but {INDEX} has {told}"
