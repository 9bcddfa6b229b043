"""
Tests what an engine can't do, tried inside the engine (the fake engine's step "try"), and what it must be able to do.

Two layers deny most things, so each layer is tested without the other. To remove a layer, the test uses a seccomp filter under
which the kernel seems to have no Landlock, no seccomp, or no close_range. Without both layers, everything must succeed: this
proves that the attempts are real.
"""

import ctypes
import fcntl
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import termios

import attacks
import foreign_engine
import wire
from poorer_kernel import (EINVAL, EVERYTHING, MACHINE, NO_CLOSE_RANGE, NO_LANDLOCK, NO_NEW_PRIVS,
                           NO_SECCOMP, PRCTL, landlock_abi, poorer)
from wire import HelperTest, script

SANITIZE = os.environ.get("FM_SANITIZE", "")  # relaxes fork and ptrace, which LeakSanitizer needs
COVERAGE = os.environ.get("FM_COVERAGE", "") in ("ON", "1")  # relaxes files
def note(text):
    """Prints why something is not checked on this machine."""
    print(f"test_sandbox: {text}", file=sys.stderr)


# ---- the calls that seccomp denies, whatever their arguments ----

X86_64 = """
execve=59 execveat=322 fork=57 vfork=58 setpgid=109 setsid=112 personality=135 uselib=134 ptrace=101
process_vm_readv=310 process_vm_writev=311 kcmp=312 migrate_pages=256 move_pages=279 tkill=200 setpriority=141
ioprio_set=251 shmget=29 shmat=30 shmctl=31 semget=64 semop=65 semtimedop=220 semctl=66 msgget=68 msgsnd=69 msgrcv=70
msgctl=71 mq_open=240 mq_unlink=241 setuid=105 setgid=106 setreuid=113 setregid=114 setgroups=116 setresuid=117
setresgid=119 setfsuid=122 setfsgid=123 capset=126 setrlimit=160 io_setup=206 bpf=321 perf_event_open=298
userfaultfd=323 keyctl=250 add_key=248 request_key=249 fanotify_init=300 open_by_handle_at=304 lookup_dcookie=212
mount=165 umount2=166 pivot_root=155 chroot=161 unshare=272 setns=308 init_module=175 finit_module=313
delete_module=176 kexec_load=246 kexec_file_load=320 reboot=169 swapon=167 swapoff=168 acct=163 quotactl=179
nfsservctl=180 sethostname=170 setdomainname=171 settimeofday=164 clock_settime=227 adjtimex=159 clock_adjtime=305
syslog=103 vhangup=153 iopl=172 ioperm=173 modify_ldt=154 _sysctl=156 kill=62 tgkill=234 rt_sigqueueinfo=129
rt_tgsigqueueinfo=297 ioctl=16 clone=56 prlimit64=302"""
X86_64_WRITES = """
creat=85 mkdir=83 rmdir=84 unlink=87 rename=82 link=86 symlink=88 mknod=133 chmod=90 chown=92 lchown=94 utime=132
utimes=235 futimesat=261 mkdirat=258 unlinkat=263 renameat=264 renameat2=316 linkat=265 symlinkat=266 mknodat=259
fchmod=91 fchmodat=268 fchown=93 fchownat=260 utimensat=280 truncate=76 ftruncate=77 fallocate=285 setxattr=188
lsetxattr=189 fsetxattr=190 removexattr=197 lremovexattr=198 fremovexattr=199 open=2 openat=257
open:O_WRONLY=2,-1,1 open:O_RDWR=2,-1,2 open:O_CREAT=2,-1,0100 open:O_TRUNC=2,-1,01000
openat:O_WRONLY=257,-1,-1,1 openat:O_RDWR=257,-1,-1,2 openat:O_CREAT=257,-1,-1,0100 openat:O_TRUNC=257,-1,-1,01000"""
X86_64_NETWORK = """
socket=41 socketpair=53 connect=42 bind=49 listen=50 accept=43 accept4=288 sendto=44 sendmsg=46 sendmmsg=307
recvfrom=45 recvmsg=47 recvmmsg=299 shutdown=48 setsockopt=54 getsockopt=55 getsockname=51 getpeername=52"""
X86_64_ARGUMENTS = """
fcntl:F_SETOWN=72,0,8,1 fcntl:F_SETOWN_EX=72,0,15,-1 fcntl:F_SETSIG=72,0,10,10 fcntl:F_SETLEASE=72,0,1024,0
fcntl:F_SETFL_O_ASYNC=72,2,4,0x2000 fcntl:F_SETFL_all=72,0,4,-1 ioctl:FIOASYNC=16,0,0x5452,-1
ioctl:TIOCSTI=16,0,0x5412,-1 ioctl:TIOCLINUX=16,0,0x541c,-1 ioctl:high=16,0,0xf00005412,-1
prctl:PR_SET_PDEATHSIG=157,1,0 prlimit64:RLIMIT_CORE=302,0,4,-1,0
prlimit64:low=302,0,4,0x1000,0 prlimit64:high=302,0,4,0x7f0000000000,0
kill:parent=62,PARENT,0 kill:all=62,-1,0 kill:group=62,0,0 tgkill:parent=234,PARENT,PARENT,0
rt_sigqueueinfo:parent=129,PARENT,0,-1
clone:NEWUSER=56,0x10010000,0 clone:NEWNET=56,0x40010000,0 clone:NEWNS=56,0x30000,0 clone:NEWPID=56,0x20010000,0"""
EVERYWHERE = """
pidfd_send_signal=424 io_uring_setup=425 io_uring_enter=426 io_uring_register=427 open_tree=428 move_mount=429
fsopen=430 fsconfig=431 fsmount=432 fspick=433 pidfd_getfd=438 process_madvise=440 mount_setattr=442 quotactl_fd=443
process_mrelease=448 lsm_set_self_attr=460 open_tree_attr=467"""
EVERYWHERE_WRITES = "fchmodat2=452 setxattrat=463 removexattrat=466 file_setattr=469"
NOT_THERE = "clone3=435 openat2=437"
NOT_KNOWN = (470, 4000)


def calls(words):
    """{name: attempt}"""
    return {word.split("=")[0]: "syscall=" + word.split("=")[1] for word in words.split()}


class SandboxTest(HelperTest):
    def engine(self, *missing, **kwargs):
        if missing:
            kwargs["preexec_fn"] = poorer(*missing)
        return self.helper(**kwargs)

    def outcomes(self, helper, attempts):
        """The outcomes of attempts that the engine makes one after the other."""
        steps = [step for attempt in attempts for step in ({"try": attempt}, " ")]
        result = helper.call("responses.create", {"input": script(*steps)})
        self.assertTrue(result["ok"], result)
        texts = result["response"]["output"][0]["content"][0]["text"].split(" ")[:-1]
        self.assertEqual(len(texts), len(attempts))
        return texts

    def assert_outcomes(self, helper, expected):
        """`expected`: {attempt: outcome, or a tuple of outcomes}"""
        seen = dict(zip(expected, self.outcomes(helper, list(expected))))
        allowed = {a: e if isinstance(e, tuple) else (e,) for a, e in expected.items()}
        wrong = {a: s for a, s in seen.items() if s not in allowed[a]}
        self.assertEqual(wrong, {}, f"expected {({a: expected[a] for a in wrong})}")

    def sandbox(self, helper):
        return helper.call("capabilities.get")["engine"]["sandbox"]

    def files(self):
        """A folder with files for the attempts."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        inner = os.path.join(folder.name, "inner")
        os.mkdir(inner)
        os.mkdir(os.path.join(inner, "empty"))
        for name in ("old", "cut", "gone", "moved"):
            with open(os.path.join(inner, name), "w") as f:
                f.write("text")
        return lambda name: os.path.join(inner, name)

    def assert_unchanged(self, path):
        if not COVERAGE:
            self.assertEqual(sorted(os.listdir(path(""))), ["cut", "empty", "gone", "moved", "old"])
            self.assertEqual(os.path.getsize(path("old")), 4)

    def changes(self, path):
        """Attempts that change files()."""
        return ["write=" + path("new"), "write=" + path("old"), "append=" + path("old"), "truncate=" + path("cut"),
                "unlink=" + path("gone"), "rename=" + path("moved"), "mkdir=" + path("made"), "rmdir=" + path("empty"),
                "mkfifo=" + path("fifo"), "symlink=" + path("link")]

    def listener(self):
        """Sockets that accept connections: a TCP port, and an abstract name."""
        tcp = socket.create_server(("127.0.0.1", 0))
        name = f"fm-sandbox-{os.getpid()}"
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind("\0" + name)
        abstract.listen()
        for each in (tcp, abstract):
            self.addCleanup(each.close)
        return tcp.getsockname()[1], name

    def need_landlock(self, abi=1):
        have = landlock_abi()
        if have < abi:
            note(f"Landlock here has ABI {have}, {abi} is needed: not checked on its own")
        return have >= abi


class InForce(SandboxTest):
    """Tests the normal case: every layer that the kernel supports."""

    def test_report(self):
        helper = self.engine()
        self.assertIsNone(self.sandbox(helper), "no engine has run")
        helper.call("responses.create", {"input": "x"})
        report = {"no_new_privs": True, "landlock": landlock_abi(), "seccomp": True, "network": "denied",
                  "devices": "denied" if landlock_abi() else "allowed", "capabilities": "none"}
        self.assertEqual(self.sandbox(helper), report)
        engine = helper.engine_pid()
        wire.kill(engine)
        wire.wait_until(lambda: not wire.alive(engine), what="the engine's end")
        self.assertEqual(self.sandbox(helper), report, "the last engine's stays")

    def test_the_kernel_says_so_of_every_thread(self):
        helper = self.engine()
        call = self.create(helper, script("x", {"hang": "soft"}))
        helper.event(call, "response.output_text.delta")
        engine = helper.engine_pid()
        states = []
        for thread in os.listdir(f"/proc/{engine}/task"):
            with open(f"/proc/{engine}/task/{thread}/status") as f:
                lines = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
            states.append((lines["NoNewPrivs"], lines["Seccomp"]))
        self.assertGreaterEqual(len(states), 4, "main, reader, watch, job")
        self.assertEqual(set(states), {("1", "2")})

    def test_denied(self):
        path = self.files()
        port, name = self.listener()
        helper = self.engine()
        attempts = ["socket", f"connect={port}", "bind=0", "connect-abstract=" + name, "exec=/bin/true", "kill-parent",
                    "ioctl=/dev/null"]
        attempts += [] if SANITIZE else ["fork", "ptrace"]
        if not COVERAGE:
            attempts += self.changes(path) + ["write=/dev/null", "write=" + os.path.expanduser("~/fm-new")]
        self.assert_outcomes(helper, {a: ("EPERM", "EACCES") for a in attempts})
        self.assert_unchanged(path)

    def test_allowed(self):
        helper = self.engine()
        system = ("/proc/self/maps", "/proc/cpuinfo", "/sys/devices/system/cpu/online")  # a minimal root has no /sys
        readable = ["/etc/passwd", self.files()("old"), *filter(os.path.exists, system)]
        attempts = ["thread", *("read=" + path for path in readable), "descriptor=2"]
        self.assert_outcomes(helper, {a: "ok" for a in attempts})

    def test_a_closed_stderr_is_filled_before(self):
        engine = self.helper(program="fm-engine-fake", preexec_fn=lambda: os.close(2))
        self.assertTrue(engine.call("engine.initialize", {"protocol_version": 1})["ok"])
        self.assertEqual(os.readlink(f"/proc/{engine.pid}/fd/2"), "/dev/null")

    def test_another_architecture_ends_it(self):
        if MACHINE != "x86_64":
            return note(f"{MACHINE} has no other kind of call")
        for attempt in ("other-arch", "syscall=0x40000027"):  # 39 with the x32 bit: getpid
            helper = self.engine()
            error = self.assert_error(helper.call("responses.create", {"input": script({"try": attempt})}), "INTERNAL")
            if attempt == "other-arch" and "signal 11" in error["detail"]:
                note("this kernel has no 32-bit calls at all")
            else:
                self.assertIn("signal 31", error["detail"], attempt)  # SIGSYS

    def test_an_engine_that_needs_the_network(self):
        path = self.files()
        port, name = self.listener()
        helper = self.engine(env={"FM_ENGINE_FAKE_INIT": "network"})
        self.assert_outcomes(helper, {"socket": "ok", f"connect={port}": "ok", "bind=0": "ok",
                                      "exec=/bin/true": "EPERM"})
        self.assert_outcomes(helper, {"unlink=" + path("gone"): "ok" if COVERAGE else "EPERM"})
        self.assertEqual(self.sandbox(helper)["network"], "allowed")
        if self.need_landlock(6):
            self.assert_outcomes(helper, {"connect-abstract=" + name: "EPERM"})


class Seccomp(SandboxTest):
    """Tests a kernel without Landlock."""

    def test_denied(self):
        path = self.files()
        port, name = self.listener()
        helper = self.engine(NO_LANDLOCK)
        attempts = ["socket", f"connect={port}", "bind=0", "connect-abstract=" + name, "exec=/bin/true", "kill-parent",
                    "ioctl=/dev/null"]
        attempts += [] if SANITIZE else ["fork", "ptrace"]
        attempts += [] if COVERAGE else self.changes(path)
        self.assert_outcomes(helper, {a: "EPERM" for a in attempts})
        self.assert_unchanged(path)
        self.assertEqual(self.sandbox(helper),
                         {"no_new_privs": True, "landlock": 0, "seccomp": True, "network": "denied",
                          "devices": "allowed", "capabilities": "none"})

    def test_each_call(self):
        if MACHINE == "x86_64":
            lists = [X86_64, X86_64_NETWORK, X86_64_ARGUMENTS, EVERYWHERE]
            lists += [] if COVERAGE else [X86_64_WRITES, EVERYWHERE_WRITES]
        else:
            note(f"the numbers of {MACHINE} are not known here: only those that all have are tried")
            lists = [EVERYWHERE] + ([] if COVERAGE else [EVERYWHERE_WRITES])
        attempts = calls(" ".join(lists))
        if SANITIZE:
            note("LeakSanitizer may ptrace and clone")
            del attempts["ptrace"]
        helper = self.engine(NO_LANDLOCK)
        seen = self.outcomes(helper, [a.replace("PARENT", str(helper.pid)) for a in attempts.values()])
        self.assertEqual({n: s for n, s in zip(attempts, seen) if s != "EPERM"}, {})
        self.assert_outcomes(helper, {attempt: "ENOSYS" for attempt in calls(NOT_THERE).values()})

    def test_calls_of_newer_kernels(self):
        helper = self.engine(NO_LANDLOCK, *((number, None, EINVAL) for number in NOT_KNOWN))  # as if the kernel had these calls
        self.assert_outcomes(helper, {f"syscall={number}": "ENOSYS" for number in NOT_KNOWN})

    def test_not_too_much(self):
        if MACHINE != "x86_64":
            return note(f"the numbers of {MACHINE} are not known here")
        allowed = calls("fcntl:F_GETFL=72,2,3 fcntl:F_SETFL=72,0,4,0 openat:O_RDONLY=257,-1,-1,0 open:O_RDONLY=2,-1,0 "
                        "ioctl:TCGETS=16,-1,0x5401 prlimit64:get=302,0,4,0,0 prctl:PR_GET_SECCOMP=157,21 "
                        "madvise=28 mlock=149 sched_setaffinity=203 pidfd_open=434 close_range=436 "
                        "tgkill:self=234,SELF,SELF,0 kill:self=62,SELF,0")
        helper = self.engine(NO_LANDLOCK)
        helper.call("responses.create", {"input": "x"})
        attempts = [a.replace("SELF", str(helper.engine_pid())) for a in allowed.values()]
        seen = self.outcomes(helper, attempts)
        self.assertEqual({n: s for n, s in zip(allowed, seen) if s in ("EPERM", "ENOSYS", "EACCES")}, {})


class Landlock(SandboxTest):
    """Tests a kernel without seccomp."""

    def test_denied(self):
        if not self.need_landlock():
            return
        path = self.files()
        port, name = self.listener()
        helper = self.engine(NO_SECCOMP)
        expected = {"exec=/bin/true": "EACCES", "read=" + path("old"): "ok", "thread": "ok"}
        if not COVERAGE:
            expected.update({a: "EACCES" for a in self.changes(path)})
            expected["rename=" + path("moved")] = ("EACCES", "EXDEV")  # depends on Landlock's ABI
            expected["truncate=" + path("cut")] = "EACCES" if self.need_landlock(3) else "ok"
        if self.need_landlock(4):
            expected.update({f"connect={port}": "EACCES", "bind=0": "EACCES"})
        if self.need_landlock(5):
            expected["ioctl=/dev/null"] = "EACCES"
        if self.need_landlock(6):
            expected.update({"connect-abstract=" + name: "EPERM", "kill-parent": "EPERM"})
        expected[f"read=/proc/{helper.pid}/mem"] = ("EPERM", "EACCES")
        self.assert_outcomes(helper, expected)
        self.assert_unchanged(path)
        self.assertEqual(self.sandbox(helper),
                         {"no_new_privs": True, "landlock": landlock_abi(), "seccomp": False, "network": "allowed",
                          "devices": "denied", "capabilities": "none"})


class Nothing(SandboxTest):
    """Tests a kernel with neither layer. The engine works, and reports this; every attempt in this file can succeed."""

    def test_all_succeeds(self):
        path = self.files()
        port, name = self.listener()
        helper = self.engine(*EVERYTHING)
        attempts = ["socket", f"connect={port}", "bind=0", "connect-abstract=" + name, "fork", "kill-parent", "thread"]
        attempts += self.changes(path) + ["write=/dev/null", "read=" + path("old")]
        self.assert_outcomes(helper, {**{a: "ok" for a in attempts}, "ioctl=/dev/null": ("ENOTTY", "EINVAL")})
        if self.outcomes(helper, [f"read=/proc/{helper.pid}/mem"]) != ["ok"]:
            note("the memory of other processes is out of reach here without a sandbox (yama)")
        self.assertEqual(sorted(os.listdir(path(""))), ["cut", "fifo", "link", "made", "new", "old"])
        self.assertEqual(self.sandbox(helper),
                         {"no_new_privs": False, "landlock": 0, "seccomp": False, "network": "allowed",
                          "devices": "allowed", "capabilities": "some" if os.geteuid() == 0 else "none"})
        self.assert_outcomes(helper, {"ptrace": "ok"})  # the front is its tracer from now on
        helper = self.engine(NO_SECCOMP, NO_LANDLOCK)
        result = helper.call("responses.create", {"input": script({"try": "exec=/bin/true"})})
        self.assert_error(result, "INTERNAL")  # the engine has become /bin/true, which does nothing more


class Rights(SandboxTest):
    """Tests files that the front may read but its engine may not. The error says what to do."""

    def model(self, folder):
        path = os.path.join(folder, "model.gguf")
        with open(path, "wb") as f:
            f.write(b"GGUF")
        return path

    def error_of(self, path):
        """The error of the engine without a front; the fake engine reads no file by itself."""
        engine = self.helper(program="fm-engine-fake")
        self.assertTrue(engine.call("engine.initialize", {"protocol_version": 1})["ok"])
        result = engine.call("engine.load", {"model": path})
        return None if result["ok"] else result["error"]

    def test_a_model_below_dev(self):
        if not self.need_landlock() or not os.access("/dev/shm", os.W_OK):
            return note("nothing to try: no Landlock, or no /dev/shm to write to")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            error = self.error_of(self.model(folder))
            self.assertEqual(error["code"], "UNAVAILABLE")
            self.assertIn("/dev/shm", error["detail"])
            self.assertIn("move the file", error["detail"])

    def test_a_model_that_root_reads_by_its_powers(self):
        if os.geteuid() != 0:
            return note("not run by root: its capabilities can't be tried")
        with tempfile.TemporaryDirectory() as folder:
            path = self.model(folder)
            self.assertIsNone(self.error_of(path))
            os.chown(path, attacks.NOBODY, attacks.NOBODY)
            os.chmod(path, 0o600)
            error = self.error_of(path)
            self.assertEqual(error["code"], "UNAVAILABLE")
            self.assertIn(path, error["detail"])
            self.assertIn("capabilities", error["detail"])

    def test_an_engine_of_others_that_root_may_not_run(self):
        if os.geteuid() != 0:
            return note("not run by root: its capabilities can't be tried")
        with tempfile.TemporaryDirectory() as folder:
            path = foreign_engine.write(folder, "third", "initialize()")
            os.chown(path, attacks.NOBODY, attacks.NOBODY)
            os.chmod(path, 0o700)
            helper = self.helper("--engine-dir", folder, engine="third")
            error = self.assert_error(helper.call("responses.create", {"input": "x"}), "UNAVAILABLE")
            self.assertIn(path, error["detail"])
            self.assertIn("capabilities", error["detail"])

    def test_capabilities_of_engines_of_others(self):
        if os.geteuid() != 0:
            return note("not run by root: there are no capabilities to lose")
        with tempfile.TemporaryDirectory() as folder:
            foreign_engine.write(folder, "third", """
                initialize()
                load()
                job = accept()
                with open("/proc/self/status") as f:
                    text = "".join(line for line in f if line.startswith("Cap"))
                send(method="job.delta", params={"job": job, "text": text, "output_tokens": 1})
                finish(job)
                """)
            helper = self.helper("--engine-dir", folder, engine="third")
            result = helper.call("responses.create", {"input": "x"})
            sets = result["response"]["output"][0]["content"][0]["text"].split()
            self.assertEqual(sets, [word for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
                                    for word in (name + ":", "0" * 16)])

    def test_a_second_mount(self):
        """A folder of terminals that is also mounted elsewhere, as for a chroot, is denied there too. Files beside this mount are
        not denied."""
        with tempfile.TemporaryDirectory() as folder:
            inner = os.path.join(folder, "a b", "pts")
            os.makedirs(inner)
            with open(os.path.join(folder, "a b", "file"), "w") as f:
                f.write("x")
            if not self.need_landlock() or subprocess.run(["mount", "--bind", "/dev/pts", inner], check=False).returncode:
                return note("not root, or no mounts here: devices that are mounted twice are not tried")
            try:
                self.assert_outcomes(self.engine(), {f"list={inner}": "EACCES", f"read={inner}/ptmx": "EACCES",
                                                     f"read={folder}/a b/file": "ok", "list=/usr": "ok"})
            finally:
                subprocess.run(["umount", inner], check=True)


def pretend_gpus():
    """For preexec_fn: makes a /dev with nodes that have the names of GPUs but are /dev/zero. False if this is impossible here."""
    libc = ctypes.CDLL(None)
    private = libc.unshare(0x20000) == 0 and libc.mount(b"none", b"/", None, 0x44000, None) == 0  # MS_REC, MS_PRIVATE
    if not private or libc.mount(b"none", b"/dev", b"tmpfs", 0, None) != 0:
        return False
    os.umask(0)
    os.mkdir("/dev/dri")
    for name, minor in (("null", 3), ("urandom", 9), ("zero", 5), *((node, 5) for node in GPUS + NO_GPUS)):
        os.mknod("/dev/" + name, 0o20666, os.makedev(1, minor))
    os.symlink("card0", "/dev/dri/renderD130")
    with open("/dev/dri/renderD131", "w", encoding="ascii") as file:
        file.write("text")
    return True


GPUS = ["dri/renderD128", "dri/renderD129", "nvidia0", "nvidia12", "nvidiactl", "nvidia-modeset"]
NO_GPUS = ["dri/card0", "dri/renderD", "dri/renderD128x", "nvidia", "nvidia0x", "nvidia-uvm", "nvidiactl1"]


class Gpus(SandboxTest):
    """Tests what an engine may do if it gets a GPU."""

    def gpu_engine(self, *args, missing=()):
        """Returns None if a private /dev is impossible here."""
        if os.geteuid() != 0 or subprocess.run(["true"], preexec_fn=lambda: pretend_gpus() or os._exit(1),
                                               check=False).returncode:
            return note("not root, or no mounts here: devices of GPUs are not tried")

        def prepare():
            pretend_gpus()
            poorer(*missing)()
        return self.helper(*args, preexec_fn=prepare if missing else pretend_gpus)

    def test_the_nodes_and_nothing_else(self):
        path = self.files()
        helper = self.gpu_engine("--gpu-dir", "/usr/lib") if self.need_landlock(3) else None
        if not helper:
            return
        expected = {f"update=/dev/{name}": "ok" for name in GPUS}
        expected |= {f"gpu-ioctl=/dev/{name}": "ENOTTY" for name in GPUS}  # the call reached the device
        expected |= {f"{how}=/dev/{name}": "EACCES" for name in NO_GPUS + ["dri/renderD130", "dri/renderD131", "zero"]
                     for how in ("update", "read", "gpu-ioctl")}
        expected |= {"ioctl=/dev/dri/renderD128": "EPERM", "list=/dev/dri": "ok", "list=/dev": "EACCES",
                     "append=/dev/dri/renderD128": "EPERM", "socket": "EPERM", "exec=/bin/true": "EPERM",
                     "update=" + path("old"): "EACCES", "update=/dev/null": "EACCES", "update=/proc/self/mem": "EACCES",
                     f"syscall={257 if MACHINE == 'x86_64' else 56},-100,-1,0x410002": "EPERM"}  # O_TMPFILE
        expected |= {attempt: ("EPERM", "EACCES") for attempt in self.changes(path)}
        if COVERAGE:
            expected = {attempt: outcome for attempt, outcome in expected.items() if "/dev/dri/renderD128" in attempt}
        self.assert_outcomes(helper, expected)
        self.assert_unchanged(path)
        self.assertEqual(self.sandbox(helper)["devices"], "gpus")

    def test_not_told_of_one(self):
        for args in ((), ("--gpu-dir", "/usr/lib", "--gpu", "off")):
            helper = self.gpu_engine(*args)
            if helper and self.need_landlock():
                self.assert_outcomes(helper, {"update=/dev/dri/renderD128": ("EPERM", "EACCES"),
                                              "read=/dev/dri/renderD128": "EACCES", "list=/dev/dri": "EACCES"})
                self.assertEqual(self.sandbox(helper)["devices"], "denied")

    def test_without_landlock(self):
        """seccomp can't distinguish a GPU from a file, so no GPU can be opened."""
        helper = self.gpu_engine("--gpu-dir", "/usr/lib", missing=(NO_LANDLOCK,))
        if helper and not COVERAGE:
            self.assert_outcomes(helper, {"update=/dev/dri/renderD128": "EPERM",
                                          "ioctl=/dev/dri/renderD128": "EPERM", "gpu-ioctl=/dev/dri/renderD128": "EPERM",
                                          "ioctl=/etc/passwd": "EPERM"})
            self.assertEqual(self.sandbox(helper)["devices"], "allowed")


class Attacks(SandboxTest):
    """Tests attacks on a terminal, the log and other programs, as root and as a normal user. attacks.py has the table."""

    def each(self, check, open_to_all):
        if os.geteuid() != 0:
            note("not run by root: tried as this user alone")
        for name, user in attacks.users().items():
            for log_is_file in (False, True):
                with self.subTest(user=name, log_is_file=log_is_file):
                    check(attacks.attack(user, log_is_file, open_to_all))

    def test_nothing_is_got(self):
        if self.need_landlock(6):
            self.each(lambda seen: self.assertEqual(attacks.wrong(seen), {}), open_to_all=False)

    def test_the_attacks_are_real(self):
        """Without the layers, the attempts succeed, except where the pipe itself prevents it."""
        got = ["peek={terminal}", "list=/proc", "kill-parent",
               *(f"peek=/proc/{{{whose}}}/{file}" for whose in ("helper", "other") for file in ("environ", "cmdline"))]
        expected = {**{row: "ok" for row in got}, "what was typed is there still": "no"}
        self.each(lambda seen: self.assertEqual({row: seen[row] for row in expected}, expected), open_to_all=True)


class Inherited(SandboxTest):
    """Tests what the front does not let an engine of any kind inherit."""

    def test_no_stray_descriptor(self):
        numbers = (100, 200)  # above the descriptors that an engine opens itself
        with tempfile.TemporaryFile() as leak:
            for number in numbers:
                os.dup2(leak.fileno(), number)
                self.addCleanup(os.close, number)
        for missing in ((), (NO_CLOSE_RANGE,)):
            with self.subTest(missing=missing):
                helper = self.engine(*missing, pass_fds=numbers)
                for number in numbers:
                    self.assertTrue(os.path.exists(f"/proc/{helper.pid}/fd/{number}"), "the host did leak it")
                self.assert_outcomes(helper, {f"descriptor={number}": "EBADF" for number in numbers})
                self.assert_outcomes(helper, {"descriptor=2": "ok"})

    def test_no_core_dump(self):
        def unlimited():
            hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
            resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        helper = self.helper(preexec_fn=unlimited)
        helper.call("responses.create", {"input": "x"})
        with open(f"/proc/{helper.engine_pid()}/limits") as f:
            core = [line.split()[4:6] for line in f if line.startswith("Max core file size")]
        if SANITIZE:
            core[0][0] = core[0][0].replace("0", "1")  # the sanitizer lowers the soft limit itself
        self.assertEqual(core, [["1", "1"]])


    def test_no_terminal(self):
        """Reading a terminal from the background stops the whole process group. So an engine has no terminal, and a separate
        group."""
        keyboard, terminal = os.openpty()
        self.addCleanup(os.close, keyboard)
        self.addCleanup(os.close, terminal)

        def on_the_terminal():
            os.setsid()
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            poorer(NO_LANDLOCK)()  # the filter denies Landlock before the kernel can give another reason

        helper = self.helper(preexec_fn=on_the_terminal)
        self.assert_outcomes(helper, {"read=/dev/tty": "ENXIO"})
        engine = helper.engine_pid()
        self.assertEqual(wire.session(engine), (engine, engine, 0))
        group, session, device = wire.session(helper.pid)
        self.assertEqual((group, session), (helper.pid, helper.pid))
        self.assertNotEqual(device, 0, "the helper has one")


class Third(SandboxTest):
    """Tests third-party engines, which have no sandbox."""

    ENGINE = """
        with open(__file__ + ".says") as f:
            says = json.load(f)
        starts = says.pop("starts", False)
        initialize(**says)
        load()
        if starts:  # with a job that it does not answer
            read()
            child = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            with open(__file__ + ".child", "w") as f:
                f.write(f"{os.getpid()} {child.pid}\\n")
            sys.stdin.read()
        finish(accept())
        """

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = foreign_engine.write(folder.name, "third", self.ENGINE)
        self.third = self.helper("--engine-dir", folder.name, engine="third")

    def say(self, says):
        with open(self.program + ".says", "w") as f:
            json.dump(says, f)


class Family(Third):
    """The processes that an engine started end when the engine ends."""

    def family(self):
        """Returns the process ids of an engine with a job that it does not answer, and of the engine's child."""
        self.say({"starts": True})
        self.call = self.create(self.third, "x", fm={"timeout_ms": 60000})
        wire.wait_until(lambda: self.started().endswith("\n"), what="the engine's child")
        engine, child = (int(pid) for pid in self.started().split())
        self.addCleanup(lambda: wire.alive(child) and wire.kill(child))
        self.assertEqual(wire.session(child), (engine, engine, 0))
        return engine, child

    def started(self):
        try:
            with open(self.program + ".child") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def assert_gone(self, *pids):
        wire.wait_until(lambda: not any(wire.alive(pid) for pid in pids), what="the end of both")

    def test_when_the_front_ends_the_engine(self):
        engine, child = self.family()
        self.third.call("responses.cancel", {"request_id": self.call})  # the engine does not stop, so it is killed
        self.assert_gone(engine, child)

    def test_when_the_engine_dies(self):
        engine, child = self.family()
        wire.kill(engine)
        self.assert_gone(engine, child)

    def test_when_the_helper_ends(self):
        engine, child = self.family()
        self.assertEqual(self.third.close(), 0)
        self.assert_gone(engine, child)


class Reports(Third):
    """Tests what such engines report about a sandbox, or do not report."""

    def said(self, says):
        """What capabilities.get returns after the engine has reported `says`."""
        self.say(says)
        result = self.third.call("responses.create", {"input": "x"})
        self.assertTrue(result["ok"], result)
        state = lambda: self.third.call("capabilities.get")["engine"]["state"]
        wire.wait_until(lambda: state() == "idle", what="the end of an engine that does one job")
        return self.sandbox(self.third)

    def test_what_others_say(self):
        good = {"no_new_privs": True, "landlock": 3, "seccomp": False, "network": "allowed", "devices": "allowed",
                "capabilities": "none"}
        denied = {**good, "network": "denied"}
        self.assertEqual(self.said({"sandbox": {**denied, "more": 1}}), denied)
        for says in ({}, {"sandbox": None}, {"sandbox": "yes"}, {"sandbox": [good]}, {"sandbox": {}},
                     {"sandbox": {**good, "landlock": -1}}, {"sandbox": {**good, "landlock": True}},
                     {"sandbox": {**good, "seccomp": 1}}, {"sandbox": {**good, "no_new_privs": "true"}},
                     {"sandbox": {**good, "network": "maybe"}}, {"sandbox": {**good, "network": None}},
                     {"sandbox": {**good, "devices": "none"}}, {"sandbox": {**good, "capabilities": True}},
                     {"sandbox": {key: good[key] for key in good if key != "devices"}}):
            with self.subTest(says=says):
                self.assertEqual(self.said({"sandbox": good}), good)
                self.assertIsNone(self.said(says), "the last one's does not stay")


if __name__ == "__main__":
    if sys.platform != "linux" or not PRCTL:
        print(f"skipped: the sandbox is for Linux on x86_64 and aarch64, this is {sys.platform} on {MACHINE}")
        sys.exit(77)
    wire.main()
