"""Verifies what the other tests rely on: a late test is run again from its setUp, five times at most. After other failures, a
test is not run again."""

import io
import unittest
from contextlib import redirect_stderr
from unittest import mock

import patience
from patience import TimedTest


class Patience(unittest.TestCase):
    def run_it(self, body, within_subtest=False):
        """Runs `body` as a test; returns its result and the methods that were called, in order."""
        calls = []

        class Sample(TimedTest):
            def setUp(self):
                calls.append("setUp")
                self.addCleanup(calls.append, "cleanup")

            def tearDown(self):
                calls.append("tearDown")

            def test(self):
                calls.append("test")
                if within_subtest:
                    with self.subTest("part"):
                        body(self, calls.count("test"))
                    calls.append("after")
                else:
                    body(self, calls.count("test"))
        result = unittest.TestResult()
        with redirect_stderr(io.StringIO()):
            Sample("test").run(result)
        return result, calls

    def test_in_time(self):
        result, calls = self.run_it(lambda test, run: test.assert_soon(0.1, 1.0))
        self.assertTrue(result.wasSuccessful())
        self.assertEqual(calls, ["setUp", "test", "tearDown", "cleanup"])

    def test_by_name(self):
        """unittest finds a method by its name only if it is a real method."""
        class Sample(TimedTest):
            def test(self):
                pass
        self.assertTrue(hasattr(Sample("test").test, "__func__"))

    def test_late_once(self):
        for within_subtest in (False, True):
            result, calls = self.run_it(lambda test, run: test.assert_soon(1e6 if run == 1 else 0.1, 1.0), within_subtest)
            self.assertTrue(result.wasSuccessful(), result.failures)
            after = ["after"] if within_subtest else []
            whole = ["setUp", "test", "tearDown", "cleanup"]
            self.assertEqual(calls, whole + whole[:2] + after + whole[2:])

    def test_late_always(self):
        """If the machine is so slow that nothing could be in time, the test is skipped."""
        for within_subtest, factor in ((False, 1.0), (True, 1.0), (False, patience.BUSY), (True, patience.BUSY)):
            with mock.patch("patience.pace", return_value=factor):
                result, calls = self.run_it(lambda test, run: test.assert_undisturbed(False), within_subtest)
            failed = factor < patience.BUSY
            self.assertEqual((len(result.failures), len(result.skipped), result.errors), (failed, not failed, []))
            self.assertEqual((calls.count("setUp"), calls.count("test")), (patience.RUNS, patience.RUNS))

    def test_another_failure_is_final(self):
        for within_subtest in (False, True):
            result, calls = self.run_it(lambda test, run: test.assertTrue(False), within_subtest)
            self.assertEqual((len(result.failures), calls.count("test")), (1, 1))

    def test_a_slow_machine_has_longer(self):
        original, patience.LOOP_S = patience.LOOP_S, patience.LOOP_S / 1e6
        try:
            result, calls = self.run_it(lambda test, run: test.assert_soon(100.0, 1.0))
        finally:
            patience.LOOP_S = original
        self.assertEqual((result.wasSuccessful(), calls.count("test")), (True, 1))


if __name__ == "__main__":
    unittest.main()
