"""Compares fm-proxy with llama.cpp's own server and others: the same requests to each, in turns. See compare.sh, which builds
and installs what this needs.

    compare.py [--rounds N] [--rows A,B] [--quick] [--busy N] [--out FILE]
    compare.py --models [--files A,B] [--table] [--page FILE] ...

Progress goes to stderr, and the table (Markdown) to stdout; all figures go to FILE (build/compare.json). The exit status is 1 if
a row is lost (misses its target), and 77 if llama-server is not built. For --models see models.py.
"""

import argparse
import json
import os
import signal
import sys
import time

import models
from processes import Loops
from report import ROOT, Result, check, chosen, machine, one_line, prose, table, tell, wanted_of
from rows import Bench, missing, rows


def own_cost(measured):
    """A sentence about the cost of the measuring itself, if row 1 was measured."""
    cost = [f"{figures['harness_us_per_token']} µs a token of {name}" for row in measured
            for name, figures in row.notes.items() if "harness_us_per_token" in figures]
    return f"The measuring itself took {', '.join(cost)}." if cost else ""


def write(path, conditions, results, measured):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        json.dump({
            **conditions,
            "lines": [{"row": r.number, "name": r.name, "unit": r.line.unit, "peer": r.line.peer, "holds": r.holds,
                       "wanted": wanted_of(r.line), "ours": r.ours, "theirs": r.theirs,
                       "times_better": r.times_better, "processor_ms": r.processor} for r in results],
            "notes": [{"row": row.number, "title": row.title, "of": row.notes} for row in measured if row.notes],
        }, out, indent=1)
        out.write("\n")


def parser():
    options = argparse.ArgumentParser(prog="compare.sh", description="fm-proxy beside llama.cpp's own server and others")
    options.add_argument("--rounds", type=int, default=5, metavar="N", help="of each row (default 5)")
    options.add_argument("--rows", default="", metavar="A,B", help="only these, by their numbers")
    options.add_argument("--busy", type=int, default=0, metavar="N", help="beside so many busy loops")
    options.add_argument("--quick", action="store_true", help="one round with few tokens: shows that all works, no more")
    options.add_argument("--out", default=os.path.join(ROOT, "build/compare.json"), metavar="FILE", help="where all figures go")
    models.add_options(options)
    return options


def chosen_rows(options, text, bench):
    """Returns the rows that `text` names, and which of these rows can't be measured."""
    every, absent = rows(bench), list(missing(bench))
    known = sorted({row.number for row in every} | {row[0] for row in absent})
    numbers = chosen(options, "--rows", text, list(map(str, known)))
    return [row for row in every if str(row.number) in numbers], [row for row in absent if str(row[0]) in numbers]


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that started programs are ended
    options = parser()
    given = options.parse_args()
    if given.rounds < 1:
        options.error(f"--rounds is {given.rounds}; it must be at least 1")
    if given.busy < 0:
        options.error(f"--busy is {given.busy}; it must be at least 0")
    if given.table and not given.models:
        options.error("--table is for --models")
    given.rounds = 1 if given.quick else given.rounds
    loops = Loops(given.busy)
    if given.table:
        return models.compare(options, given, loops)
    with loops:
        return (models.compare if given.models else compare)(options, given, loops)


def compare(options, given, loops):
    bench = Bench(ROOT, given.rounds, given.quick, tell, loops=loops)
    check(bench)
    measured, absent = chosen_rows(options, given.rows, bench)
    conditions = {"machine": machine(), "rounds": given.rounds, "quick": given.quick, "busy": given.busy}
    tell(conditions["machine"])
    begun = time.monotonic()
    results = []
    for number, row in enumerate(measured, 1):
        row.run(range(given.rounds), row.take)
        of_row = [result for line in row.lines if (result := Result(row, line, not given.quick)).ours
                  and (line.alone or result.theirs)]
        for result in of_row:  # if a run is stopped, the results so far are kept
            tell(f"  {one_line(result)}")
        results += of_row
        write(given.out, conditions, results, measured[:number])
    tell(f"done in {time.monotonic() - begun:.0f} s")
    print(f"{table(results, absent)}\n\n{own_cost(measured)}".rstrip())
    lost = [result for result in results if result.holds is False]
    if lost:
        print("\n" + "\n\n".join(map(prose, lost)))
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main())
