"""
Defines how long tests wait, and how they check how long something took.

A machine may be slow, or busy with other work, so that any process may stand still for a second. So there are two kinds of times:
WAIT, after which something counts as hanging, and bounds that are part of a behaviour. TimedTest handles such bounds: it repeats
a run that exceeds a bound, because other work can only add time. If all five runs take too long, the test fails, because there is
a bug. But if other work uses most of the machine, the test is skipped, with the reason.
"""

import functools
import os
import sys
import time
import types
import unittest

SLOW = float(os.environ.get("FM_SLOW", "1"))  # bounds of times are multiplied by this under sanitizers
SANITIZED = bool(os.environ.get("FM_SANITIZE"))
WAIT = 120 * SLOW  # seconds after which a missing message, or a missing end, is a failure
RUNS = 5
# if the machine is this many times slower than without other work, even what must happen within a second may take longer
BUSY = 4
LOOP_S = 0.009  # the time of pace()'s loop on the machine for which the bounds were written


def pace():
    """Returns how many times slower a piece of work is now than on the machine of the bounds, or than on this machine without
    other work (some limits are processor times); at least 1. Takes about a second: with a shorter loop, the system might favour
    this process because it has slept until now."""
    start, start_cpu = time.monotonic(), time.thread_time()
    loops = 0
    while time.monotonic() - start < 1 or loops < 100:
        sum(i * i for i in range(100_000))
        loops += 1
    took = time.monotonic() - start
    return max(1.0, took / loops / LOOP_S, took / (time.thread_time() - start_cpu))


class Late(AssertionError):
    """A failure that either a bug or a busy machine may cause."""


def repeated(method):
    """The test, which is run again if it was Late: up to RUNS times in all, each with a new setUp."""
    @functools.wraps(method)
    def run(test):
        for left in reversed(range(RUNS)):
            try:
                return method(test)
            except Late as late:
                if not left and (factor := pace()) < BUSY:
                    raise
                then = "once more" if left else f"skipped, on a machine {factor:.1f} times as slow"
                print(f"{test.id()}: {late}; {then}", file=sys.stderr, flush=True)
                if not left:
                    test.skipTest(str(late))
            test.tearDown()
            test.doCleanups()
            test.setUp()
    return run


class TimedTest(unittest.TestCase):
    def __init__(self, name="runTest"):
        super().__init__(name)
        if name != "runTest":
            setattr(self, name, types.MethodType(repeated(getattr(type(self), name)), self))

    def subTest(self, *message, **params):
        return _SubTest(super().subTest(*message, **params))

    def assert_soon(self, took, bound, message=""):
        """Asserts that `took` is less than `bound`, in the same unit of time. If the machine is slow now, `bound` is raised."""
        if took >= bound and took >= bound * (factor := pace()):
            raise Late(f"took {took:.3f}, not less than {bound:.3f}, on a machine {factor:.1f} times as slow {message}")

    def assert_undisturbed(self, holds, message=""):
        """Asserts `holds`, which may be false if the machine stood still for longer than a limit that the test sets."""
        if not holds:
            raise Late(f"does not hold, or the machine stood still: {message}")


class _SubTest:
    """A subTest that passes Late on to the test; otherwise it works like unittest's subTest."""

    def __init__(self, inner):
        self.inner = inner

    def __enter__(self):
        return self.inner.__enter__()

    def __exit__(self, kind, value, trace):
        if kind and issubclass(kind, Late):
            self.inner.__exit__(None, None, None)
            return False
        return self.inner.__exit__(kind, value, trace)
