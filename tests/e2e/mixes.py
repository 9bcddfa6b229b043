"""Sends random mixes of requests to the whole helper with the real models. Each answer must pass the same audit as without other
requests.

    mixes.py [REQUESTS] [SEED] [REPEATABLE]

Eight are in flight at once: text, formats, tools, images, log probabilities, several choices, embeddings, chains and
branches of previous_response_id, and repeatable ones. Some requests are cancelled at a random moment. In the first half of the
run
engines are killed; requests that failed because of that are sent again. Each call settles once, the usage adds up to the
counts of metrics.get, and after the second half memory, descriptors and threads are as they were before it. The run continues
until there are REPEATABLE repeatable answers (at most every second request is repeatable). Each such answer is compared with the
answer of a fresh process. Prints the seed. Exit status 77: skipped, because a program or the model is missing.
FM_BIN and FM_MODELS have the same meaning as in the tests.
"""

import collections
import glob
import os
import random
import signal
import sys
import tempfile
import time

import wire
from kinds import COUNTED, MEMBERS, TEST, Answer, Maker, audit
from wire import Helper, children, memory_kib

MODELS = os.environ.get("FM_MODELS", os.path.join(wire.BIN, "..", "models"))
AT_ONCE = 8
KILL_EVERY = 30  # requests between two kills, in the first half
# How much a process may grow in the second half. For the engine this covers what it keeps outside of the KV memory: 12
# conversations of up to 450 tokens, with 23 KiB each.
FRONT_KIB, ENGINE_KIB = 2048, 128 * 1024
SETTINGS = {"SLOTS": 6, "CTX": 2048, "KV_TOKENS": 3072, "THREADS": os.environ.get("FM_ENGINE_LLAMA_THREADS", "1")}


def first(folder):
    return next(iter(sorted(glob.glob(os.path.join(MODELS, "..", folder, "*.gguf")))), None)


class Place:
    """A models folder, and helpers that use it."""

    def __init__(self, folder):
        self.folder = folder
        self.chat, self.embedder = (self.link(first(name)) for name in ("models", "models-embedding"))
        self.projector = first("models-vision")

    def link(self, path, name=None):
        """Links a model into the folder, perhaps under another name; returns its id, or None if `path` is None."""
        if path is None:
            return None
        name = name or os.path.basename(path).removesuffix(".gguf")
        os.symlink(os.path.abspath(path), os.path.join(self.folder, f"{name}.gguf"))
        return name

    def missing(self):
        """Returns what a run needs but does not find. Prints what else is missing but not needed."""
        if not os.path.exists(os.path.join(wire.BIN, "fm-engine-llama")):
            return "the llama engine is not built"
        if self.chat is None:
            return f"there is no model in {MODELS}"
        for what, path in (("images", self.projector), ("embeddings", self.embedder)):
            if path is None:
                print(f"without {what}: there is no model for them; packaging/setup.sh --tests brings it")
        return None

    def helper(self, *more, env=None, **popen):
        args = ["--models-dir", self.folder, "--model", self.chat, "--store-bytes", str(1 << 20), *more]
        args += ["--mmproj", self.projector] if self.projector else []
        settings = {f"FM_ENGINE_LLAMA_{name}": str(value) for name, value in SETTINGS.items()}
        return Helper(*args, engine="llama", env={**settings, **(env or {})}, **popen)


class Call:
    def __init__(self, request, cancel_after):
        self.request, self.events = request, []
        # cancel after this many of its events or, without a stream, messages of any call; None: never
        self.cancel_after = cancel_after
        self.cancelled = self.hurt = False  # `hurt`: an engine was killed while it was in flight


class Mix:
    def __init__(self, helper, maker, seed):
        self.helper, self.maker, self.pick = helper, maker, random.Random(seed + 1)
        self.open, self.cancels = {}, {}  # calls by id; the id of a cancel: the call that it is for
        self.again = collections.deque()  # requests that a killed engine failed
        self.counts = collections.Counter()
        self.tokens = collections.Counter()  # the counts that metrics.get must return
        self.unsure = 0  # prompt tokens of choices that were cut off, perhaps before the engine had accepted them
        self.good = []  # (request, answer) of each successful request
        self.killed = None  # messages before the next kill; None: no kill is planned

    # ---- one call ----

    def start(self, request, cancel_after=None):
        call = self.helper.start(request.method, request.params)
        self.open[call] = Call(request, cancel_after)
        self.counts["calls"] += 1
        self.cancel(call)

    def cancel(self, id):
        """Cancels the call, by a call or by a notification, if it is time."""
        call = self.open[id]
        if call.cancel_after != 0:
            return
        call.cancelled, call.cancel_after = True, None
        if self.pick.random() < 0.5:
            self.helper.send("$/cancelRequest", {"id": id})
        else:
            self.cancels[self.helper.start("responses.cancel", {"request_id": id})] = id

    def heard(self, id=None):
        """Counts a message of the call `id`, or of another call."""
        for at, call in list(self.open.items()):
            if call.cancel_after and (at == id or not call.request.streams):
                call.cancel_after -= 1
                self.cancel(at)

    def receive(self):
        self.take(self.helper.receive())

    def take(self, message):
        assert message is not None, "the helper ended"
        if "method" in message:
            params = message["params"]
            assert params["id"] in self.open, f"an event after the end: {message}"
            self.open[params["id"]].events.append(params.get("event") or params.get("chunk"))
            self.heard(params["id"])
        elif message["id"] in self.cancels:
            del self.cancels[message["id"]]
            result = message["result"]
            assert result["ok"] or result["error"]["code"] in ("NOT_FOUND", "INTERNAL", "UNAVAILABLE"), message
        else:
            assert message["id"] in self.open, f"settled twice, or never asked: {message}"
            self.settle(self.open.pop(message["id"]), message["result"])
            self.heard()

    def settle(self, call, result):
        request = call.request
        answer = audit(request, call.events, result, self.maker.issued)
        if answer is not None:
            # with several choices the prompt counts once for each choice
            times = len(answer.texts) if request.api == "chat" else 1
            self.tokens.update(input=answer.input * times, output=answer.output)
            self.unsure += answer.input if times > 1 and not result["ok"] else 0
        if result["ok"]:
            self.counts["good"] += 1
            self.good.append((request, answer))
            self.maker.noted(request, answer)
            return
        code = result["error"]["code"]
        if code == "CANCELLED" and call.cancelled:
            self.counts["cancelled"] += 1
            return
        assert call.hurt and code in ("INTERNAL", "UNAVAILABLE"), f"{request}: {result['error']}"
        self.counts["sent again"] += 1
        self.again.append(request)

    # ---- engines that die ----

    def kill_one(self):
        """Mostly kills the largest engine, which runs the chat model. Returns when the helper has noticed."""
        engines = sorted(children(self.helper.pid), key=lambda pid: memory_kib(pid, "VmRSS"))
        self.killed = None
        if not engines:
            return
        engine = engines[-1] if self.pick.random() < 0.8 else self.pick.choice(engines)
        for call in self.open.values():
            call.hurt = True
        os.kill(engine, signal.SIGKILL)
        wire.wait_until(lambda: engine not in children(self.helper.pid), "the engine's end")
        self.counts["kills"] += 1

    # ---- many calls ----

    def alone(self):
        """Sends one request of each kind, one after the other."""
        for kind in dict.fromkeys(self.maker.kinds):
            self.start(self.maker.make(kind))
            while self.open:
                self.receive()

    def run(self, requests, kills, more=lambda: False):
        """Sends this many requests, and continues while `more` is true; up to AT_ONCE are in flight."""
        started, next_kill = 0, KILL_EVERY // 3
        while self.open or self.again or started < requests or more():
            while len(self.open) < AT_ONCE and (self.again or started < requests or more()):
                if self.again:
                    self.start(self.again.popleft())
                    continue
                self.start(self.maker.make(), self.pick.randint(0, 25) if self.pick.random() < 0.2 else None)
                started += 1
            if kills and self.killed is None and started >= next_kill:
                self.killed = self.pick.randint(0, 60)
                next_kill = started + self.pick.randint(KILL_EVERY // 2, KILL_EVERY * 3 // 2)
            self.receive()
            if self.killed is not None:
                self.killed -= 1
                if self.killed < 0:
                    self.kill_one()
        while self.cancels:
            self.receive()

    def repeated(self):
        return [(request, answer) for request, answer in self.good if request.kind == "repeatable"]


# ---- what must be as it was ----

def footprint(helper):
    """{pid: (KiB of private memory, descriptors, threads)} of the front and its engines, when nothing runs."""
    pids = [helper.pid, *children(helper.pid)]
    wire.wait_idle(*pids)
    return {pid: (memory_kib(pid, "RssAnon"), len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")))
            for pid in pids}


def check_footprint(helper, before, after):
    assert set(after) == set(before), f"engines that came or went: {before}, {after}"
    for pid, (memory, *rest) in after.items():
        name, bound = ("front", FRONT_KIB) if pid == helper.pid else ("engine", ENGINE_KIB)
        grown = memory - before[pid][0]
        print(f"mixes: {name}: {before[pid][0]} KiB before the second half, {memory} KiB after it")
        assert grown <= bound, f"the {name} has grown by {grown} KiB"
        assert rest == list(before[pid][1:]), f"descriptors and threads of the {name}: {before[pid][1:]}, {rest}"


def check_metrics(mix):
    """Called before any other request is sent."""
    told = mix.helper.call("metrics.get")
    requests = told["requests"]
    TEST.assertEqual((requests["received"], requests["queued"], requests["running"], requests["timed_out"],
                      requests["refused"]), (mix.counts["calls"], 0, 0, 0, 0), told)
    TEST.assertEqual(requests["completed"] + requests["incomplete"], mix.counts["good"], told)
    TEST.assertEqual((requests["cancelled"], requests["failed"]), (mix.counts["cancelled"], mix.counts["sent again"]), told)
    tokens = told["tokens"]
    TEST.assertEqual(tokens["output"], mix.tokens["output"], told)
    TEST.assertLessEqual(tokens["input"], mix.tokens["input"], told)
    TEST.assertGreaterEqual(tokens["input"], mix.tokens["input"] - mix.unsure, told)
    TEST.assertEqual(told["engines"]["deaths"], mix.counts["kills"], told)


def count(mix, request, body):
    result = mix.helper.call("responses.input_tokens", {"model": request.params["model"], **body})
    assert result["ok"], f"{request}: {result}"
    return result["input_tokens"]


def check_prompts(mix):
    """Each response had the prompt of its whole conversation, and nothing else."""
    responses = [(request, answer) for request, answer in mix.good if request.api == "responses"]
    for request, answer in responses:
        body = {key: request.params[key] for key in COUNTED if key in request.params}
        body["input"] = [*request.conversation, *request.params["input"]]
        assert count(mix, request, body) == answer.input, f"{request}: {answer.input} tokens, counted again: {body}"
        if request.kind == "image":
            body["input"] = [{**item, "content": item["content"][:1]} if type(item["content"]) is list else item
                             for item in body["input"]]
            assert count(mix, request, body) < answer.input, f"{request}: its image counts nothing"
    turns = sum(bool(request.conversation) for request, _ in responses)
    print(f"mixes: {len(responses)} prompts counted again, {turns} of them go on from a response")


def compare(place, answers):
    for request, answer in answers:
        fresh = place.helper()
        result = fresh.call(request.method, {**request.params, "stream": False, "stream_options": None})
        assert result["ok"], f"{request}: {result}"
        want = Answer(request.api, result[MEMBERS[request.api]])
        assert fresh.close() == 0
        TEST.assertEqual(answer.told(), want.told(), request)
    print(f"mixes: {len(answers)} of {len(answers)} repeatable answers are those of a fresh process")


def run(place, requests, seed, repeatable):
    helper = place.helper()
    maker = Maker(seed, [place.chat], place.embedder, place.projector and place.chat)
    mix = Mix(helper, maker, seed)
    share = min(0.5, 1.2 * repeatable / requests)
    maker.kinds += [maker.repeatable] * round((share * len(maker.kinds) - 1) / (1 - share))
    begun = time.monotonic()
    mix.run(requests // 2, kills=True)
    mix.alone()  # warms up the engines that were started after the last kill
    mix.run(AT_ONCE, kills=False)
    before = footprint(helper)
    mix.run(requests - requests // 2, kills=False, more=lambda: len(mix.repeated()) < repeatable)
    check_footprint(helper, before, footprint(helper))
    print(f"mixes: {dict(mix.counts)} in {time.monotonic() - begun:.0f} s", flush=True)
    check_metrics(mix)
    check_prompts(mix)
    assert helper.close() == 0
    assert helper.receive() is None, "settled twice"
    compare(place, mix.repeated()[:repeatable])


def main(requests="40", seed=None, repeatable="2"):
    seed = int(seed) if seed else random.randrange(1 << 30)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder)
        missing = place.missing()
        if missing:
            print(f"skipped: {missing}")
            return 77
        print(f"mixes: {requests} requests, seed {seed}", flush=True)
        run(place, int(requests), seed, int(repeatable))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
