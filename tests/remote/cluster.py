"""Tests docs/scaling.md on a cluster on this machine: its commands and configurations, unchanged; servers that are killed in
the middle of answers; workers that stop and start again. cluster.sh prepares and starts this script, in a separate namespace.

    cluster.py [PART...]      PART: llama, router, dialects, kills, drain, cancel, smg, ray (default: all, in this order)

Prints a table; the exit status is 1 if something failed. A small model replaces those of the page (stand_in.py); the servers
are the real ones. FM_ROUNDS (default 1): how often each kind of request loses its server.
"""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

import stage
from stage import ROOT, Program, Worker, blocks, get, section, wait_for

sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
os.environ.setdefault("FM_SLOW", "4")  # everything runs on two processors
from wire import Helper  # noqa: E402

ROUNDS = int(os.environ.get("FM_ROUNDS", "1"))
ANSWER_S = 600  # the longest time for an answer
KEY = "rk-0123456789abcdef"
STORY = [{"role": "user", "content": "Tell a very long story about a dog, a cat and a mouse."}]


def kinds(characters, tokens):
    """The kinds of requests. Answers have this many characters, or this many tokens for free text."""
    def described(name):
        long = {"type": "string", "minLength": characters, "maxLength": characters + 50}
        return {"type": "object", "properties": {name: long}, "required": [name], "additionalProperties": False}
    tool = {"type": "function", "function": {"name": "note", "description": "Writes a note.", "parameters": described("text")}}
    schema = {"name": "title", "schema": described("title"), "strict": True}
    return {
        "text": {"max_tokens": tokens},
        "a tool": {"max_tokens": 2 * characters, "tools": [tool], "tool_choice": "required"},
        "a format": {"max_tokens": 2 * characters, "response_format": {"type": "json_schema", "json_schema": schema}},
    }


KINDS = kinds(150, 120)
LONG = kinds(450, 300)  # so long that a server is still answering when it is killed
DIALECTS = ("chat", "responses", "messages")
rows = []  # (part, what, result, whether it is as expected)


def note(part, what, result, right):
    rows.append((part, what, result, right))
    stage.print_log(f"{'ok  ' if right else 'FAIL'} {part}: {what}: {result}")


# ---- the helper ----

@contextlib.contextmanager
def helper_with(folder, config, engine="remote,llama", log=None, **env):
    """The whole helper with this configuration (text as on the page, or a dict) as a file in `folder`. `log`: a file for its
    warnings."""
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".json", delete=False, encoding="utf-8") as file:
        file.write(config if isinstance(config, str) else json.dumps(config))
    path = file.name  # each helper has a separate file, which is not changed while the helper reads it
    told = {"stderr": log} if log else {}
    helper = Helper("--remote", path, "--models-dir", os.path.dirname(stage.SMALL_MODEL), "--log-level",
                    "warn" if log else "error", engine=engine, env=env, **told)
    try:
        yield helper
    finally:
        helper.close()


def start(helper, kind, stream, messages=None, **more):
    return helper.start("chat.completions.create", {"messages": messages or STORY, "temperature": 0, "stream": stream,
                                                    **{**KINDS[kind], **more}})


def said(completion):
    """The text of an answer, or its call's arguments."""
    message = completion["choices"][0]["message"]
    calls = message.get("tool_calls")
    return calls[0]["function"]["arguments"] if calls else message["content"] or ""


def fits(kind, completion):
    """Whether it is a right answer for the kind."""
    text = said(completion)
    if kind == "text":
        return len(text) > 10
    limit = completion["choices"][0]["finish_reason"] == "length"
    member = "text" if kind == "a tool" else "title"
    return limit or list(json.loads(text)) == [member]


def ask(helper, kind, stream, **more):
    """Returns (whether it succeeded, the result of the call, the streamed text)."""
    events, result = helper.collect(start(helper, kind, stream, **more), ANSWER_S)
    text = "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])
    return bool(result.get("ok")) and (stream or fits(kind, result["completion"])), result, text


def ask_each(part, helper, engine="remote", what="text, a tool and a format, streamed and not", **more):
    """Asks each kind, streamed and not. The named engine must answer all."""
    wrong = []
    for kind in KINDS:
        for stream in (False, True):
            well, result, _ = ask(helper, kind, stream, **more)
            who = result.get("completion", {}).get("fm", {}).get("engine", engine)  # the last chunk of a stream has this member
            if not well or who != engine:
                wrong.append(f"{kind}, {'streamed' if stream else 'whole'}: {result.get('error') or result}")
    note(part, what, f"{6 - len(wrong)} of 6 answered" +
         "".join(f"; {why}"[:300] for why in wrong), not wrong)


def error_of(helper, part, what, code, reason, **more):
    result = helper.collect(start(helper, "text", False, **more), ANSWER_S)[1]
    error = result.get("error", {})
    note(part, what, f"{error.get('code', 'answered')} {error.get('reason_code', '')}".strip(),
         (error.get("code"), error.get("reason_code")) == (code, reason))


def commands(block):
    """The commands of a block, each as one line, without the "&" that puts it into the background."""
    joined = block.replace("\\\n", " ")
    return [line.rstrip("& ").strip() for line in joined.splitlines() if line.strip() and not line.startswith("pip install")]


# ---- a llama.cpp server on another machine ----

def part_llama(folder):
    """The llama-server build of the benchmarks has no TLS: haproxy adds it, with the files that the page makes."""
    box, application = (os.path.join(folder, name) for name in ("box", "application"))
    for path in (box, application):
        os.makedirs(path)
    os.symlink(stage.SMALL_MODEL, os.path.join(box, "Qwen3-30B-A3B-Q4_K_M.gguf"))
    stage.wrapper(box, "llama-server", f"""for file in server.pem server.key; do cat "$file"; done > server.both
set -- "$@" --port 8080
while [ $# -gt 0 ]; do
  case $1 in --ssl-key-file | --ssl-cert-file) shift 2; continue ;; esac
  words="$words '$1'"; shift
done
eval exec {shlex.quote(stage.LLAMA_SERVER)} $words -t 1
""")
    [block] = blocks("A llama.cpp server", "sh")
    server = Program("llama-server", ["sh", "-ec", block], box)
    wait_for("llama-server", lambda: get("http://127.0.0.1:8080/health")[0] == 200, server)
    front = stage.haproxy("tls", box, {"gpu-box": 8080}, port=8443, certificate="server.both")
    for name in ("key.txt", "server.pem"):
        with open(os.path.join(box, name), "rb") as source, open(os.path.join(application, name), "wb") as copy:
            copy.write(source.read())
        os.chmod(os.path.join(application, name), 0o600)
    check = re.search(r"`(curl --cacert server\.pem.*?)`", section("A llama.cpp server"), re.S).group(1)
    done = subprocess.run(["bash", "-c", check.replace("\n", " ")], cwd=application, capture_output=True, text=True, check=False)
    note("llama.cpp", "the page's check with curl", "models are listed" if "data" in done.stdout else done.stderr,
         "data" in done.stdout)
    [config] = blocks("A llama.cpp server", "json")
    with helper_with(application, config) as helper:
        ask_each("llama.cpp", helper)
    with open(os.path.join(application, "key.txt"), "w", encoding="utf-8") as file:
        file.write("another-key")
    with helper_with(application, config, engine="remote") as helper:
        error_of(helper, "llama.cpp", "another key", "UNAVAILABLE", "AUTH_FAILED")
    front.kill()
    server.kill()


# ---- vLLM and its router ----

class Cluster:
    """The page's two workers, its router, and the proxy in front, which the page requires."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder)
        os.makedirs(os.path.join(folder, "Qwen"))
        os.symlink(stage.STAND_IN, os.path.join(folder, "Qwen", "Qwen3-8B"))
        stage.wrapper(folder, "vllm", f'exec {stage.VENV}/bin/vllm "$@" --dtype float32 --enforce-eager\n')
        *serves, self.route = commands(blocks("vLLM behind", "sh")[0])
        self.workers = [Worker(f"worker-{i}", line, folder) for i, line in enumerate(serves)]
        wait_for("vLLM", lambda: all(worker.ready() for worker in self.workers), *self.workers)
        self.router = None
        self.start_router(self.route)
        self.front = stage.haproxy("tls", folder, {"router.example": 8000}, {"router.example": KEY})
        [self.config] = blocks("vLLM behind", "json")

    def start_router(self, command):
        if self.router:
            self.router.kill()
        self.router = Program("router", ["sh", "-c", command], self.folder)
        wait_for("the router", self.routes, self.router)

    def routes(self):
        return get("http://127.0.0.1:8000/v1/models")[0] == 200 and get("http://127.0.0.1:8000/health")[0] == 200

    def repair(self):
        """Starts killed workers again, and waits until the router has both."""
        for i, worker in enumerate(self.workers):
            if worker.process.poll() is not None:
                self.workers[i] = worker.again()
        wait_for("vLLM", lambda: all(worker.ready() for worker in self.workers), *self.workers)
        self.start_router(self.route)

    def busy(self, since=0):
        """The worker that computes an answer and has made this many tokens; None: there is none yet."""
        for worker in self.workers:
            alive = worker.process.poll() is None and worker.running() > 0
            if alive and worker.metric("generation_tokens_total") >= worker.base + since:
                return worker
        return None

    def close(self):
        Program.kill_all()


def part_router(cluster):
    with helper_with(cluster.folder, cluster.config, ROUTER_KEY=KEY) as helper:
        ask_each("vllm-router", helper, model="qwen3")
        before = [worker.metric("request_success_total") for worker in cluster.workers]
        for talk in range(2):
            messages = [{"role": "user", "content": f"Conversation {talk}: hello."}]
            for _ in range(4):
                well, result, _ = ask(helper, "text", False, messages=messages, model="qwen3", max_tokens=12)
                assert well or result.get("ok"), result
                messages += [{"role": "assistant", "content": said(result["completion"]) or "."},
                             {"role": "user", "content": "Go on."}]
        counts = [int(worker.metric("request_success_total") - count) for worker, count in zip(cluster.workers, before)]
        note("vllm-router", "2 conversations of 4 turns, each on one worker", f"requests of the workers: {counts}",
             all(count % 4 == 0 for count in counts) and sum(counts) == 8)
    with helper_with(cluster.folder, cluster.config, engine="remote", ROUTER_KEY="another") as helper:
        error_of(helper, "vllm-router", "another key", "UNAVAILABLE", "AUTH_FAILED", model="qwen3")


def direct(cluster, dialect, **members):
    """A configuration that uses the router in another dialect, without the proxy."""
    return {"endpoints": [{"url": "http://127.0.0.1:8000/v1", "dialect": dialect, "models": ["Qwen/Qwen3-8B"], **members}]}


def part_dialects(cluster):
    """Runs the contract's test suite on a worker, in each dialect."""
    for dialect in DIALECTS:
        engine = os.path.join(ROOT, "build", "bin", "fm-engine-remote")
        suite = os.path.join(ROOT, "tests", "contract", "test_remote.py")
        done = subprocess.run([sys.executable, suite, engine, stage.SMALL_MODEL, dialect], capture_output=True, text=True,
                              check=False, env={**os.environ, "FM_REMOTE_SERVER": cluster.workers[0].url + "/v1,Qwen/Qwen3-8B"})
        ran = re.search(r"Ran (\d+) tests", done.stderr)
        failed = re.findall(r"^(?:FAIL|ERROR): (\w+)", done.stderr, re.M)
        skipped = re.search(r"skipped=(\d+)", done.stderr)
        if failed:
            stage.print_log(done.stderr[-6000:])
        note("vLLM", f"the contract's suite, `{dialect}`", f"{int(ran.group(1)) - len(failed) if ran else 0} of "
             f"{ran.group(1) if ran else '?'} pass" + (f", {skipped.group(1)} of them skipped" if skipped else "") +
             "".join(f"; {name}" for name in failed), bool(ran) and not failed)


def outcome_of(helper, call, kind, stream, server):
    """How a request ended after it lost its server: "answered", "ended" (a stream that reports an error), or a description of the
    fault."""
    _, result = helper.collect(call, ANSWER_S)
    if result.get("ok"):
        right = stream or fits(kind, result["completion"])
        return "answered" if right else f"answered otherwise: {result['completion']}"
    error = result["error"]
    told = error["code"] == "OVERLOADED" and error["openai"]["status"] == 503 and server in error["detail"]
    return "ended" if stream and told else f"{error['code']}: {error['detail']}"


def tell_kills(part, what, outcomes, hit):
    """`outcomes`: [(kind, stream, how it ended)]. Requests that are not streamed must be answered; a stream may end with its
    error. `hit`: {stream: how many requests lost their server}; if it is 0, the test has shown nothing."""
    for streamed in (False, True):
        ends = [end for _, stream, end in outcomes if stream == streamed]
        wrong = [f"{kind}: {end}" for kind, stream, end in outcomes
                 if stream == streamed and end != "answered" and not (stream and end == "ended")]
        told = f", {ends.count('ended')} ended with OVERLOADED (503) after their first output" if streamed else ""
        note(part, f"{what}: {'streamed' if streamed else 'not streamed'}", f"{hit[streamed]} of {len(ends)} lost their server; "
             f"{ends.count('answered')} answered{told}" + "".join(f"; {w}"[:300] for w in wrong), hit[streamed] > 0 and not wrong)


def kill_in(part, what, folder, config, middle, kill, times=1, **more):
    """Sends requests of all kinds, streamed and not. During them, kill() ends a server: when each streamed request has output
    (`middle`), or when the first of them has output. One helper has the streamed requests, another helper has the others. So
    their logs show how many requests of each form lost the server."""
    logs = {stream: os.path.join(folder, f"{'streamed' if stream else 'whole'}.log") for stream in (False, True)}
    server = config["endpoints"][0]["url"].split("/")[2]
    with contextlib.ExitStack() as stack:
        helpers = {stream: stack.enter_context(helper_with(folder, config, "remote", stack.enter_context(open(path, "wb"))))
                   for stream, path in logs.items()}
        calls = [(kind, stream, start(helpers[stream], kind, stream, **LONG[kind], **more))
                 for kind in [*LONG] * times for stream in (False, True)]
        streamed = [call for _, stream, call in calls if stream]
        for call in streamed if middle else streamed[:1]:
            helpers[True].event(call, timeout=ANSWER_S, keep=True)
        kill()
        outcomes = [(kind, stream, outcome_of(helpers[stream], call, kind, stream, server)) for kind, stream, call in calls]
    hit = {}
    for stream, path in logs.items():
        with open(path, encoding="utf-8") as log:
            hit[stream] = len(set(re.findall(r"job (\d+): \S+ failed", log.read())))
    tell_kills(part, f"SIGKILL {what}, {'in the middle of answers' if middle else 'at the beginning of the answers'}",
               outcomes, hit)


def part_kills(cluster):
    """Kills a worker (SIGKILL) that has requests of all kinds, in each dialect. --cb-failure-threshold: the router soon stops
    using it."""
    for dialect in DIALECTS:
        for middle in [True, False] * ROUNDS:
            cluster.repair()
            kill_in("vllm-router", f"of a worker, dialect `{dialect}`", cluster.folder, direct(cluster, dialect), middle,
                    lambda: max(cluster.workers, key=Worker.running).kill(), model="Qwen/Qwen3-8B")
    cluster.repair()


def part_drain(cluster):
    """Under load, one worker is removed from the router, ends when it is idle, starts again and is added again."""
    outcomes, over = [], threading.Event()

    def load(stream):
        with tempfile.TemporaryDirectory() as folder, helper_with(folder, direct(cluster, "chat"), engine="remote") as helper:
            while not over.is_set():
                well, result, _ = ask(helper, "text", stream, model="Qwen/Qwen3-8B", max_tokens=20)
                outcomes.append("" if well or result.get("ok") else str(result["error"]))

    threads = [threading.Thread(target=load, args=(stream,)) for stream in (False, True)]
    for thread in threads:
        thread.start()
    router, old = "http://127.0.0.1:8000", cluster.workers[0]
    status = get(f"{router}/remove_worker?url={old.url}", method="POST")[0]
    wait_for("the worker to be idle", lambda: old.running() == 0, old, seconds=ANSWER_S)
    old.kill(signal.SIGTERM)
    gone = len(outcomes)
    wait_for("answers of the other one", lambda: len(outcomes) > gone + 4, seconds=ANSWER_S)
    cluster.workers[0] = old.again()
    wait_for("vLLM", cluster.workers[0].ready, cluster.workers[0])
    added = get(f"{router}/add_worker?url={old.url}", method="POST")[0]
    new = len(outcomes)
    wait_for("answers of both", lambda: len(outcomes) > new + 10, seconds=ANSWER_S)
    over.set()
    for thread in threads:
        thread.join()
    failed = [outcome for outcome in outcomes if outcome]
    note("vllm-router", "a worker drained, ended, started and added, under load",
         f"{len(outcomes) - len(failed)} of {len(outcomes)} answered" + "".join(f"; {w}"[:300] for w in failed[:2]),
         not failed and status == 200 and added == 200)


def part_cancel(cluster):
    """An abort ends the work in the worker: the worker has no request any more, long before the answer would have ended."""
    for dialect in DIALECTS:
        with helper_with(cluster.folder, direct(cluster, dialect), engine="remote") as helper:
            for worker in cluster.workers:
                worker.base = worker.metric("generation_tokens_total")
            call = start(helper, "text", False, model="Qwen/Qwen3-8B", max_tokens=3000)
            found = []
            wait_for("an answer under way", lambda: found.append(cluster.busy(5)) or found[-1] is not None, seconds=ANSWER_S)
            worker, before = found[-1], time.monotonic()
            helper.send("$/cancelRequest", {"id": call})
            error = helper.collect(call, ANSWER_S)[1]["error"]
            wait_for("the worker to be idle", lambda: worker.running() == 0, worker, seconds=60)
            took = time.monotonic() - before
            made = int(worker.metric("generation_tokens_total") - worker.base)
            note("cancel", f"`{dialect}`: the worker stops",
                 f"{error['code']}; idle {took:.1f} s later, after {made} tokens of 3000",
                 error["code"] == "CANCELLED" and made < 1500)


def part_smg(cluster):
    line = re.search(r"`(smg launch --worker-urls \.\.\. [^`]*)`", section("vLLM behind").replace("\n", " ")).group(1)
    urls = " ".join(worker.url for worker in cluster.workers)
    cluster.start_router(re.sub(r" +", " ", line).replace("...", urls))
    with helper_with(cluster.folder, cluster.config, ROUTER_KEY=KEY) as helper:
        ask_each("SMG", helper, model="qwen3")


# ---- Ray Serve LLM ----

def replicas():
    """The processor time of Ray's answering processes, with their children: {pid: seconds}."""
    found = {}
    for pid in stage.family(os.getpid()):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
            if re.match("ray::ServeReplica:.*LLMServer", file.read()):
                found[pid] = sum(stage.family(pid).values())
    return found


def kill_replica():
    """Kills the replica that is computing, and its children, with SIGKILL."""
    before = replicas()

    def most():
        """The process that has computed most since `before`, and for how many seconds: (seconds, process id)."""
        return max((seconds - before.get(pid, seconds), pid) for pid, seconds in replicas().items())
    wait_for("a replica that computes an answer", lambda: most()[0] > 0.3, seconds=ANSWER_S)
    for pid in stage.family(most()[1]):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


# `serve` with the settings that a machine without GPUs needs, like the wrapper of `vllm`.
SERVE = """exec {python} - "$@" <<'END'
import sys, yaml
with open(sys.argv[2]) as file:
    told = yaml.safe_load(file)
for config in told["applications"][0]["args"]["llm_configs"]:
    config["placement_group_config"] = {{"bundles": [{{"CPU": 1}}]}}
    config["engine_kwargs"].update(dtype="float32", enforce_eager=True)
with open("cpu.yaml", "w") as file:
    yaml.safe_dump(told, file)
sys.argv[2] = "cpu.yaml"
from ray.serve.scripts import cli
cli()
END
"""


def part_ray(folder):
    os.makedirs(os.path.join(folder, "Qwen"))
    stage.wrapper(folder, "serve", SERVE.format(python=os.path.join(stage.VENV, "bin", "python")))
    os.symlink(stage.STAND_IN, os.path.join(folder, "Qwen", "Qwen3-8B"))
    env = {"RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60", "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "60",
           "RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "120",  # for a slow machine
           # also for a slow machine: Ray must not give up a replica that is still starting
           "RAY_worker_register_timeout_seconds": "600",
           "RAY_DEDUP_LOGS": "0"}  # else Ray leaves out the second replica's equal log lines
    ray = Program("ray", ["ray", "start", "--head", "--block", "--num-cpus", "8", "--include-dashboard=false"], folder, **env)
    wait_for("Ray", lambda: ray.says("Ray runtime started"), ray)
    block = blocks("A cluster", "sh")[1]
    first, _, check = block.partition("serve run serve.yaml\n")
    serve = Program("serve", ["bash", "-ec", first.replace("pip install", "true") + "exec serve run serve.yaml"], folder, **env)
    wait_for("Ray Serve", lambda: serve.says("Started vLLM engine") >= 2, serve, ray)
    done = subprocess.run(["bash", "-ec", check], capture_output=True, text=True, check=False)
    note("Ray Serve LLM", "the page's check with curl", "qwen3 is listed" if "qwen3" in done.stdout else done.stderr,
         "qwen3" in done.stdout)
    front = stage.haproxy("tls", folder, {"llm.cluster.example": 8000, "api.openai.com": 8002},
                          {"llm.cluster.example": KEY, "api.openai.com": "sk-openai"})
    with open(os.path.join(folder, "cluster.key"), "w", encoding="utf-8") as file:
        file.write(KEY + "\n")
    os.chmod(file.name, 0o600)
    [config] = blocks("A cluster", "json")
    with helper_with(folder, config, OPENAI_API_KEY="sk-openai") as helper:
        ask_each("Ray Serve LLM", helper, model="assistant")
    direct_config = {"endpoints": [{"url": "http://127.0.0.1:8000/v1", "dialect": "chat", "models": ["qwen3"]}]}
    for turn, middle in enumerate([True, False] * ROUNDS):
        wait_for("two replicas", lambda: serve.says("Started vLLM engine") >= 2 + turn, serve, ray)
        kill_in("Ray Serve LLM", "of a replica", folder, direct_config, middle, kill_replica,
                times=2)  # so that each replica gets some requests
    serve.kill(signal.SIGTERM)
    ray.kill()
    wait_for("the end of the cluster", lambda: not stage.listens(8000), seconds=ANSWER_S)  # remaining processes may still answer
    stage.wrapper(folder, "vllm", f'exec {stage.VENV}/bin/vllm "$@" --dtype float32 --enforce-eager\n')
    other = Worker("openai", "vllm serve Qwen/Qwen3-8B --served-model-name gpt-5.4-mini --port 8002 --reasoning-parser qwen3 "
                   "--enable-auto-tool-choice --tool-call-parser hermes --tool-strict-level parameter", folder)
    wait_for("vLLM", other.ready, other)
    with helper_with(folder, config, OPENAI_API_KEY="sk-openai") as helper:
        ask_each("Ray Serve LLM", helper, what="the same, when the cluster has gone: the second endpoint answers",
                 model="assistant")
    front.kill()
    other.kill()


def end(number, _frame):
    """Ends the run normally, with everything that it has started; does so only once."""
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    parts = sys.argv[1:] or ["llama", "router", "dialects", "kills", "drain", "cancel", "smg", "ray"]
    on_cluster = {"router": part_router, "dialects": part_dialects, "kills": part_kills, "drain": part_drain,
                  "cancel": part_cancel, "smg": part_smg}
    unknown = [part for part in parts if part not in (*on_cluster, "llama", "ray")]
    if unknown:
        sys.exit(f"unknown part {unknown[0]}\n{__doc__}")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    stage.adopt()
    with tempfile.TemporaryDirectory() as folder:
        stage.prepare(folder)
        try:
            if "llama" in parts:
                part_llama(os.path.join(folder, "llama"))
            if any(part in on_cluster for part in parts):
                cluster = Cluster(os.path.join(folder, "vllm"))
                for part in parts:
                    if part in on_cluster:
                        on_cluster[part](cluster)
                cluster.close()
            if "ray" in parts:
                part_ray(os.path.join(folder, "ray"))
        finally:
            Program.kill_all()
    print("| Part | What | Result |\n|---|---|---|")
    for part, what, result, right in rows:
        print(f"| {part} | {what} | {'' if right else '**FAILED** '}{result} |")
    failed = sum(not right for *_, right in rows)
    print(f"\n{len(rows) - failed} passed, {failed} failed")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
