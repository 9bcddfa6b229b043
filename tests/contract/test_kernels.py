"""Tests the llama engine's own kernels: the answers are the same as without them, to the last bit of the log probabilities.

    test_kernels.py PROGRAM MODEL

Uses one compute thread, and runs jobs one after the other. With simultaneous jobs the bits depend on when each job came, also
with ggml's kernels: in batches of 64 tokens or more, ggml computes attention in tiles, and the cells of several sequences are in
the order in which they came. So different results of simultaneous jobs would show nothing about the kernels. Exit status 77:
skipped, because
MODEL is not there.
"""

import os
import platform
import re
import shutil
import sys
import tempfile
import unittest

from engine import Engine, program_and_model, user

PROGRAM = None
MODEL = None

KERNELS = "FM_ENGINE_LLAMA_KERNELS"
USED = re.compile(rb"products of Q4_1 are computed with (\S+)")
X86 = sys.platform == "linux" and platform.machine() == "x86_64"


class Case(unittest.TestCase):
    def engine(self, kernels, program=None, **env):
        engine = Engine(program or PROGRAM, {"FM_ENGINE_LLAMA_REPEATABLE": "", "FM_ENGINE_LLAMA_SPECULATION": "always",
                                              KERNELS: kernels, **env})
        self.addCleanup(engine.close)
        self.assertTrue(engine.initialize(log_level="debug")["ok"])
        result, _ = engine.load(MODEL)
        self.assertTrue(result["ok"], result)
        return engine

    def used(self, engine):
        """Ends the engine; returns the kernels that its log names."""
        engine.close()
        found = USED.search(engine.stderr)
        return found and found[1].decode()

    @staticmethod
    def answers(engine):
        """Answers of repeatable jobs, one with a long prompt, and of jobs whose drafts are computed beside each token. The latter
        follow a prompt that a repeatable job computed: otherwise the prompt's bits depend on how fast the machine was."""
        options = {"temperature": 0, "logprobs": 3}
        long = user("Tell a story. " + "The cat sat on the mat. " * 30)
        short = [user(f"Count from {first} on, one number a line.") for first in range(4)]
        told = [engine.run(messages, **options, max_tokens=8, seed=1) for messages in [long, *short]]
        told += [engine.run(messages, **options, max_tokens=24) for messages in short]
        return [(one.text, one.logprobs) for one in told]


class Answers(Case):
    def compare(self, **env):
        """Compares both kernels; returns the name of our kernel."""
        ours, theirs = (self.engine(kernels, **env) for kernels in ("own", "ggml"))
        own = self.answers(ours)
        for one, other in zip(own, self.answers(theirs)):
            self.assertEqual(one, other)
        self.assertTrue(all(logprobs for _, logprobs in own) and len(own[-1][1]) > 4, own)
        self.assertIsNone(self.used(theirs))
        return self.used(ours)

    @unittest.skipUnless(X86, "there are kernels for Linux on x86_64 alone")
    def test_they_are_the_same(self):
        self.assertIn(self.compare(), ("AVX2", "AVX-512") if has_avx2() else (None,))

    @unittest.skipUnless(X86, "there are kernels for Linux on x86_64 alone")
    def test_they_are_the_same_with_avx2(self):
        """In a copy of the folder, ggml's library for Haswell is the only one."""
        if not has_avx2():
            self.skipTest("this processor has no AVX2")
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(libraries()):
                if "ggml-cpu" not in name or "haswell" in name:
                    shutil.copy(os.path.join(libraries(), name), folder)
            self.assertEqual(self.compare(LD_LIBRARY_PATH=folder), "AVX2")


class Setting(Case):
    def test_another_value(self):
        engine = Engine(PROGRAM, {KERNELS: "fast"})
        self.addCleanup(engine.close)
        engine.initialize()
        result, _ = engine.load(MODEL)
        self.assertFalse(result["ok"])
        self.assertEqual(result["error"]["detail"], f'{KERNELS} is neither "own" nor "ggml"')


def has_avx2():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        return " avx2 " in file.read()


def libraries():
    """The folder with llama.cpp's libraries, as the program finds it."""
    engine = Engine(PROGRAM)
    try:
        engine.initialize()
        with open(f"/proc/{engine.process.pid}/maps", encoding="ascii") as maps:
            return next(os.path.dirname(line.split()[-1]) for line in maps if "/libllama." in line)
    finally:
        engine.close()


if __name__ == "__main__":
    PROGRAM, MODEL = program_and_model(__doc__)
    unittest.main()
