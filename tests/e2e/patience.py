"""
How long tests wait, and how they may check how long something took.

A machine may be slow, and busy with other work, so that any process stands still for a second. So there are two kinds of
times: WAIT, after which something counts as hanging; and bounds that are part of a behaviour. TimedTest handles the latter: a
run that exceeds one of them is repeated, since other work can only add time. If all five runs take too long, it is a bug,
unless other work uses most of the machine: then the test is skipped, with the reason.
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
BUSY = 4  # times slower than without other work: then even what must happen within a second may take longer
LOOP_S = 0.009  # the time of pace()'s loop on the machine for which the bounds were written


def pace():
    """How many times slower than on that machine a piece of work is now, or than on this one without other work (some limits
    are processor times); at least 1. Takes about a second: if it were shorter, the system might favour this process because
    it has slept until now."""
    start, start_cpu = time.monotonic(), time.thread_time()
    loops = 0
    while time.monotonic() - start < 1 or loops < 100:
        sum(i * i for i in range(100_000))
        loops += 1
    took = time.monotonic() - start
    return max(1.0, took / loops / LOOP_S, took / (time.thread_time() - start_cpu))


class Late(AssertionError):
    """A failure that a busy machine can cause as well as a bug."""


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
    """A subTest that passes Late on to the test; the rest is unittest's."""

    def __init__(self, inner):
        self.inner = inner

    def __enter__(self):
        return self.inner.__enter__()

    def __exit__(self, kind, value, trace):
        if kind and issubclass(kind, Late):
            self.inner.__exit__(None, None, None)
            return False
        return self.inner.__exit__(kind, value, trace)
