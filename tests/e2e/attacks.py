"""
Shows what a program with an engine's rights can reach of the user's terminal, log and other programs.

    attacks.py [--open]   prints the table; --open: without any layer of the sandbox, which shows that the attempts are real

The real helper starts the fake engine, which makes the attempts (helper/engine/fake/attempt.h). The helper has a terminal with
typed input, and writes its log to that terminal or to a file. Root runs each case twice: as root and as nobody.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
import termios
import tty

import wire
from poorer_kernel import EVERYTHING, poorer
from reach import for_all

NOBODY = 65534
TYPED = b"password\n"
PAST = b"what the log had before\n"
NOTHING = ("EACCES", "EPERM")
NO_FILE = ("ESPIPE", "EINVAL", "EPERM")  # a pipe no longer has what was read

# attempt: allowed outcomes. {terminal}: its name; {helper}, {other}: processes of the same user
ATTEMPTS = {
    "peek=/dev/tty": NOTHING,
    "peek={terminal}": NOTHING,
    "read=/dev/ptmx": NOTHING,
    "list=/dev/pts": NOTHING,
    "read=/dev/mem": NOTHING + ("ENOENT",),
    "read=/dev/kmsg": NOTHING + ("ENOENT",),
    "peek=/dev/urandom": ("ok",),  # for random numbers
    **{f"{how}=/proc/{{{whose}}}/{file}": NOTHING for whose in ("helper", "other")
       for how, file in (("peek", "environ"), ("peek", "cmdline"), ("peek", "stat"), ("read", "maps"), ("read", "mem"),
                         ("list", "fd"), ("peek", "fd/0"), ("list", "cwd"), ("peek", "root/etc/passwd"))},
    "list=/proc": NOTHING,
    "peek=/proc/self/fd/0": ("EAGAIN",),
    "peek=/proc/self/fd/2": ("EAGAIN",),  # this is the engine's own pipe, not the log
    "type=0": ("EPERM",),
    "type=1": ("EPERM",),
    "type=2": ("EPERM",),
    "no-append=0": ("ok",),  # this is one of the engine's own pipes
    "no-append=1": ("ok",),
    "no-append=2": ("ok",),
    "overwrite=1": NO_FILE,
    "overwrite=2": NO_FILE,
    "shorten=1": NO_FILE,
    "shorten=2": NO_FILE,
    "escape=1": ("ok",),  # the text goes into the helper's log
    "escape=2": ("ok",),
    "ptrace": ("ok",) if os.environ.get("FM_SANITIZE") else NOTHING,  # LeakSanitizer needs it
    "kill-parent": NOTHING,
}
# Facts that are checked from outside afterwards.
OUTSIDE = {"what was typed is there still": "yes", "sequences on the terminal": "no", "the log has its past": "yes",
           "the log only grows": "yes"}


def users():
    """{name: number} of the users that this process can become."""
    return {"root": 0, "nobody": NOBODY} if os.geteuid() == 0 else {"user": os.geteuid()}


class Scene:
    """A helper that runs as a user, with a terminal, and a log that is this terminal or a file."""

    def __init__(self, user, log_is_file, open_to_all):
        self.keyboard, self.screen = os.openpty()
        tty.setcbreak(self.screen, termios.TCSANOW)  # no echo
        self.terminal = os.ttyname(self.screen)
        os.set_blocking(self.keyboard, False)
        self.log = tempfile.TemporaryFile(buffering=0)
        fcntl.fcntl(self.log, fcntl.F_SETFL, os.O_APPEND)
        self.log.write(PAST)
        if user != os.geteuid():
            os.fchown(self.screen, user, user)
            os.fchown(self.log.fileno(), user, user)

        def become(leads=True):
            if leads:
                os.setsid()
                fcntl.ioctl(self.screen, termios.TIOCSCTTY, 0)
            if user != os.geteuid():
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            if open_to_all:
                poorer(*EVERYTHING)()

        stderr = self.log if log_is_file else self.screen
        env = {"SECRET": "of the environment"}
        self.helper = wire.Helper("--log-level", "error", stderr=stderr, preexec_fn=become, env=env, folder=for_all(wire.BIN))
        self.other = subprocess.Popen(["sleep", "600"], stdin=self.screen, preexec_fn=lambda: become(leads=False), env=env)

    def attack(self):
        """{attempt: outcome}"""
        os.write(self.keyboard, TYPED)
        names = {"terminal": self.terminal, "helper": self.helper.pid, "other": self.other.pid}
        attempts = [attempt.format(**names) for attempt in ATTEMPTS]
        steps = [step for attempt in attempts for step in ({"try": attempt}, " ")]
        result = self.helper.call("responses.create", {"input": wire.script(*steps)})
        assert result["ok"], result
        outcomes = result["response"]["output"][0]["content"][0]["text"].split(" ")[:-1]
        self.helper.close()
        return {**dict(zip(ATTEMPTS, outcomes, strict=True)), **self.outside()}

    def outside(self):
        yes = lambda fact: "yes" if fact else "no"
        os.set_blocking(self.screen, False)
        typed = read_all(self.screen)
        shown = read_all(self.keyboard)
        self.log.seek(0)
        facts = (typed == TYPED, b"\x1b" in shown, self.log.read().startswith(PAST),
                 fcntl.fcntl(self.log, fcntl.F_GETFL) & os.O_APPEND)
        return dict(zip(OUTSIDE, map(yes, facts), strict=True))

    def close(self):
        self.helper.process.kill()
        self.other.kill()
        self.other.wait()
        self.log.close()
        os.close(self.keyboard)
        os.close(self.screen)


def read_all(fd):
    """What can be read from the terminal's end without waiting."""
    data = b""
    try:
        while more := os.read(fd, 65536):
            data += more
    except BlockingIOError:
        pass
    return data


def attack(user, log_is_file, open_to_all=False):
    """{attempt or fact: outcome}"""
    scene = Scene(user, log_is_file, open_to_all)
    try:
        return scene.attack()
    finally:
        scene.close()


def wrong(seen):
    """The rows with an outcome that an engine should not get."""
    return {row: got for row, got in seen.items() if got not in ATTEMPTS.get(row, ()) and got != OUTSIDE.get(row)}


def main():
    open_to_all = sys.argv[1:] == ["--open"]
    cases = {f"{name}, {'log' if log else 'terminal'}": attack(user, log, open_to_all)
             for name, user in users().items() for log in (False, True)}
    print(f"{'':38}" + "".join(f"{case:18}" for case in cases))
    for row in (*ATTEMPTS, *OUTSIDE):
        print(f"{row:38}" + "".join(f"{seen[row]:18}" for seen in cases.values()))
    if os.geteuid() != 0:
        print("as root it would be tried as root and as nobody")
    return 1 if any(map(wrong, cases.values())) and not open_to_all else 0


if __name__ == "__main__":
    sys.exit(main())
