"""Writes the output of compare.py and models.py about the measured rows; has other shared parts too."""

import os
import statistics
import sys

from rows import NODE, OURS, PROCESSOR

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
NEAR = 0.97  # part of the figure of llama.cpp's own loop from which on nothing is left to gain, so that a row can't be lost


class Result:
    """A line with its figures: `ours` and `theirs` of each round (theirs is empty for a line that is only about ours)."""

    def __init__(self, row, line, judges=True):
        self.number, self.title, self.line, self.judges = row.number, row.title, line, judges
        self.ours = row.values.get(OURS, {}).get(line.key, [])
        self.theirs = [] if line.alone else row.values.get(line.peer, {}).get(line.key, [])
        self.ratios = [a / b for a, b in zip(self.ours, self.theirs) if b]
        judged = self.ours if line.alone else self.ratios
        self.value = statistics.median(judged) if judged else None
        limits = row.values.get(line.limit, {}).get(line.key, [])
        self.of_limit = statistics.median(a / b for a, b in zip(self.ours, limits)) if self.ours and limits else None
        self.processor = [row.values.get(who, {}).get(PROCESSOR, []) for who in (OURS, line.peer)]

    @property
    def wins(self):
        relation, bound = self.line.wanted
        return self.value >= bound if relation == ">=" else self.value <= bound

    @property
    def holds(self):
        """Returns whether the target is met; None if there is no target."""
        if not self.judges or not self.line.wanted or self.value is None:
            return None
        return self.wins or (self.of_limit or 0) >= NEAR

    @property
    def verdict(self):
        if self.holds is None:
            return ""
        return "holds" if self.wins else "at the limit" if self.holds else "**lost**"

    @property
    def times_better(self):
        """Returns how many times better our figure is than theirs; None if there is no figure."""
        ratio = statistics.median(self.ratios) if self.ratios else 0
        return (ratio if self.line.more else 1 / ratio) if ratio else None

    @property
    def name(self):
        return f"{self.title}: {self.line.name}"


def figure(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def median_of(values, unit=""):
    return f"{figure(statistics.median(values))} {unit}".strip() if values else ""


def wanted_of(line):
    return f"{line.wanted[0]} {line.wanted[1]:.3g}" if line.wanted else ""


def table(results, absent):
    """Returns the rows as Markdown: medians, the median of the rounds' ratios with the lowest and the highest ratio, the part of
    the limit, and the processor time of both."""
    out = ["| Row | | ours | other | ratio (least to most) | wanted | of the limit | processor ms a token | |",
           "|---|---|---|---|---|---|---|---|---|"]
    for result in results:
        line = result.line
        other = f"{median_of(result.theirs, line.unit)} ({line.peer})" if result.theirs else ""
        ratio = f"{result.value:.3g} ({min(result.ratios):.3g} to {max(result.ratios):.3g})" if result.ratios else ""
        limit = f"{result.of_limit:.3g}" if result.of_limit else ""
        processor = " / ".join(median_of(of) for of in result.processor if of)
        out.append(f"| {result.number} | {result.name} | {median_of(result.ours, line.unit)} | {other} | {ratio} | "
                   f"{wanted_of(line)} | {limit} | {processor} | {result.verdict} |")
    out += [f"| {number} | {title}: {name} | {why} | | | | | | not counted |" for number, title, name, why in absent]
    return "\n".join(out)


def one_line(result):
    line = result.line
    beside = f" beside {median_of(result.theirs, line.unit)} of {line.peer}, {result.value:.3g}" if result.theirs else ""
    return f"{result.name}: {median_of(result.ours, line.unit)}{beside}"


def prose(result):
    """A sentence about a row that is lost."""
    line = result.line
    beside = ""
    if result.of_limit:
        beside = f" ({result.of_limit:.3g} of {line.limit})"
    if result.theirs:
        beside += f" beside {median_of(result.theirs, line.unit)} of {line.peer}, a ratio of {result.value:.3g}"
    return (f"Row {result.number} is lost, {result.name}: {median_of(result.ours, line.unit)}{beside}; "
            f"wanted is {wanted_of(line)}. {line.why}").strip()


def tell(text):
    print(f"compare: {text}", file=sys.stderr, flush=True)


def machine():
    name = "a processor without a name"
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        name = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), name)
    return f"{len(os.sched_getaffinity(0))} x {name}, load average {os.getloadavg()[0]:.2f} at the start"


def check(bench):
    """Exits if a program for the comparison is missing."""
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


def chosen(options, name, text, known):
    """The values from `known` that the option `name` chooses: all if it is empty."""
    for one in text.split(",") if text else ():
        if one not in known:
            options.error(f"{name} has {one!r}; there are {','.join(known)}")
    return text.split(",") if text else known
