"""The rows of compare.py: who takes part in each, what each contender does in a round, and the targets for the figures."""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from contenders import Ask, BareEngine, Contender, NodeLlama, Proxy, Server
from processes import Loops, memory_mib, processor_seconds

OURS = "fm-proxy"
SERVER = "llama-server"
NODE = "node-llama-cpp"
LOOP = "bare loop"
BATCHED = "llama-batched-bench"
PROCESSOR = "processor_ms"  # a figure of each contender that ran play(): user and system time per token
QUIET = f"{OURS}, quiet"
SMALLEST = "build/models/SmolLM2-135M-Instruct.Q4_1.gguf"
SETTLE_S = 0.3  # after computing, a side's threads still spin for a while, waiting for more work
PLACES = ("Lisbon", "Oslo", "Genoa", "Cork", "Riga", "Bergen", "Malmo", "Porto", "Split", "Turku")
STORY = "The old keeper of the lighthouse told me this story about the sea and the storm."


def text_of(number, sentences):
    """About 20 tokens per sentence; each number gives another beginning."""
    days = (f"On day {day} it reached {PLACES[(number + day) % len(PLACES)]}, where the crew bought bread, rope and oil."
            for day in range(1, sentences + 1))
    return f"Log {number} of a ship. " + " ".join(days)


TICKET = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 40},
        "category": {"enum": ["science", "history", "sports", "music", "weather"]},
        "priority": {"enum": ["low", "medium", "high"]},
        "status": {"enum": ["open", "in_progress", "closed"]},
        "count": {"type": "integer", "minimum": 0, "maximum": 100},
    },
    "required": ["title", "category", "priority", "status", "count"],
    "additionalProperties": False,
}


class Line:
    """A line of the table: our figure `key`, the figure of a peer, and the target for their ratio (or for our figure if there is
    no peer)."""

    def __init__(self, key, name, unit, wanted=None, peer=SERVER, more=False, alone=False, limit=None, why=""):
        self.key = key
        self.name = name
        self.unit = unit
        self.wanted = wanted  # (">=" or "<=", number); None: no target
        self.peer = peer
        self.more = more  # more is better
        self.alone = alone  # no peer: `wanted` is about our figure
        self.limit = limit  # contender whose figure is the limit: the best that llama.cpp's own loop reaches
        self.why = why  # if the row is lost: the reason for the figure


class Row:
    """The base class. `start` makes self.contenders, a dict in the order of the first round. `measure` lets one contender do its
    part of a round, and returns its figures by the keys of `lines`."""

    number = 0
    title = ""
    lines = ()

    def __init__(self, bench, **counts):
        """`counts`: values of members that differ from the class."""
        self.bench = bench
        self.contenders = {}
        self.values = {}  # for each contender and each key: one figure per round
        self.notes = {}  # figures that are not compared, but show whether the comparison is fair
        self.__dict__.update(counts)

    def run(self, rounds, keep):
        """Runs these rounds; calls keep(number, figures) with the figures of each contender of a round."""
        self.start()
        try:
            for number in [*range(-self.bench.warm_up, 0), *rounds]:
                self.bench.warming = number < 0
                self.bench.tell(f"row {self.number}, {self.title}: " + (
                    f"round {number + 1} of {self.bench.rounds}" if number >= 0 else "warming up"))
                figures = self.round(number)
                if number >= 0:
                    keep(number, figures)
        finally:
            for contender in self.contenders.values():
                if hasattr(contender, "close"):
                    contender.close()

    def take(self, _, figures):
        for name, of in figures.items():
            for key, figure in of.items():
                self.values.setdefault(name, {}).setdefault(key, []).append(figure)

    def round(self, number):
        names = list(self.contenders)
        turn = (number + self.bench.warm_up) % len(names)
        figures = {}
        for name in names[turn:] + names[:turn]:  # the contenders take turns in being first
            with self.bench.loops.quiet() if name == QUIET else contextlib.nullcontext():
                time.sleep(SETTLE_S)
                Contender.seconds = Contender.tokens = 0
                figures[name] = self.measure(name, self.contenders[name], number + 10)
                if Contender.tokens:
                    figures[name][PROCESSOR] = Contender.seconds * 1000 / Contender.tokens
        return figures

    def note(self, name, **figures):
        self.notes.setdefault(name, {}).update(figures)


class OneStream(Row):
    number = 1
    title = "one stream of 128 tokens"
    tokens = 128
    lines = (
        Line("speed", "tokens/s", "", (">=", 1.05), more=True,
             why="Both compute the same tokens with the same libraries; only what is done between two tokens differs."),
        Line("speed", "tokens/s, beside llama.cpp's bare loop", "", (">=", 0.98), peer=LOOP, more=True,
             why="The rest is spent on pipes, JSON and a second process."),
        Line("speed", "tokens/s", "", peer=NODE, more=True),
    )

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", "1"),
                           LOOP: self.bench.bare_loop, **self.bench.node(1)}

    def measure(self, name, contender, number):
        if name == LOOP:
            return {"speed": contender(STORY, self.bench.tokens(self.tokens))}
        ask = Ask(f"{STORY} ({number})", self.bench.tokens(self.tokens))
        spent = contender.play([ask])
        self.bench.same(ask)
        self.note(name, tokens=ask.output, prompt_tokens=ask.input, harness_us_per_token=round(spent * 1e6 / ask.output, 1))
        return {"speed": ask.tokens_per_second}


class Streams(Row):
    number = 2
    tokens = 128

    def __init__(self, bench, count, **counts):
        super().__init__(bench, **counts)
        self.count = count
        self.title = f"{count} streams of {self.tokens} tokens"
        self.lines = [Line("speed", "tokens/s of all together", "", (">=", 1.1), more=True),
                      Line("first", "worst first token", "ms", ("<=", 1)),
                      *(Line("speed", "tokens/s of all together", "", peer=peer, more=True) for peer in (BATCHED, NODE))]

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", str(self.count)),
                           BATCHED: self.bench.batched, **self.bench.node(self.count)}

    def measure(self, name, contender, number):
        if name == BATCHED:
            tokens = self.bench.tokens(self.tokens)
            return {"speed": self.count * tokens / contender(25, tokens, self.count)["t"]}
        asks = [Ask(f"{PLACES[i]}, {number}. {STORY}", self.bench.tokens(self.tokens)) for i in range(self.count)]
        contender.play(asks)
        self.bench.same(*asks)
        tokens = sum(ask.output for ask in asks)
        return {"speed": tokens / (max(ask.end for ask in asks) - asks[0].sent), "first": max(ask.first_ms for ask in asks)}


class FirstToken(Row):
    number = 3
    title = "first token of a short prompt"
    asks = 5
    lines = (Line("first", "warm", "ms", ("<=", 0.9)), Line("first", "warm", "ms", peer=NODE))

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", "1"), **self.bench.node(1)}

    def measure(self, name, contender, number):
        times = []
        for i in range(1 if self.bench.quick else self.asks):
            time.sleep(SETTLE_S if i else 0)
            ask = Ask(text_of(number * 10 + i, 2), self.bench.tokens(8))
            contender.play([ask])
            times.append(ask.first_ms)
            self.note(name, prompt_tokens=ask.input, cached_tokens=ask.cached)
        return {"first": statistics.median(times)}


class ColdToken(Row):
    number = 3
    title = "first token of a short prompt"
    lines = (Line("first", "cold, from the start of the program", "ms", ("<=", 0.6)),
             Line("first", "cold, its server without a warm-up", "ms", peer=f"{SERVER} --no-warmup"),
             Line("first", "cold", "ms", peer=NODE))

    def start(self):
        server = lambda *options: self.bench.server("-np", "1", *options, ready=False)
        self.contenders = {OURS: self.bench.proxy, SERVER: server,
                           f"{SERVER} --no-warmup": lambda: server("--no-warmup")}
        if self.bench.has_node:
            self.contenders[NODE] = lambda: self.bench.node(1)[NODE]

    def measure(self, name, spawn, number):
        contender = spawn()
        try:
            if isinstance(contender, Server):
                contender.get_ready()
            ask = Ask(text_of(number, 2), self.bench.tokens(8))
            contender.play([ask])
            Contender.seconds = processor_seconds(contender.process.pid)  # includes the loading, which some contenders do first
            return {"first": (ask.times[0] - contender.spawned) * 1000, **self.more(contender)}
        finally:
            contender.close()

    def more(self, _):
        """Returns more figures of a contender that has answered."""
        return {}


class SecondTurn(Row):
    number = 4
    title = "second turn over 1,000 tokens"
    length = 1000
    lines = (
        Line("first", "first token", "ms", ("<=", 0.9)),
        Line("again", "tokens of the first turn that are read again", "", ("<=", 1), alone=True),
        Line("cold", "first token of the first turn", "ms"),
        Line("first", "first token", "ms", peer=NODE),
    )

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", "1"), **self.bench.node(1)}

    def measure(self, name, contender, number):
        first = Ask(text_of(number, self.bench.sentences(self.length)), self.bench.tokens(32))
        contender.play([first])
        time.sleep(SETTLE_S)
        second = Ask(f"{first.prompt}{first.text}\nWhat did the crew buy on the last day, and where?", self.bench.tokens(8))
        contender.play([second])
        self.note(name, first_turn=first.input + first.output, second_turn=second.input, cached_tokens=second.cached)
        return {"first": second.first_ms, "again": first.input + first.output - second.cached, "cold": first.first_ms,
                "prompt": first.input * 1000 / first.first_ms}


class SavedTurn(Row):
    number = 4
    title = SecondTurn.title
    fresh = f"{OURS} without saved prefixes"
    lines = (Line("first", "first token in a new process, from saved prefixes", "ms", ("<=", 0.25), peer=fresh),)

    def start(self):
        self.contenders = {OURS: True, self.fresh: False}

    def measure(self, name, saved, number):
        first = Ask(text_of(number, self.bench.sentences(1000)), self.bench.tokens(32))
        with tempfile.TemporaryDirectory() as folder:
            before = self.bench.proxy(kv_files=folder)
            try:
                before.play([first])
                before.shut_down()
            finally:
                before.close()
            after = self.bench.proxy(kv_files=folder if saved else None)
            try:
                after.play([Ask(PLACES[0], 1)])  # now the model is loaded
                time.sleep(SETTLE_S)
                second = Ask(f"{first.prompt}{first.text}\nWhat did the crew buy on the last day, and where?",
                             self.bench.tokens(8))
                after.play([second])
            finally:
                after.close()
        self.note(name, second_turn=second.input, cached_tokens=second.cached)
        return {"first": second.first_ms}


class LongPrompt(Row):
    number = 5
    title = "a prompt of 2,000 tokens beside 4 streams"
    length = 2000
    tokens = 384
    lines = (
        Line("gap", "their longest gap", "ms", ("<=", 0.1),
             why="Its prompt is read in pieces beside the streams; the gap is the time of the longest piece."),
        Line("first", "its own first token", "ms", ("<=", 1.3), why="What the streams compute meanwhile is added."),
    )

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", "5", "-c", "20480")}

    def measure(self, name, contender, number):
        streams = [Ask(f"{PLACES[i]}, {number}. {STORY}", self.bench.tokens(self.tokens)) for i in range(4)]
        late = Ask(text_of(number, self.bench.sentences(self.length)), self.bench.tokens(8))
        contender.play(streams, [late], 4 * self.bench.tokens(16))
        self.bench.same(*streams)
        gaps = [after - before for ask in streams for before, after in zip(ask.times, ask.times[1:]) if after > late.sent]
        if not gaps and not self.bench.quick and not self.bench.warming:
            raise SystemExit(f"{name}: the streams had ended when the prompt came")
        self.note(name, prompt_tokens=late.input)
        return {"gap": max(gaps, default=0) * 1000, "first": late.first_ms}


class Objects(Row):
    number = 6

    def __init__(self, bench, count):
        super().__init__(bench)
        self.count = count
        self.title = "a JSON object of 5 fields" if count == 1 else f"{count} JSON objects of 5 fields at once"
        self.lines = (Line("took", "whole answer" if count == 1 else "until the last one is whole", "ms",
                           ("<=", 0.35 if count == 1 else 0.6)),)

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", str(self.count))}

    def measure(self, name, contender, number):
        asks = [Ask(f"Make ticket {number} about a thunderstorm that is coming to {PLACES[i]}.", 200, TICKET)
                for i in range(self.count)]
        contender.play(asks)
        for ask in asks:
            if list(json.loads(ask.text)) != TICKET["required"]:
                raise SystemExit(f"{name} gave another object: {ask.text}")
        self.note(name, prompt_tokens=asks[0].input, tokens=[ask.output for ask in asks])
        return {"took": (max(ask.end for ask in asks) - asks[0].sent) * 1000}


class Rewrite(Row):
    """A task in which the engine can guess tokens: 50 functions, and whether the texts are the same (speculation.py)."""

    number = 7
    title = "rewriting a function of 300 tokens"
    tokens = 256
    alone = f"{OURS} without speculation"
    lines = (
        Line("speed", "tokens/s", "", (">=", 1.5), peer=alone, more=True),
        Line("prose", "tokens/s of free prose", "", (">=", 0.98), peer=alone, more=True),
        Line("speed", "tokens/s", "", more=True),
    )

    def start(self):
        self.contenders = {OURS: self.bench.proxy(SPECULATION="lookup"), SERVER: self.bench.server("-np", "1"),
                           self.alone: self.bench.proxy(SPECULATION="off")}

    def measure(self, name, contender, number):
        rewrite, prose = self.rewrite(number), Ask(f"{STORY} ({number})", self.bench.tokens(128))
        for ask in (rewrite, prose):
            contender.play([ask])
            time.sleep(SETTLE_S)
        self.bench.same(rewrite, prose)
        return {"speed": rewrite.tokens_per_second, "prose": prose.tokens_per_second}

    def rewrite(self, number):
        code = function_of(number)
        return Ask(f"# before\n{code}\n# after: `rows` is named `entries` now\ndef", self.bench.tokens(self.tokens))


def function_of(number):
    lines = [f"def report_{number}(rows, limit={number * 7}):", '    """Returns totals and means of what is below the limit."""']
    for field in ("price", "weight", "length", "age"):
        lines += [f"    {field} = 0", "    for row in rows:", f'        if row["{field}"] > limit:',
                  f'            print("skipped", row["{field}"])', "            continue",
                  f'        {field} += row["{field}"] * {number + len(field)}', f"    mean_{field} = {field} / len(rows)"]
    return "\n".join([*lines, "    return price, weight, length, age, mean_price, mean_weight, mean_length, mean_age"])


class Front(Row):
    number = 11
    title = "what the front costs"
    lines = (Line("took", "time of one stream, beside the engine alone", "ms", ("<=", 1.03), peer=BareEngine.name),)

    def start(self):
        self.contenders = {OURS: self.bench.proxy(),
                           BareEngine.name: BareEngine(self.bench.binaries, self.bench.model, **self.bench.threads(THREADS="1"))}

    def measure(self, name, contender, number):
        ask = Ask(f"{STORY} ({number})", self.bench.tokens(128))
        contender.play([ask])
        self.bench.same(ask)
        return {"took": ask.took_ms}


class Memory(Row):
    number = 11
    title = "what the front costs"
    lines = (Line("idle", "its memory, idle", "MiB", ("<=", 4.5), alone=True),
             Line("busy", "its memory with 64 streams", "MiB", ("<=", 8), alone=True))

    def start(self):
        self.contenders = {OURS: lambda: self.bench.proxy(SLOTS=64, CTX=1024)}

    def measure(self, name, spawn, number):
        contender = spawn()
        try:
            contender.play([Ask(STORY, 2)])
            idle = memory_mib([contender.process.pid], "VmRSS")
            contender.play([Ask(f"{i}. {STORY}", self.bench.tokens(32)) for i in range(64)])
            return {"idle": idle, "busy": memory_mib([contender.process.pid], "VmHWM")}
        finally:
            contender.close()


class BusyMachine(Row):
    number = 12
    title = "one stream beside a busy loop on each processor"
    lines = (Line("speed", "tokens/s", "", (">=", 1.5), more=True),
             Line("speed", "tokens/s, beside its own on a quiet machine", "", (">=", 1 / 3), peer=QUIET, more=True))

    def start(self):
        self.contenders = {OURS: self.bench.proxy(), SERVER: self.bench.server("-np", "1"),
                           QUIET: self.bench.proxy()}

    def measure(self, name, contender, number):
        ask = Ask(f"{STORY} ({number})", self.bench.tokens(128))
        with Loops(0 if name == QUIET else len(os.sched_getaffinity(0))):
            time.sleep(SETTLE_S)
            contender.play([ask])
        self.bench.same(ask)
        return {"speed": ask.tokens_per_second}


def last_line(command):
    """The JSON in the last line of a program's output."""
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    return json.loads([line for line in out.splitlines() if line.startswith(b"{")][-1])


class Bench:
    """The programs, and how much work a row has. All rows share it."""

    def __init__(self, root, rounds, quick, tell, model=None, loops=None):
        self.rounds = rounds
        self.quick = quick
        self.warm_up = 0 if quick else 1
        self.warming = self.short_warm_up = False
        self.loops = loops or Loops(0)
        self.tell = tell
        self.binaries = os.environ.get("FM_BIN", os.path.join(root, "build/bin"))
        self.model = model or os.path.join(root, SMALLEST)
        self.server_program = os.path.join(root, "build/deps/llama-server/bin/llama-server")
        self.loop_program = os.path.join(root, "build/tests-bin/bare_llama")
        self.peers = os.path.join(root, "tests/bench/peers")
        self.has_node = os.path.isdir(os.path.join(self.peers, "node_modules/node-llama-cpp")) and shutil.which("node")

    def tokens(self, count):
        return max(4, count // 16 if self.quick else count // 4) if self.quick or self.warms_shortly() else count

    def sentences(self, tokens):
        return 4 if self.quick else tokens // (80 if self.warms_shortly() else 20)

    def warms_shortly(self):
        """For several models: there, a round takes minutes."""
        return self.warming and self.short_warm_up

    def proxy(self, **settings):
        return Proxy(self.binaries, self.model, **self.threads(THREADS="1"), **settings)

    def threads(self, **one):
        """Returns `one` in a quick run, which may be on a busy machine, where two threads get very slow. Otherwise returns
        nothing, so that each program uses its default."""
        return one if self.quick else {}

    def server(self, *options, ready=True):
        if "-c" not in options:
            options = ("-c", "8192", *options)  # our own default
        if self.quick:
            options = ("-t", "1", *options)
        return Server(self.server_program, self.model, *options, ready=ready)

    def node(self, sequences):
        return {NODE: NodeLlama(self.peers, self.model, sequences, self.node_threads())} if self.has_node else {}

    def node_threads(self):
        """The program's default is at least four threads, which get very slow on two processors."""
        return 1 if self.quick else len(os.sched_getaffinity(0))

    def bare_loop(self, prompt, tokens):
        """Returns the tokens/s of llama.cpp's own loop, in a separate process."""
        one = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if self.quick else []
        result = last_line([*one, self.loop_program, self.model, prompt, str(tokens)])
        if result["tokens"] != tokens:
            raise SystemExit(f"the bare loop gave {result['tokens']} tokens, not {tokens}")
        return result["decode_tokens_per_second"]

    def batched(self, prompt, tokens, streams):
        """Returns the result of llama.cpp's own batch benchmark for prompts and answers of these lengths, which is a line of
        JSON."""
        program = os.path.join(os.path.dirname(self.server_program), BATCHED)
        return last_line([program, "-m", self.model, "-c", "8192", *(("-t", "1") if self.quick else ()), "-npp", str(prompt),
                          "-ntg", str(tokens), "-npl", str(streams), "--output-format", "jsonl"])

    def same(self, *asks):
        """Checks that each request was answered in full, so that all contenders did the same work."""
        for ask in asks:
            if ask.output != ask.tokens:
                raise SystemExit(f"an answer has {ask.output} tokens, not {ask.tokens}")


    def speculates(self):
        path = os.path.join(self.binaries, "fm-engine-llama")
        if not os.path.exists(path):
            return False
        with open(path, "rb") as program:
            return b"FM_ENGINE_LLAMA_SPECULATION" in program.read()


def rows(bench):
    every = [OneStream(bench), Streams(bench, 4), Streams(bench, 8), FirstToken(bench), ColdToken(bench), SecondTurn(bench),
             SavedTurn(bench), LongPrompt(bench), Objects(bench, 1), Objects(bench, 4), Rewrite(bench), Front(bench),
             Memory(bench), BusyMachine(bench)]
    return [row for row in every if bench.speculates() or row.number != Rewrite.number]


def missing(bench):
    """The rows that should be measured but can't be: (row, title, line, why)."""
    if not bench.speculates():
        yield 7, Rewrite.title, "tokens/s with speculation", "not in this build yet"
