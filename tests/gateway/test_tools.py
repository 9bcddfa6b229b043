#!/usr/bin/env python3
"""
The tool bash and fm-tool-run, attacked: whatever a command does, its processes are gone when its result comes, and within 2 s
of the gateway's death. The tests run in the namespace that the kernel gives to root, in that of a normal user, and without one.
"""
import ctypes
import hashlib
import json
import os
import pwd
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from tools import (DRIVER, NO_LANDLOCK, NO_NAMESPACE, NOBODY, ROOT, RUNNER, Driver, as_nobody, landlock_abi, memfd,  # noqa: E402
                   processes, wait_until)
from patience import SANITIZED, WAIT, TimedTest  # noqa: E402

counter = iter(range(10**6))
LEAST_PID_MAX = 301  # the kernel accepts no lower value (RESERVED_PIDS + 1 in kernel/pid.c)


def marker():
    """A text that is in no other command line: a time for sleep."""
    return f"7{os.getpid():07d}{next(counter):04d}"


def namespaces(nobody):
    """Whether this machine lets us (or the user nobody) create PID and mount namespaces with their own /proc."""
    own = [] if ROOT and not nobody else ["--user", "--map-root-user"]
    command = "mount --make-rprivate / || mount --make-private /proc; mount -t proc proc /proc"
    return subprocess.run(["unshare", *own, "--mount", "--pid", "--fork", "--propagation", "unchanged", "sh", "-c", command],
                          preexec_fn=as_nobody if nobody else None, capture_output=True).returncode == 0


class Plain(unittest.TestCase):
    def test_results(self):
        rows = (
            ("echo out; echo err >&2", "out\nerr\n", 0),
            ("exit 7", "", 7),
            ("kill -9 $$", "", 137),
            ("cat", "", 0),  # it has no input
            ("tty", "not a tty\n", 1),
            ("printf 'gr\\303\\274n'", "grün", 0),
            ("printf 'a\\377b'", "a\ufffdb", 0),
            ("no-such-command-here 2>/dev/null", "", 127),
            ("cd /usr && pwd", "/usr\n", 0),
            ("diff <(echo 1) <(echo 1)", "", 0),  # this needs /proc in the namespace
        )
        with Driver() as driver:
            for command, output, code in rows:
                with self.subTest(command):
                    result = driver.bash(command)
                    self.assertEqual((result["output"], result.get("exitCode"), result["end"]), (output, code, "done"))
                    self.assertFalse(result["truncated"])

    def test_what_is_shown(self):
        rows = (
            ("echo hello", "echo hello", "echo hello", False),
            ("echo a\n\techo b", "echo a  echo b", "echo a\n\techo b", False),
            ("echo \u202e'x'", "echo <U+202E>'x'", "echo <U+202E>'x'", True),
            ("a\x1b[2Jb\r", "a<U+001B>[2Jb<U+000D>", "a<U+001B>[2Jb<U+000D>", True),
            ("r\u200bm\u00a0-rf", "r<U+200B>m<U+00A0>-rf", "r<U+200B>m<U+00A0>-rf", True),
            ("echo ü \u4e2d \U0001f600", "echo ü \u4e2d \U0001f600", "echo ü \u4e2d \U0001f600", False),
        )
        with Driver() as driver:
            for command, summary, shown, escaped in rows:
                with self.subTest(command):
                    request = driver.prepare("bash", {"command": command}, "/usr/lib/..")
                    details = {"command": shown, "workingDir": "/usr"}
                    if escaped:
                        details["escaped"] = True
                    self.assertEqual(request["details"], details)
                    self.assertEqual(request["summary"], summary)
                    self.assertIs(request["requiresApproval"], True)
                    driver.send(op="free", id=driver.next_id)
            long = driver.prepare("bash", {"command": "echo " + "x" * 16_384 + "; rm -rf /"})
            self.assertEqual(len(long["summary"]), 203)
            self.assertTrue(long["details"]["command"].endswith("; rm -rf /"))
            driver.send(op="free", id=driver.next_id)

    def test_bad_input(self):
        rows = (
            ("bash", {}, "INVALID_REQUEST", "command"),
            ("bash", {"command": 1}, "INVALID_REQUEST", "command"),
            ("bash", {"command": ""}, "INVALID_REQUEST", "command"),
            ("bash", {"command": "a\0b"}, "INVALID_REQUEST", "command"),
            ("bash", {"command": "x" * 100_001}, "INVALID_REQUEST", "command"),
            ("bash", {"command": "x", "cwd": "/"}, "INVALID_REQUEST", "cwd"),
            ("bash", ["x"], "INVALID_REQUEST", ""),
            ("bash", None, "INVALID_REQUEST", ""),
            ("python", {}, "NOT_FOUND", ""),
        )
        with Driver() as driver:
            for tool, call_input, code, param in rows:
                with self.subTest(tool=tool, call_input=str(call_input)[:40]):
                    answer = driver.prepare(tool, call_input)
                    self.assertEqual((answer["error"], answer["param"]), (code, param))
            self.assertIn("/no/such", driver.prepare("bash", {"command": "x"}, "/no/such")["detail"])
            self.assertIn("Not a directory", driver.prepare("bash", {"command": "x"}, "/etc/passwd")["detail"])

    def test_head_and_tail(self):
        """A command writes 1 GB, and the omitted bytes are counted exactly."""
        size = 50_000_000 if SANITIZED else 1_000_000_000
        with Driver() as driver:
            result = driver.bash(f"echo first; yes grün | head -c {size}; echo; echo last")
            self.assertTrue(result["truncated"])
            text = result["output"]
            self.assertLessEqual(len(text.encode()), 100_000)
            self.assertTrue(text.startswith("first\ngrün\n") and text.endswith("\nlast\n"))
            head, line, tail = text.partition("\n[... ")
            count, _, tail = tail.partition(" bytes are left out here ...]\n")
            self.assertEqual(int(count) + len(head.encode()) + len(tail.encode()), size + 12)
            if not SANITIZED:
                self.assertLess(driver.peak_memory(), 32 << 20)

    def test_several_at_once(self):
        with Driver() as driver:
            for i in range(8):
                driver.prepare("bash", {"command": f"echo {i}"})
                driver.start()
            got = set()
            while len(got) < 8:
                line = driver.line()
                if "end" in line:
                    got.add((line["id"], line["output"]))
            self.assertEqual(got, {(i + 1, f"{i}\n") for i in range(8)})

    def test_progress(self):
        with Driver() as driver:
            driver.prepare("bash", {"command": "echo x; sleep 60"})
            driver.start()
            self.assertRegex(driver.line()["progress"], r"Running for \d+ s, 2 bytes of output")
            driver.abort()
            self.assertEqual(driver.result()["end"], "aborted")

    def test_a_link_that_is_swapped_after_approval(self):
        with tempfile.TemporaryDirectory() as folder, Driver() as driver:
            link = os.path.join(folder, "link")
            for name in ("approved", "other"):
                os.mkdir(os.path.join(folder, name))
            os.symlink("approved", link)
            request = driver.prepare("bash", {"command": "pwd -P; touch here"}, link)
            self.assertEqual(request["details"]["workingDir"], os.path.join(os.path.realpath(folder), "approved"))
            os.remove(link)
            os.symlink("other", link)
            driver.start()
            self.assertTrue(driver.result()["output"].endswith("/approved\n"))
            self.assertEqual(os.listdir(os.path.join(folder, "approved")), ["here"])
            self.assertEqual(os.listdir(os.path.join(folder, "other")), [])

    def test_a_missing_runner(self):
        driver = Driver(runner="/no/such/fm-tool-run")
        self.assertIn("/no/such/fm-tool-run", driver.line()["detail"])
        self.assertEqual(driver.close(), 2)


class Frozen(unittest.TestCase):
    """Tests the runner itself, which only accepts the approved bytes."""

    def run_job(self, data, digest=None, sealed=True):
        ours, theirs = socket.socketpair()
        job, folder = memfd(data, sealed), os.open("/", os.O_PATH)
        moved = [fd for fd in (theirs.fileno(), job, folder)]

        def arrange():
            high = [os.dup2(fd, 100 + i) for i, fd in enumerate(moved)]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i, inheritable=True)

        runner = subprocess.Popen([RUNNER], preexec_fn=arrange, close_fds=False, stdout=subprocess.DEVNULL)
        theirs.close()
        ours.sendall((digest or hashlib.sha256(data).hexdigest()).encode())
        ours.settimeout(WAIT)
        answer = b""
        while piece := ours.recv(4096):
            answer += piece
        runner.wait(WAIT)
        ours.close()
        os.close(job)
        os.close(folder)
        return json.loads(answer)

    def job(self, command, **more):
        return json.dumps({"argv": ["bash", "-c", command], "env": ["PATH=" + os.environ["PATH"]], "hidden": [],
                           "sandbox": "off", "private": "", "folder_writable": True, "pipes": False, "timeout_ms": 60000,
                           "processes": 1000, **more}).encode()

    def test_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            done = os.path.join(folder, "done")
            good = self.job(f"touch {done}")
            other = hashlib.sha256(good + b" ").hexdigest()
            rows = (
                ("another digest", good, {"digest": other}, "not the one that was approved"),
                ("not sealed", good, {"sealed": False}, "not sealed"),
                ("no JSON", b"{", {}, "wire.h"),
                ("no command", self.job("x", argv=[]), {}, "wire.h"),
                ("a word", self.job("x", sandbox="some"), {}, "wire.h"),
            )
            for name, data, more, expected in rows:
                with self.subTest(name):
                    answer = self.run_job(data, **more)
                    self.assertEqual(answer["end"], "failed")
                    self.assertIn(expected, answer["error"])
                    self.assertFalse(os.path.exists(done))
            self.assertEqual(self.run_job(good)["end"], "exit")
            self.assertTrue(os.path.exists(done))

    def test_a_program_that_is_not_there(self):
        answer = self.run_job(self.job("x", argv=["no-such-program"]))
        self.assertIn("no-such-program can't be run", answer["error"])


class Ends(TimedTest):
    """No process is left after a command. Uses root's namespace if the tests run as root."""

    rules = ()
    nobody = False
    namespace = True

    @classmethod
    def setUpClass(cls):
        if cls.namespace and not namespaces(cls.nobody):
            raise unittest.SkipTest(f"no namespace is given to {'normal users' if cls.nobody else 'this user'} here")

    def driver(self, **config):
        return Driver(rules=self.rules, nobody=self.nobody, **config)

    def assert_gone(self, mark):
        self.assertEqual(processes(mark), [])

    def test_the_namespace(self):
        with self.driver() as driver:
            self.assertIs(driver.bash("true")["namespace"], self.namespace)

    def test_what_is_left_in_the_background(self):
        rows = (
            "sleep {0} & echo on",
            "(setsid sleep {0} >/dev/null 2>&1 &); echo on",
            "setsid bash -c '(setsid sleep {0} &) & exit'; echo on",
            "trap '' TERM; (trap '' TERM HUP; sleep {0}) & echo on",
            "for i in 1 2 3 4 5 6 7 8; do (sleep {0} & sleep {0}) & done; echo on",
            "python3 -c 'import os,time; os.fork() or os.setsid() or os.fork() or [os.close(i) for i in range(3)] and "
            "time.sleep({0})' & sleep 0.3; echo on",
        )
        with self.driver() as driver:
            for row in rows:
                with self.subTest(row):
                    mark = marker()
                    result = driver.bash(row.format(mark))
                    self.assertEqual((result["output"], result["end"]), ("on\n", "done"))
                    self.assert_gone(mark)

    def test_abort(self):
        rows = ("sleep {0}", "trap '' TERM INT HUP; sleep {0}; sleep {0}", "(setsid sleep {0} &); sleep {0}",
                "kill -STOP $$; sleep {0}")
        with self.driver() as driver:
            for row in rows:
                with self.subTest(row):
                    mark = marker()
                    driver.prepare("bash", {"command": "echo x; " + row.format(mark)})
                    driver.start()
                    wait_until(lambda: processes(mark))
                    begun = time.monotonic()
                    driver.abort()
                    driver.abort()
                    result = driver.result()
                    self.assert_soon(time.monotonic() - begun, 2)
                    self.assertEqual(result["end"], "aborted")
                    self.assertTrue(result["output"].endswith("[The command was aborted.]"), result["output"])
                    self.assertNotIn("exitCode", result)
                    self.assert_gone(mark)

    def test_time_limit(self):
        mark = marker()
        with self.driver(timeout=300) as driver:
            result = driver.bash(f"trap '' TERM; (setsid sleep {mark} &); while :; do sleep {mark}; done")
            self.assertEqual(result["end"], "timeout")
            self.assertIn("time limit of 300 ms", result["output"])
            self.assert_gone(mark)

    def test_sigterm_comes_first(self):
        with self.driver(timeout=500) as driver:
            result = driver.bash("trap 'echo cleaned; exit' TERM; while :; do sleep 0.05; done")
            self.assert_undisturbed("cleaned\n" in result["output"], result["output"])

    def test_the_gateway_is_killed(self):
        for row in ("sleep {0}", "trap '' TERM; (setsid sleep {0} &); sleep {0}"):
            with self.subTest(row):
                mark = marker()
                driver = self.driver()
                driver.prepare("bash", {"command": row.format(mark) + "; exit"})
                driver.start()
                wait_until(lambda: processes(f"sleep\0{mark}"))
                begun = time.monotonic()
                driver.process.kill()
                wait_until(lambda: not processes(mark))
                self.assert_soon(time.monotonic() - begun, 2)
                driver.close()

    def test_a_command_that_kills_its_watcher(self):
        mark = marker()
        with self.driver() as driver:
            result = driver.bash(f"sleep {mark} & kill -9 $PPID; sleep 0.2; echo on")
            if self.namespace:  # a command in a namespace can't kill the runner
                self.assertEqual((result["end"], result["output"]), ("done", "on\n"))
            else:
                self.assertEqual(result["end"], "failed")
                self.assertIn("was killed", result["output"])
            self.assert_gone(mark)

    def test_too_many_processes(self):
        """
        RLIMIT_NPROC limits users, the namespace's pid_max limits root. No command here starts more than 60 processes at a
        time, whether the limit works or not: an unlimited fork bomb would stop the machine.
        """
        mark = marker()
        with self.driver(timeout=5000, processes=20) as driver:
            if ROOT and not self.nobody:
                if not driver.bash("true")["namespace"]:  # asks the driver, because self.namespace is only the expectation
                    self.skipTest("without a namespace nothing bounds the processes of root")
                if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < (6, 14):
                    self.skipTest("before Linux 6.14 a namespace has no limit of its own")
                result = driver.bash("cat /proc/sys/kernel/pid_max; most=0; for i in {1..350}; do /bin/true & "
                                     "((most = $! > most ? $! : most)); wait; done; echo $most")
                limit, most = map(int, result["output"].split())
                self.assertEqual(limit, LEAST_PID_MAX)
                self.assertLess(most, limit)
                return
            result = driver.bash(f"LC_ALL=C; for i in {{1..60}}; do sleep {mark} & done; wait")
            self.assertEqual(result["end"], "timeout")
            self.assertIn("Resource temporarily unavailable", result["output"])
            self.assert_gone(mark)

    def test_environment(self):
        canary = "sk-canary-" + marker()
        env = {"ANTHROPIC_API_KEY": canary, "PROJ_JARVIS_TOKEN": canary, "SSH_AUTH_SOCK": canary, "BASH_ENV": canary,
               "LC_TIME": "C"}
        with Driver(env=env, rules=self.rules, nobody=self.nobody) as driver:
            result = driver.bash("env")
            self.assertNotIn(canary, result["output"])
            names = {line.partition("=")[0] for line in result["output"].splitlines()}
            self.assertIn("LC_TIME", names)
            self.assertLessEqual(names, {"HOME", "LANG", "LANGUAGE", "LC_TIME", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL",
                                         "TMPDIR", "TZ", "USER", "TERM", "PWD", "SHLVL", "_", "OLDPWD"})
            if self.namespace:  # other processes must not be visible in the namespace
                result = driver.bash("cat /proc/*/environ | tr '\\0' '\\n'; ls /proc | grep -c '^[0-9]'")
                self.assertNotIn(canary, result["output"])
                self.assertLess(int(result["output"].split()[-1]), 8)

    def test_descriptors(self):
        probe = "import os; print([fd for fd in range(4096) if os.path.exists(f'/proc/self/fd/{fd}')])"
        with self.driver() as driver:
            self.assertEqual(driver.bash(f'python3 -c "{probe}"')["output"], "[0, 1, 2]\n")


@unittest.skipUnless(ROOT, "only root makes a chroot")
class Chroot(unittest.TestCase):
    """A root that is not a mount point, as in most chroots: missing features there must not lead to a weaker sandbox."""

    SETUP = """cd "$1"
               for one in /usr /etc /proc /dev /tmp /bin /lib /lib64 "$2"; do
                 if [ -L "$one" ]; then cp -P "$one" ".$one"; fi
                 if [ ! -L "$one" ] && [ -d "$one" ]; then mkdir -p ".$one"; mount --rbind "$one" ".$one"; fi
               done
               exec chroot . "$3" """

    def driver(self, **config):
        root = tempfile.mkdtemp(prefix="fm-root-", dir="/var/tmp")  # not in /tmp, because that is mounted in it
        self.addCleanup(shutil.rmtree, root)
        build = os.path.realpath(os.path.join(os.path.dirname(DRIVER), ".."))
        return Driver(command=["unshare", "--mount", "sh", "-euc", self.SETUP, "sh", root, build, DRIVER], **config)

    def setUp(self):
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("no namespace for mounts is to be had here, or this is a chroot already")
        self.home = tempfile.mkdtemp(prefix="fm-home-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.home)
        os.mkdir(os.path.join(self.home, ".ssh"))

    def test_a_namespace_and_the_folder(self):
        with self.driver() as driver:
            result = driver.bash("pwd -P; python3 -c 'import os; print(os.getcwd())'; ls /proc | grep -c '^[0-9]'", self.home)
            self.assertTrue(result["namespace"])
            here, python, processes_seen = result["output"].split()
            self.assertEqual((here, python), (self.home, self.home))
            self.assertLess(int(processes_seen), 8)

    @unittest.skipUnless(landlock_abi() >= 2, "this kernel has no Landlock")
    def test_a_folder_that_holds_keys_is_refused(self):
        with self.driver(env={"HOME": self.home}, sandbox="write") as driver:
            for folder in (self.home, os.path.join(self.home, ".ssh")):
                with self.subTest(folder):
                    self.assertEqual(driver.bash("touch ran", folder)["end"], "failed")
                    self.assertNotIn("ran", os.listdir(folder))


class EndsWithoutNamespace(Ends):
    rules = NO_NAMESPACE
    namespace = False


@unittest.skipUnless(ROOT, "is the first class for a normal user")
class EndsAsNobody(Ends):
    nobody = True


@unittest.skipUnless(ROOT, "is the second class for a normal user")
class EndsAsNobodyWithoutNamespace(Ends):
    nobody = True
    rules = NO_NAMESPACE
    namespace = False


@unittest.skipUnless(landlock_abi() >= 2, "this kernel has no Landlock")
class Sandbox(unittest.TestCase):
    """What a command can't do with tools.sandbox, as root if this is root, and as a normal user."""

    nobody = False

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="fm-home-")
        self.addCleanup(shutil.rmtree, self.home)
        for name in (".ssh", ".aws", "work", "other", ".proj-jarvis"):
            os.mkdir(os.path.join(self.home, name))
        self.write(".ssh/id", "SECRET")
        self.write(".netrc", "SECRET")
        self.write(".proj-jarvis/token", "SECRET")
        self.write("other/file", "content")
        self.work = os.path.join(self.home, "work")
        os.symlink("../.ssh/id", os.path.join(self.work, "link"))
        if self.nobody:
            for folder, _, files in os.walk(self.home):
                os.chown(folder, NOBODY, NOBODY)
                for name in files:
                    os.chown(os.path.join(folder, name), NOBODY, NOBODY, follow_symlinks=False)

    def write(self, name, text):
        with open(os.path.join(self.home, name), "w", encoding="ascii") as file:
            file.write(text)

    def driver(self, sandbox, rules=(), **config):
        return Driver(env={"HOME": self.home}, sandbox=sandbox, nobody=self.nobody, rules=rules, **config)

    ATTEMPTS = (
        "echo x > ../other/file", "echo x > ../new", "rm ../other/file", "mkdir ../folder", "mv ../other/file .",
        "ln ../other/file hard && echo x > hard", "truncate -s 0 ../other/file",
        "python3 -c 'import os; os.truncate(\"../other/file\", 0)'",
        "python3 -c 'import os; os.open(\"../other/file\", os.O_RDONLY | os.O_TRUNC)'",
        "cat ../.ssh/id", "cat link", "cat ../.netrc", "cat ../.proj-jarvis/token", "cp -r ../.ssh copy",
        "echo x > ../.ssh/authorized_keys", "cat /proc/1/root$HOME/.ssh/id", "mount -t tmpfs x ../other",
        "unshare -Ur true && unshare -Urm mount --bind ../.ssh ../other && cat ../other/id",
        "python3 -c 'import os; os.mknod(\"node\", 0o60600, os.makedev(254, 0)); open(\"node\")'",
    )

    def test_attempts(self):
        for sandbox in ("write", "strict"):
            with self.driver(sandbox) as driver:
                for attempt in self.ATTEMPTS:
                    with self.subTest(sandbox=sandbox, attempt=attempt):
                        result = driver.bash(attempt, self.work)
                        self.assertNotEqual(result.get("exitCode"), 0, result["output"])
                        self.assertNotIn("SECRET", result["output"])
                        with open(os.path.join(self.home, "other", "file"), encoding="ascii") as file:
                            self.assertEqual(file.read(), "content")
                        self.assertEqual(os.listdir(os.path.join(self.home, ".ssh")), ["id"])

    def test_they_work_without(self):
        """The attempts succeed without the sandbox. This proves that the sandbox stops them."""
        with self.driver("off") as driver:
            for attempt in ("cat ../.ssh/id", "cat link", "echo content > ../other/file", "mkdir ../folder"):
                self.assertEqual(driver.bash(attempt, self.work)["exitCode"], 0)

    def test_what_goes_on_working(self):
        rows = ("echo x > file && mkdir -p a/b && mv file a/b/ && rm -r a", "echo x > $TMPDIR/y && cp $TMPDIR/y z && rm z",
                "cat ../other/file >/dev/null", "ls ~ >/dev/null", "python3 -c 'print(1)' | cat", "git init -q g && rm -rf g")
        for sandbox in ("write", "strict"):
            with self.driver(sandbox) as driver:
                for row in rows:
                    with self.subTest(sandbox=sandbox, row=row):
                        result = driver.bash(row, self.work)
                        self.assertEqual(result.get("exitCode"), 0, result["output"])

    def test_the_folder_for_temporary_files_is_private_and_goes(self):
        with self.driver("write") as driver:
            result = driver.bash("mkdir -p $TMPDIR/a/b/c && touch $TMPDIR/a/b/c/f && ln -s /etc $TMPDIR/l && chmod 0 $TMPDIR/a "
                                 "&& stat -c %a $TMPDIR && echo $TMPDIR", self.work)
            mode, path = result["output"].split()
            self.assertEqual(mode, "700")
            self.assertFalse(os.path.exists(path))
            self.assertTrue(os.path.exists("/etc/passwd"))
            deep = driver.bash("echo $TMPDIR; python3 -c 'import os; os.chdir(os.environ[\"TMPDIR\"]); "
                               "[(os.mkdir(\"d\"), os.chdir(\"d\")) for _ in range(3000)]; open(\"f\", \"w\")'", self.work)
            self.assertEqual(deep["exitCode"], 0, deep["output"])
            self.assertFalse(os.path.exists(deep["output"].strip()))

    def test_sockets(self):
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        rows = (f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}",
                "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'",
                "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)'",
                "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(41, 10, 1, 0) < 0)'")
        for sandbox, works in (("off", True), ("write", True), ("strict", False)):
            with self.driver(sandbox) as driver:
                for row in rows:
                    with self.subTest(sandbox=sandbox, row=row):
                        self.assertEqual(driver.bash(row, self.work).get("exitCode") == 0, works)

    def test_ways_around_the_ban_on_sockets(self):
        """A pair of datagram sockets can send to any socket, and a socket of another process can be copied."""
        server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(server.close)
        path = os.path.join(self.home, "server")
        server.bind(path)
        os.chmod(path, 0o777)
        server.setblocking(False)
        victim = subprocess.Popen(["python3", "-c", "import socket, time; s = socket.socket(); print(s.fileno(), flush=True); "
                                   "time.sleep(600)"], stdout=subprocess.PIPE,
                                  preexec_fn=(lambda: os.setuid(NOBODY)) if self.nobody else None)
        self.addCleanup(victim.stdout.close)
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        number = int(victim.stdout.readline())
        pair = "import os, socket; s = socket.socketpair(socket.{family}, socket.{kind})[0]; "
        rows = [pair.format(family="AF_UNIX", kind=kind) + act
                for kind in ("SOCK_DGRAM", "SOCK_RAW", "SOCK_DGRAM | socket.SOCK_CLOEXEC", "SOCK_SEQPACKET", "SOCK_STREAM")
                for act in ("s.sendto(b'x', '../server')", "s.connect('../server'); s.send(b'x')")]
        rows.append(pair.format(family="AF_TIPC", kind="SOCK_STREAM"))
        rows.append(f"import os, ctypes; c = ctypes.CDLL(None).syscall; s = c(438, c(434, {victim.pid}, 0), {number}, 0); "
                    "assert s >= 0")
        for sandbox, rules in (("strict", ()), ("strict", NO_NAMESPACE), ("off", NO_NAMESPACE)):
            with self.driver(sandbox, rules=rules) as driver:
                worked = []
                for row in rows:
                    result = driver.bash(f'python3 -c "{row}"', self.work)
                    received = True
                    try:
                        server.recv(10)
                    except BlockingIOError:
                        received = False
                    if received or ("syscall" in row and result.get("exitCode") == 0):
                        worked.append(row)
                if sandbox == "off":  # this proves that the sandbox is what stops the attempts
                    self.assertIn(rows[0], worked)
                else:
                    self.assertEqual(worked, [], rules)
                result = driver.bash("python3 -c 'import subprocess, socket; socket.socketpair(); "
                                     "subprocess.run([\"true\"], check=True)'", self.work)
                self.assertEqual(result.get("exitCode"), 0, result["output"])

    def test_key_folders_that_are_made_later(self):
        """The gateway runs for weeks, and an approval waits for minutes: key folders may be created meanwhile."""
        for sandbox in ("write", "strict"):
            with self.subTest(sandbox), self.driver(sandbox) as driver:
                driver.prepare("bash", {"command": "cat ../.kube/config ../.config/gcloud/key ../.docker/config.json"}, self.work)
                for name in (".kube/config", ".config/gcloud/key", "linked/config.json"):
                    os.makedirs(os.path.dirname(os.path.join(self.home, name)), exist_ok=True)
                    self.write(name, "SECRET")
                os.symlink("linked", os.path.join(self.home, ".docker"))
                os.system(f"chmod -R a+rX {self.home}")
                driver.start()
                self.assertNotIn("SECRET", driver.result()["output"])
                self.assertNotIn("SECRET", driver.bash("cat ../linked/config.json", self.work)["output"])
                for name in (".kube", ".config", "linked"):
                    shutil.rmtree(os.path.join(self.home, name))
                os.remove(os.path.join(self.home, ".docker"))

    def test_a_home_without_keys(self):
        """A command must not create the key folders, and must not replace a link by its own folder."""
        home = tempfile.mkdtemp(prefix="fm-home-")
        self.addCleanup(shutil.rmtree, home)
        os.chmod(home, 0o777)
        with Driver(env={"HOME": home}, sandbox="write", nobody=self.nobody) as driver:
            result = driver.bash("mkdir .ssh && echo key > .ssh/authorized_keys", home)
            self.assertEqual(result["end"], "failed")
            self.assertEqual(os.listdir(home), [])
        kept = os.path.join(self.home, "other")
        os.symlink(kept, os.path.join(home, ".ssh"))
        with Driver(env={"HOME": home}, sandbox="write", nobody=self.nobody) as driver:
            self.assertEqual(driver.bash("rm .ssh && mkdir .ssh", home)["end"], "failed")
            self.assertNotIn("content", driver.bash(f"cat {kept}/file {home}/.ssh/file", self.work)["output"])

    def test_without_the_variable_home(self):
        """Without the variable, the home folder is that of the user's account."""
        account = pwd.getpwuid(NOBODY if self.nobody else os.geteuid()).pw_dir
        if not os.path.isdir(account):
            self.skipTest("the account has no folder")
        with Driver(env={"HOME": ""}, sandbox="write", nobody=self.nobody) as driver:
            result = driver.bash("true", account)
            self.assertEqual(result["end"], "failed", result["output"])

    def test_devices(self):
        """Disks, microphones and keyboards are files that can be read."""
        node = f"/dev/fm-test-{os.getpid()}"
        try:
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        except PermissionError:
            self.skipTest("no device can be made here")
        self.addCleanup(os.remove, node)
        os.chmod(node, 0o666)
        for sandbox, reads in (("off", True), ("write", False), ("strict", False)):
            with self.subTest(sandbox), self.driver(sandbox) as driver:
                self.assertEqual(driver.bash(f"head -c 1 {node} | wc -c", self.work)["output"].endswith("1\n"), reads)
                usual = driver.bash("head -c 1 /dev/zero /dev/urandom > /dev/null && cat < /dev/null && cat <(echo x)", self.work)
                self.assertEqual(usual["output"], "x\n")

    def test_the_keys_of_the_kernel(self):
        """The kernel keeps tickets and tokens, by session and user."""
        numbers = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(os.uname().machine)
        libc = ctypes.CDLL(None, use_errno=True)
        if not numbers or libc.syscall(numbers[1], 1, None) < 0:  # starts a new session of keys, which child processes inherit
            self.skipTest("this kernel keeps no keys")
        self.assertGreater(libc.syscall(numbers[0], b"user", b"fm-test", b"SECRET", 6, -3), 0)
        read = ("import ctypes; c = ctypes.CDLL(None).syscall; b = ctypes.create_string_buffer(9); "
                f"k = c({numbers[1]}, 10, -3, b'user', b'fm-test', 0); c({numbers[1]}, 11, k, b, 9); print(b.value)")
        for sandbox, seen in (("off", True), ("write", False), ("strict", False)):
            with self.subTest(sandbox), self.driver(sandbox, rules=NO_NAMESPACE) as driver:
                result = driver.bash(f'python3 -c "{read}"', self.work)
                self.assertEqual("SECRET" in result["output"], seen, result["output"])

    def test_io_uring(self):
        """io_uring opens files and sockets without system calls that a filter sees."""
        for sandbox in ("write", "strict"):
            with self.driver(sandbox) as driver:
                result = driver.bash("python3 -c 'import ctypes; p = ctypes.create_string_buffer(120); "
                                     "print(ctypes.CDLL(None, use_errno=True).syscall(425, 1, p), ctypes.get_errno())'",
                                     self.work)
                self.assertEqual(result["output"], "-1 1\n")

    def test_signals_to_others(self):
        victim = subprocess.Popen(["sleep", "600"], preexec_fn=(lambda: os.setuid(NOBODY)) if self.nobody else None)
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        for rules in ((), NO_NAMESPACE if landlock_abi() >= 6 else ()):
            with self.driver("write", rules=rules) as driver:
                self.assertNotEqual(driver.bash(f"kill -9 {victim.pid}", self.work)["exitCode"], 0)
        self.assertIsNone(victim.poll())

    def test_a_folder_that_holds_keys_is_refused(self):
        with self.driver("write") as driver:
            for folder in (self.home, "/", os.path.join(self.home, ".ssh")):
                with self.subTest(folder):
                    result = driver.bash("touch ran", folder)
                    self.assertEqual(result["end"], "failed")
                    self.assertRegex(result["output"], "choose another working folder")
                    self.assertFalse(os.path.exists(os.path.join(folder, "ran")))

    def test_the_state_folder_is_hidden(self):
        state = tempfile.mkdtemp(prefix="fm-state-")
        self.addCleanup(shutil.rmtree, state)
        with open(os.path.join(state, "token"), "w", encoding="ascii") as file:
            file.write("SECRET")
        os.chmod(state, 0o755)
        with self.driver("write", stateFolder=state) as driver:
            self.assertNotIn("SECRET", driver.bash(f"cat {state}/token", self.work)["output"])

    def test_a_kernel_without_landlock(self):
        for sandbox in ("write", "strict"):
            with self.driver(sandbox, rules=(NO_LANDLOCK,)) as driver:
                result = driver.bash("touch ran", self.work)
                self.assertEqual(result["end"], "failed")
                self.assertIn(f'tools.sandbox is "{sandbox}", and this kernel has no Landlock', result["output"])
                self.assertNotIn("ran", os.listdir(self.work))


@unittest.skipUnless(ROOT and landlock_abi() >= 2, "is the first class for a normal user")
class SandboxAsNobody(Sandbox):
    nobody = True


class Cleanup(TimedTest):
    def test_the_private_folder_of_a_killed_gateway_goes(self):
        if landlock_abi() < 2:
            self.skipTest("this kernel has no Landlock")
        with tempfile.TemporaryDirectory() as folder:
            driver = Driver(env={"TMPDIR": folder, "HOME": "/nonexistent"}, sandbox="write")
            mark = marker()
            driver.prepare("bash", {"command": f"sleep {mark}; exit"}, "/usr")
            driver.start()
            wait_until(lambda: processes(f"sleep\0{mark}"))
            self.assertEqual(len(os.listdir(folder)), 1)
            begun = time.monotonic()
            driver.process.kill()
            wait_until(lambda: not os.listdir(folder))
            self.assert_soon(time.monotonic() - begun, 2)
            driver.close()


if __name__ == "__main__":
    unittest.main()
