"""fm-proxy beside llama.cpp's own server and others: the same requests to each, in turns. See compare.sh, which builds and
installs what this needs.

    compare.py [--rounds N] [--rows A,B] [--quick] [--out FILE]

Progress goes to stderr, and the table (Markdown) to stdout; all figures go to FILE (build/compare.json). The exit status is 1
if a row is lost, and 77 if llama-server is not built.
"""

import argparse
import json
import os
import signal
import statistics
import sys
import time

from rows import NODE, Bench, missing, rows

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


class Result:
    """A line with its figures: `ours` and `theirs` of each round (theirs is empty for a line about ours alone)."""

    def __init__(self, row, line, judges=True):
        self.number, self.title, self.line, self.judges = row.number, row.title, line, judges
        self.ours = row.values.get(line.ours, {}).get(line.key, [])
        self.theirs = [] if line.alone else row.values.get(line.peer, {}).get(line.key, [])
        self.ratios = [a / b for a, b in zip(self.ours, self.theirs) if b]
        judged = self.ours if line.alone else self.ratios
        self.value = statistics.median(judged) if judged else None

    @property
    def holds(self):
        """None: nothing is wanted of it."""
        if not self.judges or not self.line.wanted or self.value is None:
            return None
        relation, bound = self.line.wanted
        return self.value >= bound if relation == ">=" else self.value <= bound

    @property
    def times_better(self):
        """How many times better ours is than theirs; None without a figure."""
        ratio = statistics.median(self.ratios) if self.ratios else 0
        return (ratio if self.line.more else 1 / ratio) if ratio else None

    @property
    def name(self):
        ours = "" if self.line.ours == "fm-proxy" else f" ({self.line.ours})"
        return f"{self.title}: {self.line.name}{ours}"


def figure(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def median_of(values, unit=""):
    return f"{figure(statistics.median(values))} {unit}".strip() if values else ""


def wanted_of(line):
    return f"{line.wanted[0]} {line.wanted[1]:.3g}" if line.wanted else ""


def table(results, absent):
    """The rows as Markdown: medians, the median of the rounds' ratios and between which two they lie."""
    out = ["| Row | | ours | other | ratio (least to most) | wanted | |", "|---|---|---|---|---|---|---|"]
    for result in results:
        line = result.line
        other = f"{median_of(result.theirs, line.unit)} ({line.peer})" if result.theirs else ""
        ratio = f"{result.value:.3g} ({min(result.ratios):.3g} to {max(result.ratios):.3g})" if result.ratios else ""
        verdict = {True: "holds", False: "**lost**", None: ""}[result.holds]
        out.append(f"| {result.number} | {result.name} | {median_of(result.ours, line.unit)} | {other} | {ratio} | "
                   f"{wanted_of(line)} | {verdict} |")
    out += [f"| {number} | {title}: {name} | {why} | | | | not counted |" for number, title, name, why in absent]
    return "\n".join(out)


def one_line(result):
    line = result.line
    beside = f" beside {median_of(result.theirs, line.unit)} of {line.peer}, {result.value:.3g}" if result.theirs else ""
    return f"{result.name}: {median_of(result.ours, line.unit)}{beside}"


def prose(result):
    """A line for a row that is lost."""
    line = result.line
    beside = ""
    if result.theirs:
        beside = f" beside {median_of(result.theirs, line.unit)} of {line.peer}, a ratio of {result.value:.3g}"
    return (f"Row {result.number} is lost, {result.name}: {median_of(result.ours, line.unit)}{beside}; "
            f"wanted is {wanted_of(line)}. {line.why}").strip()


def own_cost(measured):
    """What the measuring itself takes, where row 1 was measured."""
    cost = [f"{figures['harness_us_per_token']} µs a token of {name}" for row in measured
            for name, figures in row.notes.items() if "harness_us_per_token" in figures]
    return f"The measuring itself took {', '.join(cost)}." if cost else ""


def tell(text):
    print(f"compare: {text}", file=sys.stderr, flush=True)


def machine():
    name = "a processor without a name"
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        name = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), name)
    return f"{len(os.sched_getaffinity(0))} x {name}, load average {os.getloadavg()[0]:.2f} at the start"


def check(bench):
    """Exits where something that is compared is not there."""
    if not os.access(bench.server_program, os.X_OK):
        print("skipped: llama-server is not built; sh tests/bench/compare.sh builds it")
        sys.exit(77)
    for path in (bench.model, bench.loop_program, os.path.join(bench.binaries, "fm-engine-llama")):
        if not os.path.exists(path):
            print(f"skipped: there is no {os.path.relpath(path, ROOT)}; sh tests/bench/compare.sh makes it")
            sys.exit(77)
    if bench.quick:
        tell("a quick run: its figures say nothing about speed")
    if not bench.has_node:
        tell(f"without {NODE}, which is not installed")


def write(path, conditions, results, measured):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        json.dump({
            **conditions,
            "lines": [{"row": r.number, "name": r.name, "unit": r.line.unit, "peer": r.line.peer, "holds": r.holds,
                       "wanted": wanted_of(r.line), "ours": r.ours, "theirs": r.theirs,
                       "times_better": r.times_better} for r in results],
            "notes": [{"row": row.number, "title": row.title, "of": row.notes} for row in measured if row.notes],
        }, out, indent=1)
        out.write("\n")


def parser():
    options = argparse.ArgumentParser(prog="compare.sh", description="fm-proxy beside llama.cpp's own server and others")
    options.add_argument("--rounds", type=int, default=5, metavar="N", help="of each row (default 5)")
    options.add_argument("--rows", default="", metavar="A,B", help="only these, by their numbers")
    options.add_argument("--quick", action="store_true", help="one round with few tokens: shows that all works, no more")
    options.add_argument("--out", default=os.path.join(ROOT, "build/compare.json"), metavar="FILE", help="where all figures go")
    return options


def chosen_rows(options, text, bench):
    """The rows that `text` names, and what of them can't be measured."""
    every, absent = rows(bench), list(missing(bench))
    known = sorted({row.number for row in every} | {row[0] for row in absent})
    numbers = text.split(",") if text else list(map(str, known))
    for number in numbers:
        if number not in map(str, known):
            options.error(f"--rows has {number!r}; there are {','.join(map(str, known))}")
    return [row for row in every if str(row.number) in numbers], [row for row in absent if str(row[0]) in numbers]


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    options = parser()
    given = options.parse_args()
    if given.rounds < 1:
        options.error(f"--rounds is {given.rounds}; it must be at least 1")
    given.rounds = 1 if given.quick else given.rounds
    bench = Bench(ROOT, given.rounds, given.quick, tell)
    check(bench)
    chosen, absent = chosen_rows(options, given.rows, bench)
    conditions = {"machine": machine(), "rounds": given.rounds, "quick": given.quick}
    tell(conditions["machine"])
    begun = time.monotonic()
    results = []
    for number, row in enumerate(chosen, 1):
        row.run()
        of_row = [result for line in row.lines if (result := Result(row, line, not given.quick)).ours
                  and (line.alone or result.theirs)]
        for result in of_row:  # a run that is stopped keeps what it has measured
            tell(f"  {one_line(result)}")
        results += of_row
        write(given.out, conditions, results, chosen[:number])
    tell(f"done in {time.monotonic() - begun:.0f} s")
    print(f"{table(results, absent)}\n\n{own_cost(chosen)}".rstrip())
    lost = [result for result in results if result.holds is False]
    if lost:
        print("\n" + "\n\n".join(map(prose, lost)))
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main())
