"""Simulates hours of use in minutes, for the whole helper with the real models: random arrivals, cancels, loads, unloads and
other models.

    soak.py [MINUTES] [SEED]

Four models share two places for engines: the chat model, the same file under another name, a tiny model and the embedding model.
An engine that is idle for 400 ms is ended. Requests of every kind (kinds.py) come at random moments, and every few seconds they
are for another model. Once a minute all requests end and the models are unloaded. Then no engine process may be left, and the
front must have as many descriptors and threads as before. There is a line for each minute. The memory of the front must not grow
after the second minute. No request may fail unexpectedly, nothing may be on stderr, and each stream must end once. Prints
the seed. Exit status 77: skipped, because a program or the model is missing. FM_BIN and FM_MODELS have the same meaning as
in the tests.
"""

import os
import queue
import random
import sys
import tempfile
import time

import gguf
import wire
from kinds import Maker, audit
from mixes import Call, Mix, Place
from wire import children, memory_kib

GAP_S = 0.25  # between two arrivals, on average
IN_FLIGHT = 12
IDLE_MS = 400
TURN_S = 6  # seconds until the requests are for another model
GROWTH_KIB = 2048
KV_BYTES = 64 << 20
STORE_BYTES = 512 << 10  # so small that it is full before the second minute is over
CONTEXT = 2048  # of the tiny model; the other models get it as a setting of the engine (mixes.py)


class SoakPlace(Place):
    def __init__(self, folder):
        super().__init__(os.path.join(folder, "models"))
        self.kv_folder = os.path.join(folder, "kv")
        self.stderr = open(os.path.join(folder, "stderr"), "w+b")
        if self.chat:
            self.chats = [self.chat, self.link(os.path.join(self.folder, f"{self.chat}.gguf"), "the-same-again"), self.tiny()]
            self.all = [*self.chats, *([self.embedder] if self.embedder else [])]

    def tiny(self):
        values = {"llama.context_length": CONTEXT}
        pairs = [gguf.pair(key, kind, values.get(key, content)) for key, kind, content in gguf.tiny_pairs()]
        with open(os.path.join(self.folder, "zz-tiny.gguf"), "xb") as file:
            file.write(gguf.tiny(pairs))
        return "zz-tiny"

    def helper(self):
        return super().helper("--max-engines", "2", "--idle-unload-ms", str(IDLE_MS), "--kv-cache-dir", self.kv_folder,
                              "--kv-cache-bytes", str(KV_BYTES), "--store-bytes", str(STORE_BYTES),
                              env={"FM_PROXY_NO_KV_CACHE_FILES": "0"}, stderr=self.stderr)

    def kv_bytes(self):
        return sum(entry.stat().st_size for entry in os.scandir(self.kv_folder)) if os.path.exists(self.kv_folder) else 0

    def said(self):
        self.stderr.seek(0)
        return self.stderr.read()


class Soak(Mix):
    """A Mix without kills. The time decides which request comes next."""

    def __init__(self, place, seed):
        self.place = place
        super().__init__(place.helper(), Maker(seed, place.chats, place.embedder, place.projector and place.chat), seed)
        self.loads, self.unloads = {}, {}  # id of the call: whether it was cancelled
        self.turn = self.arrival = 0

    def settle(self, call, result):
        answer = audit(call.request, call.events, result, self.maker.issued)
        if result["ok"]:
            self.counts["good"] += 1
            self.maker.noted(call.request, answer)
        else:
            assert call.cancelled and result["error"]["code"] == "CANCELLED", f"{call.request}: {result['error']}"
            self.counts["cancelled"] += 1

    def take(self, message):
        id = (message or {}).get("id")
        if id in self.loads:
            result, cancelled = message["result"], self.loads.pop(id)
            assert result["ok"] or (cancelled and result["error"]["code"] == "CANCELLED"), message
        elif id in self.unloads:
            del self.unloads[id]
            assert message["result"]["ok"] or message["result"]["error"]["code"] == "OVERLOADED", message
            self.counts["refused unloads"] += not message["result"]["ok"]
        else:
            super().take(message)

    def arrive(self):
        """Sends the next request."""
        chance = self.pick.random()
        if chance < 0.05:
            call = self.helper.start("models.load", {"model": self.pick.choice(self.place.all)})
            self.loads[call] = self.pick.random() < 0.3
            if self.loads[call]:
                self.helper.send("$/cancelRequest", {"id": call})
        elif chance < 0.1:
            self.unloads[self.helper.start("models.unload", {"model": self.pick.choice(self.place.all)})] = False
        else:
            request = self.maker.make()
            if self.pick.random() < 0.1:
                request.params["fm"] = {**request.params.get("fm", {}), "keep_alive_ms": self.pick.choice((-1, 0, 50, 2000))}
            self.start(request, self.pick.randint(0, 25) if self.pick.random() < 0.2 else None)

    def step(self):
        """Waits for a message or the next arrival."""
        now = time.monotonic()
        if now >= self.turn:
            self.turn = now + self.pick.expovariate(1 / TURN_S)
            self.maker.chats = [self.pick.choice(self.place.chats)] * 4 + [self.pick.choice(self.place.chats)]
        if now >= self.arrival:
            self.arrival = now + self.pick.expovariate(1 / GAP_S)
            if len(self.open) < IN_FLIGHT:
                self.arrive()
        try:
            self.take(self.helper.receive(timeout=max(0.001, self.arrival - time.monotonic())))
        except queue.Empty:
            pass

    def rest(self):
        """Waits until all calls have ended, and unloads the models; returns the front's KiB of memory, descriptors, threads."""
        while self.open or self.cancels or self.loads or self.unloads:
            self.receive()
        for model in self.place.all:
            assert self.helper.call("models.unload", {"model": model})["ok"]
        pid = self.helper.pid
        assert children(pid) == [], "an engine is left"
        assert self.place.kv_bytes() <= KV_BYTES, self.place.kv_bytes()
        wire.wait_idle(pid)
        return memory_kib(pid, "VmRSS"), len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))

    def line(self, minutes):
        pid = self.helper.pid
        counts, flying = self.counts, len(self.open)
        engines, descriptors = len(children(pid)), len(os.listdir(f"/proc/{pid}/fd"))
        assert engines <= 2, f"{engines} engines"
        rest = self.rest()
        starts = self.helper.call("metrics.get")["engines"]["starts"]
        print(f"soak: {minutes:5.2f} min: {counts['calls']} calls, {counts['good']} good, {counts['cancelled']} cancelled; "
              f"{starts} engine starts; {flying} in flight, {engines} engines, {descriptors} descriptors; "
              f"at rest {rest[1]} descriptors, {rest[2]} threads, RSS {rest[0]} KiB", flush=True)
        return rest

    def end(self):
        told = self.helper.call("metrics.get")
        requests, engines = told["requests"], told["engines"]
        assert requests["failed"] == self.counts["refused unloads"], told
        assert (requests["timed_out"], requests["refused"], requests["queued"], requests["running"]) == (0, 0, 0, 0), told
        assert (engines["deaths"], engines["now"]) == (0, []), told
        assert self.helper.close() == 0
        assert self.helper.receive() is None, "settled twice"
        said = self.place.said()
        assert said == b"", said


def run(place, minutes, seed):
    soak = Soak(place, seed)
    every = 60 if minutes >= 3 else minutes * 15
    begun, lines = time.monotonic(), []
    while (now := time.monotonic() - begun) < minutes * 60:
        soak.step()
        if now >= every * (len(lines) + 1):
            lines.append(soak.line(now / 60))
    lines.append(soak.line(minutes))
    soak.end()
    growth = lines[-1][0] - lines[1][0]
    assert growth <= GROWTH_KIB, f"the front has grown by {growth} KiB since the second line"
    assert len({tuple(rest) for _, *rest in lines[1:]}) == 1, "descriptors or threads of the front differ"
    print(f"soak: {soak.counts['calls']} calls, none failed; {growth} KiB of growth since the second line")


def main(minutes="30", seed=None):
    seed = int(seed) if seed else random.randrange(1 << 30)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "models"))
        place = SoakPlace(folder)
        missing = place.missing()
        if missing:
            print(f"skipped: {missing}")
            return 77
        print(f"soak: {minutes} minutes, seed {seed}", flush=True)
        run(place, float(minutes), seed)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
