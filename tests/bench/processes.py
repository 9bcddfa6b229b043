"""Reads the processor time and memory of a program and its children from /proc. Also runs busy loops beside a program."""

import contextlib
import os
import signal
import subprocess
import sys

TICKS = os.sysconf("SC_CLK_TCK")


def stat_of(pid):
    """Returns the fields after the name in the process' line in /proc; an empty list if the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def tree(pid):
    """`pid`, and all running processes that it and its children have started."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := stat_of(entry)):
            children.setdefault(int(fields[1]), []).append(int(entry))
    found = [pid]
    for parent in found:  # the list grows in this loop
        found += children.get(parent, [])
    return found


def processor_seconds(pid):
    """User and system time of the tree, including its children that have ended and were waited for."""
    return sum(int(field) for one in tree(pid) for field in stat_of(one)[11:15]) / TICKS


def memory_mib(pids, member):
    """Returns the sum of `member` of the processes' status: VmRSS is the memory now, VmHWM is the highest so far."""
    total = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), \
                open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            total += next((int(line.split()[1]) for line in status if line.startswith(f"{member}:")), 0)
    return total / 1024


class Loops:
    """Runs this many busy loops from start() to stop(), but not within quiet()."""

    def __init__(self, count):
        self.count = count
        self.running = []

    def start(self):
        self.running = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(self.count)]

    def stop(self):
        for loop in self.running:
            loop.kill()
            loop.wait()
        self.running = []

    def tell(self, number):
        for loop in self.running:
            loop.send_signal(number)

    @contextlib.contextmanager
    def quiet(self):
        self.tell(signal.SIGSTOP)
        try:
            yield
        finally:
            self.tell(signal.SIGCONT)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
