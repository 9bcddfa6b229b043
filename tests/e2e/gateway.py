"""Shared by the tests of session mode: a gateway process, its lines and its log."""

import json
import os
import queue
import subprocess
import threading

from wire import BIN, WAIT, end, environment

PREFIX = "[IntelligenceKit] "
GUIDES = {  # the end of the system message, which describes the answer's format: SESSIONS.md
    "text": '\n\nAnswer with a JSON object, {"result":"..."}: "result" is the text output as requested in the prompt.',
    "string_list": '\n\nAnswer with a JSON object, {"result":["...","..."]}: "result" is the list of text items as requested in '
                   "the prompt.",
}


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def scripted(*steps):
    """Content that the fake engine runs as a script."""
    return compact(list(steps))


def says(result):
    """Content that makes the fake engine answer `result`."""
    return scripted(compact({"result": result}))


class Gateway:
    """A running `fm-proxy sessions`."""

    def __init__(self, *args, engine="fake", env=None, **popen):
        command = [os.path.join(BIN, "fm-proxy"), "sessions", "--engine", engine, *args]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment(env), **popen)
        self.answers = queue.Queue()  # bytes; None at the end
        self.log = queue.Queue()
        self.threads = [threading.Thread(target=self._read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.answers), (self.process.stderr, self.log))]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def _read(file, lines):
        for line in file:
            lines.put(line)
        lines.put(None)

    @property
    def pid(self):
        return self.process.pid

    def send_raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, command, **fields):
        self.send_raw(compact({"command": command, **fields}).encode() + b"\n")

    def answer_line(self, timeout=None):
        return self.answers.get(timeout=timeout or WAIT)

    def answer(self, timeout=None):
        line = self.answer_line(timeout)
        if line is None:
            raise AssertionError("the output ended")
        return json.loads(line)

    def ask(self, command, timeout=None, **fields):
        self.send(command, **fields)
        return self.answer(timeout)

    def open(self, **fields):
        answer = self.ask("open-session", **fields)
        assert answer["ok"], answer
        return answer["session_id"]

    def message(self, session, prompt="", content="", output_format="text", timeout=None):
        return self.ask("message", timeout, session_id=session, prompt=prompt, content=content,
                        output_format=output_format)

    def send_message(self, session, prompt="", content="", output_format="text"):
        self.send("message", session_id=session, prompt=prompt, content=content, output_format=output_format)

    def log_where(self, part):
        """The next line of the log that contains `part`; the lines before it are dropped."""
        while True:
            line = self.log.get(timeout=WAIT)
            if line is None:
                raise AssertionError(f"the log ended without {part!r}")
            if part in line.decode():
                return line.decode().rstrip("\n")

    def rest_of_log(self):
        """The rest of the log, once the process has ended."""
        return [line.decode() for line in iter(lambda: self.log.get(timeout=WAIT), None)]

    def wait_exit(self, timeout=None):
        return self.process.wait(timeout or WAIT)

    def close(self):
        """Ends the input, unless it has ended; returns the exit status. May be called twice."""
        try:
            return end(self.process, *self.threads)
        finally:
            self.process.stderr.close()
