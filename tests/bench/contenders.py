"""The programs that compare.py measures. They answer the same requests, each over its own kind of channel.

While answers arrive, only the bytes and their times are kept; they are parsed afterwards. So the measuring itself costs little,
and costs the same for all programs. play() returns this cost.
"""

import atexit
import json
import os
import re
import selectors
import socket
import subprocess
import time

from processes import processor_seconds, tree

HANGS_S = 300  # after this time without a byte, a contender hangs


class Ask:
    """A request, and later its results."""

    def __init__(self, prompt, tokens, schema=None):
        self.prompt = prompt  # a text to continue; with a schema, a user's message
        self.tokens = tokens  # their exact number; with a schema, their maximum
        self.schema = schema
        self.sent = 0.0
        self.times = []  # when each piece of text arrived
        self.text = ""
        self.end = 0.0
        self.input = self.cached = self.output = 0

    @property
    def first_ms(self):
        return (self.times[0] - self.sent) * 1000

    @property
    def took_ms(self):
        return (self.end - self.sent) * 1000

    @property
    def tokens_per_second(self):
        """Speed from the first token on."""
        return (self.output - 1) / (self.times[-1] - self.times[0])


class Channel:
    """A descriptor that is read: chunks of bytes with their times, and the counts of two marks."""

    def __init__(self, fd, piece, last):
        self.fd = fd
        self.chunks = []
        self.marks = (piece, last)
        self.seen = [0, 0]
        self.tail = b""
        self.closed = False

    def read(self):
        data = os.read(self.fd, 1 << 18)
        now = time.perf_counter()
        if not data:
            self.closed = True
            return
        self.chunks.append((now, data))
        data = self.tail + data
        for i, mark in enumerate(self.marks):
            self.seen[i] += data.count(mark) - self.tail.count(mark)
        self.tail = data[-24:]  # longer than a mark

    def bytes(self):
        return b"".join(data for _, data in self.chunks)

    def taken(self):
        """Returns all bytes so far, and a function that returns the arrival time of the byte at a place."""
        ends, times, total = [], [], 0
        for now, data in self.chunks:
            total += len(data)
            ends.append(total)
            times.append(now)
        whole = self.bytes()
        self.chunks = []
        self.seen = [0, 0]
        self.tail = b""
        at = 0

        def time_of(place):  # call it with places in increasing order
            nonlocal at
            while ends[at] < place:
                at += 1
            return times[at]
        return whole, time_of


class Contender:
    """Base: a child process. `name` is its heading; other modules only use play()."""

    # for all contenders: processor time of their processes in play(), and the tokens that were generated in this time
    seconds = tokens = 0

    def __init__(self, command, env=None, stdin=subprocess.PIPE, stdout=subprocess.PIPE):
        self.spawned = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL, env=env)
        atexit.register(self.process.kill)
        self.asks = {}
        self.selector = selectors.DefaultSelector()

    def play(self, asks, late=(), after=0):
        """Sends `asks`, and `late` after `after` pieces have come; returns when all have ended. Returns the processor time
        that this took in this process, in seconds."""
        before = processor_seconds(self.process.pid)
        spent = time.process_time()
        self.asks = {number: ask for number, ask in enumerate([*asks, *late], 1)}
        numbers = iter(self.asks)
        waiting = 0
        for ask in asks:
            waiting += 1
            self.send(next(numbers), ask)
        while waiting or late:
            pieces = self.wait()
            if late and pieces >= after:
                for ask in late:
                    waiting += 1
                    self.send(next(numbers), ask)
                late = ()
            waiting = len(self.asks) - len(late) - self.ended()
        spent = time.process_time() - spent
        Contender.seconds += processor_seconds(self.process.pid) - before
        self.take_apart()
        for ask in self.asks.values():
            if not ask.times or not ask.output:
                raise SystemExit(f"{self.name} gave no text: {ask.text!r}")
            Contender.tokens += ask.input - ask.cached + ask.output
        return spent

    def wait(self):
        """Reads what has arrived; returns the number of pieces of text so far."""
        ready = self.selector.select(HANGS_S)
        if not ready:
            raise SystemExit(f"{self.name} has sent nothing for {HANGS_S} s")
        for key, _ in ready:
            key.data.read()
            if key.data.closed:
                self.on_closed(key.data)
        return sum(channel.seen[0] for channel in self.channels())

    def ended(self):
        return sum(channel.seen[1] for channel in self.channels())

    def pids(self):
        return tree(self.process.pid)

    def close(self):
        if self.process.stdin:
            self.process.stdin.close()
        else:
            self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        self.selector.close()


class Piped(Contender):
    """A contender that is used over its stdin and stdout."""

    def __init__(self, command, env, piece, last):
        super().__init__(command, env)
        self.pipe = Channel(self.process.stdout.fileno(), piece, last)
        self.selector.register(self.pipe.fd, selectors.EVENT_READ, self.pipe)

    def channels(self):
        return (self.pipe,)

    def on_closed(self, _):
        raise SystemExit(f"{self.name} has ended with status {self.process.wait()}")

    def write(self, data):
        while data:
            data = data[os.write(self.process.stdin.fileno(), data):]


FRAME = re.compile(rb"Content-Length: (\d+)\r\n\r\n")


def frame(message):
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def frames(data):
    """Returns the beginning and end of each body; the last body may end after the data."""
    end = 0
    while end < len(data):
        header = FRAME.match(data, end)
        if not header:
            yield end, len(data) + 1
            return
        end = header.end() + int(header[1])
        yield header.end(), end


def whole_frames(data):
    return all(end <= len(data) for _, end in frames(data))


class Framed(Piped):
    """Messages in frames, from an fm-proxy or from an engine program."""

    def notify(self, method, params, **more):
        self.write(frame({"jsonrpc": "2.0", **more, "method": method, "params": params}))

    def messages(self):
        """Returns the messages that have arrived, as (time, message). If a frame has begun, waits for its end."""
        while not whole_frames(self.pipe.bytes()):
            self.wait()
        whole, time_of = self.pipe.taken()
        for start, end in frames(whole):
            yield time_of(end), json.loads(whole[start:end])

    def call(self, method, params):
        """Returns the result of a call while no other call runs."""
        self.notify(method, params, id=0)
        while b'"result"' not in self.pipe.bytes():
            self.wait()
        result = [message["result"] for _, message in self.messages() if "result" in message][0]
        if not result["ok"]:
            raise SystemExit(f"{self.name}: {method}: {result}")
        return result


def environment(settings):
    """Returns our environment with these settings of the engine, and with no other settings of the helper or the engine."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("FM_PROXY_", "FM_ENGINE_"))}
    return {**env, **{f"FM_ENGINE_LLAMA_{key}": str(value) for key, value in settings.items()}}


class Proxy(Framed):
    name = "fm-proxy"

    def __init__(self, binaries, model, kv_files=None, **settings):
        """`kv_files`: the folder for the state that its engine saves for the next engine."""
        command = [os.path.join(binaries, "fm-proxy"), "--stdio", "--model", model, "--log-level", "off",
                   *(["--kv-cache-dir", kv_files] if kv_files else ["--no-kv-cache-files"])]
        super().__init__(command, environment(settings), b'.chunk"', b'"result":{')

    def send(self, number, ask):
        ask.sent = time.perf_counter()
        params = {"temperature": 0, "max_tokens": ask.tokens, "stream": True, "stream_options": {"include_usage": True}}
        if ask.schema:
            params.update(messages=[{"role": "user", "content": ask.prompt}], response_format={
                "type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": ask.schema}})
            self.notify("chat.completions.create", params, id=number)
        else:
            params.update(prompt=ask.prompt, ignore_eos=True)
            self.notify("completions.create", params, id=number)

    def shut_down(self):
        """Lets the engine end normally, and save its state."""
        self.call("process.shutdown", {})
        self.process.wait(HANGS_S)

    def take_apart(self):
        for now, message in self.messages():
            if "result" in message:
                if not message["result"].get("completion"):
                    raise SystemExit(f"{self.name}: {message['result']}")
                note_usage(self.asks[message["id"]], message["result"]["completion"]["usage"], now)
            else:
                note_choices(self.asks[message["params"]["id"]], message["params"]["chunk"], now)


def note_choices(ask, chunk, now):
    for choice in chunk["choices"]:
        text = choice["delta"].get("content") if "delta" in choice else choice["text"]
        if text:
            ask.times.append(now)
            ask.text += text


def note_usage(ask, usage, now):
    ask.end = now
    ask.input = usage["prompt_tokens"]
    ask.output = usage["completion_tokens"]
    ask.cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)


class BareEngine(Framed):
    """The engine program without the front."""

    name = "fm-engine-llama alone"

    def __init__(self, binaries, model, **settings):
        super().__init__([os.path.join(binaries, "fm-engine-llama")], environment(settings), b'"job.delta"', b'"job.finished"')
        self.job = 0
        self.call("engine.initialize", {"protocol_version": 1, "log_level": "off"})
        self.call("engine.load", {"model": os.path.realpath(model)})

    def send(self, number, ask):
        self.job += 1
        ask.job = self.job
        ask.sent = time.perf_counter()
        self.notify("job.start", {"job": self.job, "prompt": ask.prompt, "max_tokens": ask.tokens, "temperature": 0,
                                  "ignore_eos": True})

    def take_apart(self):
        asks = {ask.job: ask for ask in self.asks.values()}
        for now, message in self.messages():
            ask = asks.get(message.get("params", {}).get("job"))
            if ask and message["method"] == "job.delta":
                ask.times.append(now)
                ask.text += message["params"]["text"]
            elif ask and message["method"] == "job.finished":
                usage = message["params"]["usage"]
                ask.end = now
                ask.input, ask.cached, ask.output = (usage[f"{kind}_tokens"] for kind in ("input", "cached", "output"))


class NodeLlama(Piped):
    name = "node-llama-cpp"

    def __init__(self, folder, model, sequences, threads):
        script = os.path.join(folder, "node-llama-cpp.mjs")
        super().__init__(["node", script, model, str(sequences), str(threads)], dict(os.environ), b'"text":', b'"done":true')
        while b'"ready"' not in self.pipe.tail:
            self.wait()
        self.pipe.taken()

    def send(self, number, ask):
        ask.sent = time.perf_counter()
        self.write(json.dumps({"id": number, "prompt": ask.prompt, "tokens": ask.tokens}).encode() + b"\n")

    def take_apart(self):
        while not self.pipe.bytes().endswith(b"\n"):
            self.wait()
        whole, time_of = self.pipe.taken()
        place = 0
        for line in whole.splitlines(keepends=True):
            place += len(line)
            message = json.loads(line)
            ask = self.asks[message["id"]]
            if "done" in message:
                ask.end = time_of(place)
                ask.input, ask.cached, ask.output = message["input"], message["cached"], message["output"]
            elif message["text"]:
                ask.times.append(time_of(place))
                ask.text += message["text"]


EVENT = re.compile(rb"data: (\{.*\})\n\n")


class Server(Contender):
    name = "llama-server"

    def __init__(self, program, model, *options, ready=True):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [program, "-m", model, "--port", str(self.port), "--log-disable", "--offline", *options]
        super().__init__(command, stdin=None, stdout=subprocess.DEVNULL)
        self.sockets = {}
        if ready:
            self.get_ready()

    def get_ready(self):
        """Returns when the server has loaded its model."""
        while b" 200 " not in self.health():
            if self.process.poll() is not None:
                raise SystemExit(f"llama-server has ended with status {self.process.returncode}")
            time.sleep(0.002)

    def health(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port)) as connection:
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return connection.recv(64)
        except OSError:
            return b""

    def channels(self):
        return self.sockets.keys()

    def on_closed(self, channel):
        self.selector.unregister(channel.fd)
        channel.seen[1] = 1

    def send(self, number, ask):
        if number == 1:
            self.sockets = {}
        ask.sent = time.perf_counter()
        params = {"temperature": 0, "max_tokens": ask.tokens, "stream": True, "stream_options": {"include_usage": True}}
        path = "/v1/completions"
        if ask.schema:
            path = "/v1/chat/completions"
            params.update(messages=[{"role": "user", "content": ask.prompt}], response_format={
                "type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": ask.schema}})
        else:
            params.update(prompt=ask.prompt, ignore_eos=True)
        body = json.dumps(params).encode()
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                           b"Connection: close\r\n\r\n%s" % (path.encode(), len(body), body))
        # The answer ends with the connection: the second mark never comes.
        channel = Channel(connection.fileno(), b"data: {", b"\0")
        self.sockets[channel] = (connection, ask)
        self.selector.register(channel.fd, selectors.EVENT_READ, channel)

    def take_apart(self):
        for channel, (connection, ask) in self.sockets.items():
            connection.close()
            whole, time_of = channel.taken()
            if not re.match(rb"HTTP/1.1 200 ", whole):
                raise SystemExit(f"{self.name}: {whole[:2000]!r}")
            for event in EVENT.finditer(whole):
                now = time_of(event.end())
                chunk = json.loads(event[1])
                note_choices(ask, chunk, now)
                if chunk.get("usage"):
                    note_usage(ask, chunk["usage"], now)
                if "timings" in chunk:
                    ask.cached = chunk["timings"]["cache_n"]
