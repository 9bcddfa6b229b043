"""Tests the remote engine with third-party routers and two llama-servers as workers. One worker is killed while a request is in
flight. Each request must be answered once, or fail once, and no text may be doubled. Every second request is not streamed, and
must be answered.

    test_remote_routers.py PROGRAM MODEL [ROUTER...]      ROUTER: vllm-router, smg, none (two endpoints of our own)

FM_KILLS (default 4) is the number of requests for each router. Exit status 77: skipped, because a server, a router or the
model is not there; packaging/setup.sh --tests installs the routers, tests/bench/server.sh builds the server.
"""

import http.client
import json
import os
import random
import subprocess
import sys
import time

from engine import Engine, user
from llama_server import PROGRAM, ROOT, LlamaServer, free_port
from patience import WAIT

ROUTERS = os.path.join(ROOT, "build", "deps", "routers")
KILLS = int(os.environ.get("FM_KILLS", "4"))
FOLDERS = {"vllm-router": "vllm", "smg": "smg"}
# The routers are Rust code in a Python module. The other imports of their command lines are neither needed nor installed.
CODE = {
    "vllm-router": """
import sys
from vllm_router_rs import PolicyType, Router
port, metrics, *workers = sys.argv[1:]
Router(worker_urls=workers, policy=PolicyType.RoundRobin, host="127.0.0.1", port=int(port), prometheus_port=int(metrics),
       prometheus_host="127.0.0.1", worker_startup_timeout_secs=60, worker_startup_check_interval=1).start()
""",
    "smg": """
import sys, types
sys.modules["setproctitle"] = types.SimpleNamespace(setproctitle=lambda title: None)
port, metrics, *workers = sys.argv[1:]
sys.argv = ["smg", "launch", "--policy", "round_robin", "--host", "127.0.0.1", "--port", port, "--prometheus-port", metrics,
            "--worker-urls", *workers]
from smg.cli import main
main()
""",
}
QUESTION = "Please count from one to twenty in words."


class Router:
    def __init__(self, name, workers):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        urls = [worker.url.removesuffix("/v1") for worker in workers]
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE[name], str(self.port), str(free_port()), *urls],
            env={**os.environ, "PYTHONPATH": os.path.join(ROUTERS, FOLDERS[name])}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline and self.process.poll() is None and not self._answers():
            time.sleep(0.1)  # the router does not report when its workers are ready
        if not self._answers():
            self.close()
            raise AssertionError(f"{name} did not start")

    def _answers(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        body = json.dumps({"model": "any", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1})
        try:
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def run(program, model, name):
    """Returns the numbers of answers, of restarted answers, of failures before output, and of failures after output. During each
    request a worker is killed, at once or after a random number of deltas. The worker is chosen at random too. If the workers
    were killed in turns, a router that also takes turns would always, or never, use the killed worker."""
    workers, router, engine = [], None, None
    answered = anew = failed = broken = 0
    try:
        workers += [LlamaServer(model, "-a", "any"), LlamaServer(model, "-a", "any")]
        router = None if name == "none" else Router(name, workers)
        urls = [router.url] if router else [worker.url for worker in workers]
        config = {"endpoints": [{"url": url, "dialect": "chat", "models": ["any"]} for url in urls]}
        engine = Engine(program, {"FM_ENGINE_CONFIG": json.dumps(config)})
        assert engine.initialize()["ok"] and engine.load(None)[0]["ok"]
        expected = engine.run(user(QUESTION), max_tokens=30, temperature=0).text
        assert len(expected) > 20, expected
        for number in range(KILLS):
            whole = number % 2 == 0  # the host gets no part of the answer early
            victim, kill_at, deltas, text = random.randrange(2), max(0, random.randrange(-3, 12)), 0, ""
            job = engine.start(user(QUESTION), max_tokens=30, temperature=0, restartable=whole)
            if kill_at == 0:
                workers[victim].close()
            for method, params in engine.events(job, WAIT):
                if method == "job.restarted":
                    text, anew = "", anew + 1
                elif method == "job.delta":
                    text, deltas = text + params["text"], deltas + 1
                    if deltas == kill_at:
                        workers[victim].close()
            if params["reason"] == "error":
                failed += not text
                broken += bool(text)
                print(f"{name}, after {deltas} deltas: {params['error']}", flush=True)
                assert not whole, params
                assert expected.startswith(text), (text, params)
            else:
                answered += 1
                assert text == expected, (text, expected)
            workers[victim].close()
            workers[victim] = LlamaServer(model, "-a", "any", port=workers[victim].port)
        assert engine.messages.empty(), "nothing comes after the end"
    finally:
        for program in filter(None, [engine, router, *workers]):
            program.close()
    return answered, anew, failed, broken


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, model = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    names = sys.argv[3:] or ["none", *CODE]
    for path in (PROGRAM, model, *([ROUTERS] if names != ["none"] else [])):
        if not os.path.exists(path):
            print(f"skipped: there is no {path}")
            sys.exit(77)
    random.seed(18)
    for name in names:
        answered, anew, failed, broken = run(program, model, name)
        print(f"{name}: {answered} of {KILLS} answered, {anew} of them anew, {failed} failed before output, {broken} after it",
              flush=True)
        assert answered + failed + broken == KILLS and answered > 0
        assert anew + broken > 0 or KILLS < 10, "the kills hit something"


if __name__ == "__main__":
    main()
