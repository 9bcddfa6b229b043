"""compare.py --models: the rows of model_rows.py on each file of model_files.py.

Each round of a row goes to the file of results as soon as it is measured, as a line of JSON for each side (fm-proxy,
llama-server, ...). If the file has a round of the same commit and with as many loops, the round is not measured again, so an
interrupted run continues where it stopped. The page (Markdown) is made from the file, with its picture in the same folder.
"""

import datetime
import itertools
import json
import os
import subprocess
import textwrap
import time

import chart
import model_rows
from model_files import COUNTS, FILES
from report import ROOT, Result, check, chosen, figure, machine, median_of, one_line, prose, table, tell, wanted_of
from rows import SERVER, Bench

MEASURED = ("CMakeLists.txt", "cmake", "helper", "protocol/*.[ch]", "packaging/setup.sh", "tests/bench")

KEY = ("commit", "busy", "quick", "file", "row")


def add_options(options):
    options.add_argument("--models", action="store_true", help="other rows, on files of models of three sizes and four formats")
    options.add_argument("--files", default="", metavar="A,B",
                         help=f"of them only these: {','.join(file.name for file in FILES)}")
    options.add_argument("--results", default=os.path.join(ROOT, "build/models.jsonl"), metavar="FILE",
                         help="their figures, a line each; what it holds of this commit is not measured again")
    options.add_argument("--table", action="store_true", help="with --models: measures nothing, and shows what FILE holds")
    options.add_argument("--commit", default=commit(), help="with --table: of this commit (default: the one that is checked out)")
    options.add_argument("--page", default=os.path.join(ROOT, "build/benchmarks.md"), metavar="FILE",
                         help="where their tables go; the picture goes beside it")


def git(*arguments):
    command = ["git", "-C", ROOT, *arguments, "--", *MEASURED]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()


def commit():
    """Returns the last commit that changed what is measured, or how. After a commit to anything else, an interrupted run
    continues."""
    return git("log", "-1", "--format=%h", "--abbrev=12") + ("-dirty" if git("status", "--porcelain") else "")


class Ledger:
    """The file of results. `same` has the values for KEY that all rows of this run share."""

    def __init__(self, path, **same):
        self.path, self.same = path, same
        self.lines = []
        if os.path.exists(path):
            with open(path, "rb+") as file:
                data = file.read()
                file.truncate(data.rfind(b"\n") + 1)  # removes an incomplete line, which a killed run wrote
            self.lines = [json.loads(line) for line in data[:data.rfind(b"\n") + 1].splitlines()]

    def of(self, file, row):
        """The lines of a row on a file."""
        key = {**self.same, "file": file, "row": row}
        return [line for line in self.lines if all(line[member] == key[member] for member in KEY)]

    def rounds(self, file, row):
        """{round: {side: line}} of the complete rounds with the same sides as the last complete one."""
        rounds = {}
        for line in self.of(file, row):
            rounds.setdefault(line["round"], {})[line["side"]] = line  # if a round was measured twice, the later lines count
        whole = {number: sides for number, sides in sorted(rounds.items())
                 if all(set(sides) == set(line["sides"]) for line in sides.values())}
        last = set(list(whole.values())[-1]) if whole else set()
        return {number: sides for number, sides in whole.items() if set(sides) == last}

    def add(self, file, row, number, figures, **more):
        """Adds the figures of each side of a round."""
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        lines = [{**self.same, "file": file, "row": row, "round": number, "side": side, "sides": sorted(figures), "date": now,
                  **more, "figures": of} for side, of in figures.items()]
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as out:
            out.write("".join(json.dumps(line) + "\n" for line in lines))
            out.flush()
            os.fsync(out.fileno())
        self.lines += lines

    def fill(self, file, row):
        """Gives `row` the values from the file."""
        row.values = {}
        for number, sides in self.rounds(file, row.title).items():
            row.take(number, {side: line["figures"] for side, line in sides.items()})


def results_of(row, quick):
    every = (Result(row, line, not quick) for line in row.lines)
    return [result for result in every if result.ours and result.theirs]


def measure(ledger, bench, row, file, failed):
    """Measures the rounds of a row that are missing."""
    known = ledger.rounds(file.name, row.title)
    rounds = [number for number in range(bench.rounds) if number not in known]
    if not rounds:
        return
    begun = time.monotonic()
    keep = lambda number, figures: ledger.add(file.name, row.title, number, figures, machine=machine(), notes=row.notes)
    try:
        row.run(rounds, keep)
    except (SystemExit, OSError, subprocess.CalledProcessError) as error:
        if isinstance(error, SystemExit) and not isinstance(error.code, str):
            raise  # the run should end
        failed.append(f"Row {row.number} on {file.name} failed: {str(error)[:500]}")
        tell(failed[-1])
    tell(f"  {file.name}, row {row.number}: {time.monotonic() - begun:.0f} s")


def compare(options, given, loops):
    ledger = Ledger(given.results, commit=given.commit if given.table else commit(), busy=given.busy, quick=given.quick)
    files = chosen(options, "--files", given.files, [file.name for file in FILES])
    numbers = [str(row.number) for row in model_rows.every(Bench(ROOT, 1, True, tell), COUNTS["135m"])]
    numbers = chosen(options, "--rows", given.rows, numbers)
    begun = time.monotonic()
    results, failed = {}, []
    tell(f"commit {ledger.same['commit']}, {machine()}")
    for file in FILES:
        if file.name not in files:
            continue
        bench = bench_of(file, given, loops)
        of_file = results.setdefault(file.name, [])
        for row in model_rows.every(bench, file.counts):
            if str(row.number) not in numbers:
                continue
            if not given.table:
                measure(ledger, bench, row, file, failed)
            ledger.fill(file.name, row)
            of_file += results_of(row, given.quick)
            if not given.table:
                for result in results_of(row, given.quick):
                    tell(f"  {one_line(result)}")
    tell(f"done in {time.monotonic() - begun:.0f} s")
    lost = [f"{name}: {prose(result)}" for name, of in results.items() for result in of if result.holds is False]
    text = page(ledger, results, given.page)
    print("\n\n".join([text, *failed, *lost]))
    return bool(lost or failed)


def bench_of(file, given, loops):
    if given.table:
        return Bench(ROOT, given.rounds, given.quick, tell, loops=loops)
    server = Bench(ROOT, 1, given.quick, tell).server_program
    bench = Bench(ROOT, given.rounds, given.quick, tell, loops=loops,
                  model=file.path(ROOT, os.path.join(os.path.dirname(server), "llama-quantize")))
    bench.short_warm_up = True
    check(bench)
    return bench


def page(ledger, results, path):
    """Writes the page and its picture; returns the tables."""
    judged = {name: [result for result in of if result.line.wanted] for name, of in results.items()}
    lines = [line for line in ledger.lines if line["file"] in results and all(line[key] == of for key, of in ledger.same.items())]
    if not lines:
        return "There are no figures of this commit."
    picture = os.path.splitext(path)[0] + ".svg"
    bars = chart.grouped([(result.name, name, result.times_better) for name, of in judged.items() for result in of
                          if result.line.peer == SERVER and result.times_better])
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    if bars:
        with open(picture, "w", encoding="utf-8") as out:
            out.write(chart.svg(bars))
    tables = [matrix(judged)]
    for name, of in results.items():
        if of:
            tables.append(f"### {name}\n\n{table(of, [])}")
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"{opening(ledger.same, lines, os.path.basename(picture) if bars else '')}\n\n{tables[0]}\n\n"
                  "## Each file\n\nThe processor time is user and system time of all processes of a side, for each token that it "
                  "reads or writes. The limit is\nllama.cpp's own loop (llama-batched-bench).\n\n" +
                  "\n\n".join(tables[1:]) + f"\n\n## How much work a row is\n\n{counts()}\n")
    return "\n\n".join(tables)


def opening(same, lines, picture):
    first, last = min(line["date"] for line in lines)[:10], max(line["date"] for line in lines)[:10]
    machines = sorted({line["machine"].partition(", load")[0] for line in lines})
    rounds = max(line["round"] for line in lines) + 1
    beside = f", beside {same['busy']} busy loops" if same["busy"] else ""
    options = f" --busy {same['busy']}" if same["busy"] else ""
    quick = " A quick run: its figures say nothing about speed." if same["quick"] else ""
    image = f"\n\n![How many times better each row is, on each file]({picture})" if picture else ""
    date = first if first == last else f"{first} to {last}"
    text = (f"`sh tests/bench/compare.sh --models{options}` makes this page.{quick} It was measured on "
            f"{' and '.join(machines)}{beside}, {date}, commit {same['commit']}; rounds of each row: up to {rounds}. "
            "llama-server is of the same release and runs on the same libraries. A cell has ours / theirs = the median of the "
            "rounds' ratios. Machines differ: only the ratios count.")
    return f"# Speed beside llama-server\n\n{textwrap.fill(text, 125, break_on_hyphens=False)}{image}"


def matrix(judged):
    """A line for each row, a column for each file."""
    names = {}  # {(number, label): target}, in the rows' order
    for result in itertools.chain(*judged.values()):
        names.setdefault((result.number, label(result)), wanted_of(result.line))
    out = [f"| Row | wanted | {' | '.join(judged)} |", "|---|---|" + "---|" * len(judged)]
    for (number, name), wanted in sorted(names.items(), key=lambda item: item[0][0]):
        cells = [cell(next((result for result in of if (result.number, label(result)) == (number, name)), None))
                 for of in judged.values()]
        out.append(f"| {number}. {name} | {wanted} | {' | '.join(cells)} |")
    return "\n".join(out)


def label(result):
    unit = f" ({result.line.unit})" if result.line.unit else ""
    return f"{result.name}{unit}" + ("" if result.line.peer == SERVER else f", beside {result.line.peer}")


def cell(result):
    if not result:
        return ""
    ratio = f"{figure(result.value)}x"
    verdict = {"**lost**": f"**{ratio}**", "at the limit": f"{ratio}, at the limit"}.get(result.verdict, ratio)
    return f"{median_of(result.ours)} / {median_of(result.theirs)} = {verdict}"


def counts():
    names = {"one": "tokens of one stream", "four": "of each of 4 streams", "eight": "of each of 8", "prompt": "a prompt alone",
             "late": "a prompt beside streams", "streams": "each of these", "copy": "a rewritten function",
             "asks": "first tokens in a round"}
    out = [f"| Size | {' | '.join(names.values())} |", "|---|" + "---|" * len(names)]
    return "\n".join([*out, *(f"| {size.upper()} | {' | '.join(str(getattr(of, name)) for name in names)} |"
                              for size, of in COUNTS.items())])
