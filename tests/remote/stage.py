"""The environment for cluster.py: docs/scaling.md's blocks, unchanged; the names of its machines; TLS; programs that are
watched.

It runs in separate network and mount namespaces (cluster.sh), so the page's ports and names are free.
"""

import contextlib
import ctypes
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PAGE = os.path.join(ROOT, "docs", "scaling.md")
LLAMA_SERVER = os.path.join(ROOT, "build", "deps", "llama-server", "bin", "llama-server")
SMALL_MODEL = os.path.join(ROOT, "build", "models", "SmolLM2-135M-Instruct.Q4_1.gguf")
VENV = os.environ["FM_VLLM_VENV"]
STAND_IN = os.environ["FM_STAND_IN"]
START_S = 1800  # the longest time for the start of a server, which imports gigabytes on two shared processors
NAMES = ("gpu-box", "router.example", "llm.cluster.example", "api.openai.com")
# Settings that programs on this machine need in addition to those of the page: there is no GPU, and nothing may be downloaded.
VLLM_ENV = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1", "NO_COLOR": "1"}


# ---- the page ----

def section(title):
    """The text of docs/scaling.md below the heading that begins with `title`, up to the next one."""
    with open(PAGE, encoding="utf-8") as file:
        parts = re.split(r"^## ", file.read(), flags=re.M)
    [found] = [part for part in parts if part.startswith(title)]
    return found


def blocks(title, kind):
    """The code blocks of that kind in a section."""
    return re.findall(rf"^```{kind}\n(.*?)^```", section(title), re.M | re.S)


# ---- names, certificates ----

def bind(path, text, folder):
    """Makes `text` the content of the file `path` for all processes in this namespace."""
    own = os.path.join(folder, os.path.basename(path))
    with open(own, "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["mount", "--bind", own, path], check=True)


def prepare(folder):
    """Makes the page's names lead to this machine, and its certificate authority trusted by all programs."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    bind("/etc/hosts", "127.0.0.1 localhost " + " ".join(NAMES) + "\n", folder)
    pem, key = os.path.join(folder, "site.pem"), os.path.join(folder, "site.key")
    names = ",".join(f"DNS:{name}" for name in NAMES)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", pem,
                    "-subj", "/CN=router.example", "-addext", f"subjectAltName={names}"], check=True, capture_output=True)
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    with open(bundle, encoding="utf-8") as file, open(pem, encoding="utf-8") as own:
        bind(bundle, file.read() + own.read(), folder)
    with open(os.path.join(folder, "site.both"), "w", encoding="utf-8") as both:
        for path in (pem, key):
            with open(path, encoding="utf-8") as file:
                both.write(file.read())


# ---- programs ----

def family(pid):
    """A process and all its descendants: {pid: processor time in seconds}."""
    table, found = {}, {}
    for other in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{other}/stat", encoding="latin-1") as file:
            fields = file.read().rsplit(")", 1)[1].split()
            table[int(other)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    ours = [pid]
    for one in ours:
        found[one] = table.get(one, (0, 0))[1]
        ours += [child for child, (parent, _) in table.items() if parent == one]
    return found


def adopt():
    """Orphaned children of our programs become children of this process, so that kill_all() finds them."""
    set_child_subreaper = 36  # sys/prctl.h
    if ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


class Program:
    """A program and all that it starts, in a separate process group; its output goes into a file."""

    running = []

    def __init__(self, name, command, folder, **env):
        self.name = name
        self.log = os.path.join(folder, name + ".log")
        path = os.pathsep.join([os.path.join(folder, "bin"), os.environ["PATH"], os.path.join(VENV, "bin")])
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, cwd=folder, env={**os.environ, **VLLM_ENV, "PATH": path, **env},
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                            start_new_session=True)
        Program.running.append(self)

    def kill(self, number=signal.SIGKILL):
        """Ends the program, its process group, and processes that it has started in other groups, as Ray does."""
        for send, target in [(os.killpg, self.process.pid)] + [(os.kill, pid) for pid in family(self.process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                send(target, number)
        self.process.wait()
        if self in Program.running:
            Program.running.remove(self)

    def tail(self):
        with open(self.log, "rb") as log:
            return log.read()[-3000:].decode(errors="replace")

    def says(self, text):
        """How often the program's log contains this text."""
        with open(self.log, "rb") as log:
            return log.read().count(text.encode())

    @classmethod
    def kill_all(cls):
        """Ends all programs, and the processes that they left behind."""
        for program in list(cls.running):
            program.kill()
        while left := [pid for pid in family(os.getpid()) if pid != os.getpid()]:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, 0)


def get(url, timeout=30, headers=None, method="GET"):
    """Returns (status, text) of a plain request to this machine; (0, "") if nothing answers."""
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=timeout)
    try:
        connection.request(method, "/" + path, headers=headers or {})
        reply = connection.getresponse()
        return reply.status, reply.read().decode(errors="replace")
    except OSError:
        return 0, ""
    finally:
        connection.close()


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(what, ready, *programs, seconds=START_S):
    """Waits until `ready()` is true. If a program ends, or it takes too long, shows the end of the program's log."""
    deadline = time.monotonic() + seconds
    while not ready():
        ended = [program for program in programs if program.process.poll() is not None]
        if ended or time.monotonic() > deadline:
            logs = "\n".join(f"--- {program.name}\n{program.tail()}" for program in ended or programs)
            raise AssertionError(f"{what}: {'it ended' if ended else 'it took too long'}\n{logs}")
        time.sleep(0.2)  # the programs do not report when they are ready


def wrapper(folder, name, script):
    """Makes a program of this name that is found before those of the system and of the virtual environment."""
    os.makedirs(os.path.join(folder, "bin"), exist_ok=True)
    path = os.path.join(folder, "bin", name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + script)
    os.chmod(path, 0o755)


def haproxy(name, folder, backends, keys=None, port=443, certificate="../site.both"):
    """Adds TLS in front of plain servers, chosen by the requested name: {name: port}. `keys`: {name: the required key}. The
    certificate is that of `prepare`, in the parent folder, or another one in `folder`."""
    lines = ["global", " log stderr format raw daemon info", "defaults", " mode http", " timeout connect 5s",
             " timeout client 900s", " timeout server 900s", "frontend all",
             f" bind 127.0.0.1:{port} ssl crt {os.path.join(folder, certificate)} alpn http/1.1"]
    for site, key in (keys or {}).items():
        lines.append(f' http-request deny deny_status 401 if {{ hdr(host) -i {site} }} !{{ hdr(authorization) "Bearer {key}" }}')
    lines += [f" use_backend {site} if {{ hdr(host) -m beg -i {site} }}" for site in backends]
    for site, target in backends.items():
        lines += [f"backend {site}", f" server one 127.0.0.1:{target}"]
    config = os.path.join(folder, name + ".cfg")
    with open(config, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    found = [os.path.join(at, "haproxy") for at, _, files in os.walk(os.path.join(VENV, "lib")) if "haproxy" in files
             and at.endswith("bin")]
    program = Program(name, [found[0], "-db", "-f", config], folder)
    wait_for("haproxy", lambda: listens(port), program)
    return program


# ---- vLLM's workers ----

class Worker(Program):
    """`vllm serve` with the page's own command line, without the options for a GPU."""

    def __init__(self, name, command, folder):
        self.port = int(re.search(r"--port (\d+)", command).group(1))
        self.command = command
        super().__init__(name, ["sh", "-c", command], folder)

    def again(self):
        """Starts the same worker again."""
        return Worker(self.name, self.command, os.path.dirname(self.log))

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ready(self):
        return get(self.url + "/health")[0] == 200

    def metric(self, name, *labels):
        """The sum of the values of a counter or gauge, over the lines that have all these labels."""
        status, text = get(self.url + "/metrics")
        rows = re.findall(rf"^vllm:{name}(\{{[^}}]*\}})? ([0-9.e+-]+)$", text if status == 200 else "", re.M)
        return sum(float(value) for found, value in rows if all(label in found for label in labels))

    def running(self):
        return self.metric("num_requests_running")


def print_log(text):
    print(text, file=sys.stderr, flush=True)
