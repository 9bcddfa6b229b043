"""The rows of `compare.sh --models`, which are the same for each file. They are the rows of rows.py, with counts that fit the
model's size, and with their own targets. Beside busy loops there are only two targets: to be as good as llama-server, and to get
the share of the processors that a fair scheduler gives.
"""

import os

import rows
from rows import BATCHED, NODE, OURS, QUIET, SERVER, Line

FAIR = 0.8  # the least part of the fair share


def share(loops):
    """Returns the share of the processors that as many threads as processors get beside this many loops."""
    processors = len(os.sched_getaffinity(0))
    return processors / (processors + loops)


class Mixed:
    """The base class of these rows."""

    judged = ()  # lines that compare with llama-server
    # with loops, the line that compares with our figure on a quiet machine: its key, name, unit, and whether more is better
    quiet = None
    node = ()  # keys that node-llama-cpp has too

    def settle(self):
        """Makes `lines` from the members above."""
        loops = self.bench.loops.count
        self.lines = [self.beside_loops(line) for line in self.judged if line.peer == SERVER] if loops else list(self.judged)
        if loops and self.quiet:
            key, name, unit, more = self.quiet
            wanted = (">=", FAIR * share(loops)) if more else ("<=", 2)
            self.lines.append(Line(key, f"{name}, beside its own without loops", unit, wanted, peer=QUIET, more=more))
        if not loops:
            self.lines += [Line(line.key, line.name, line.unit, peer=NODE, more=line.more) for line in self.judged
                           if line.key in self.node]
        return self

    def beside_loops(self, line):
        return Line(line.key, line.name, line.unit, (">=" if line.more else "<=", 1), more=line.more)

    def others(self, sequences=1, batched=True):
        """The contenders besides ours and llama-server."""
        if self.bench.loops.count:
            return {QUIET: self.bench.proxy()} if self.quiet else {}
        return {**({BATCHED: self.bench.batched} if batched else {}), **(self.bench.node(sequences) if self.node else {})}


class OneStream(Mixed, rows.OneStream):
    title = "one stream"
    judged = (Line("speed", "tokens/s", "", (">=", 1.02), more=True, limit=BATCHED),)
    quiet = ("speed", "tokens/s", "", True)
    node = ("speed",)

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", "1"), **self.others()}

    def measure(self, name, contender, number):
        if name == BATCHED:
            return {"speed": contender(25, self.bench.tokens(self.tokens), 1)["speed_tg"]}
        return super().measure(name, contender, number)


class Streams(Mixed, rows.Streams):
    """Rows with a number of streams that our program does not know in advance."""

    def __init__(self, bench, number, count, **counts):
        super().__init__(bench, count, **counts)
        self.number = number
        self.title = f"{count} streams"
        self.judged = [Line("speed", "tokens/s of all together", "", (">=", 1.1), more=True, limit=BATCHED),
                       Line("first", "last first token", "ms", ("<=", 1))]
        if count > 4:
            self.judged.append(Line("memory", "memory", "MiB", ("<=", 1)))
        else:
            self.node = ("speed",)

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", str(self.count)),
                           **self.others(self.count)}

    def measure(self, name, contender, number):
        figures = super().measure(name, contender, number)
        if name != BATCHED:
            figures["memory"] = rows.memory_mib(contender.pids(), "VmHWM")
        return figures


class FirstToken(Mixed, rows.FirstToken):
    number = 4
    judged = (Line("first", "loaded", "ms", ("<=", 1)),)
    quiet = ("first", "loaded", "ms", False)
    node = ("first",)

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", "1"), **self.others(batched=False)}


class ColdToken(Mixed, rows.ColdToken):
    """The file is in the page cache, because the warm-up has read it."""

    number = 5
    title = "a program that starts"
    judged = (Line("first", "first token, the loading included", "ms", ("<=", 1.1)),
              Line("rest", "memory at rest", "MiB", ("<=", 1)))

    def start(self):
        self.contenders = {OURS: self.bench.proxy, SERVER: lambda: self.bench.server("-np", "1", ready=False)}

    def more(self, contender):
        return {"rest": rows.memory_mib(contender.pids(), "VmRSS")}


class Turns(Mixed, rows.SecondTurn):
    number = 6
    title = "a long prompt"
    judged = (Line("prompt", "its tokens/s, alone", "", (">=", 1.05), more=True, limit=BATCHED),
              Line("first", "first token of the second turn", "ms", ("<=", 1)))
    quiet = ("prompt", "its tokens/s, alone", "", True)
    node = ("prompt", "first")

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", "1"), **self.others()}

    def measure(self, name, contender, number):
        if name == BATCHED:
            return {"prompt": contender(20 * self.bench.sentences(self.length), 1, 1)["speed_pp"]}
        return super().measure(name, contender, number)


class Objects(Mixed, rows.Objects):
    def __init__(self, bench, number, count):
        super().__init__(bench, count)
        self.number = number
        self.title = "a JSON object" if count == 1 else f"{count} JSON objects at once"
        self.judged = [Line("took", self.lines[0].name, "ms", ("<=", 0.35))]


class LongPrompt(Mixed, rows.LongPrompt):
    number = 9
    title = "a long prompt beside 4 streams"
    judged = (Line("gap", "their longest gap", "ms", ("<=", 0.15)), Line("first", "its own first token", "ms", ("<=", 1.5)))

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", "5", "-c", "20480")}


class Copy(Mixed, rows.Rewrite):
    """A row with the default setting: tokens are guessed if that is faster."""

    number = 10
    title = "rewriting a function"
    judged = (Line("speed", "tokens/s", "", (">=", 1), more=True, limit=BATCHED),
              Line("speed", "tokens/s", "", (">=", 0.98), peer=rows.Rewrite.alone, more=True))

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", "1"), **self.others()}
        if not self.bench.loops.count:
            self.contenders[self.alone] = self.bench.proxy(SPECULATION="off")

    def measure(self, name, contender, number):
        if name == BATCHED:
            return {"speed": contender(300, self.bench.tokens(self.tokens), 1)["speed_tg"]}
        ask = self.rewrite(number)
        contender.play([ask])
        self.bench.same(ask)
        return {"speed": ask.tokens_per_second}


def every(bench, counts):
    """All rows for a file, in their order."""
    return [row.settle() for row in (
        OneStream(bench, tokens=counts.one), Streams(bench, 2, 4, tokens=counts.four), Streams(bench, 3, 8, tokens=counts.eight),
        FirstToken(bench, asks=counts.asks), ColdToken(bench), Turns(bench, length=counts.prompt), Objects(bench, 7, 1),
        Objects(bench, 8, 4), LongPrompt(bench, length=counts.late, tokens=counts.streams), Copy(bench, tokens=counts.copy))]
