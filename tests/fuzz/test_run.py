"""run.sh with a target and tools that are scripts: its exit status, and what becomes of the corpus."""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))

TOOLS = {
    "clang": """while [ "$1" != -o ]; do shift; done; : >"$2"\n""",
    "ninja": "",
    "pkg-config": "",
    # the only thing that is built: the target
    "cmake": """[ "$1" != --build ] || { mkdir -p "$2/tests-bin"; cp "$STUB_TARGET" "$2/tests-bin/fuzz_json"; }\n""",
}
TARGET = """
case $1 in
  -merge=1)
    [ "$STUB_MERGE" != nothing ] || exit 0
    [ "$STUB_MERGE" != fails ] || exit 1
    echo merged >"$3/merged"
    exit 0 ;;
esac
for argument; do
  case $argument in
    -artifact_prefix=*) [ -z "$STUB_FINDS" ] || echo input >"${argument#*=}crash-1" ;;
  esac
done
[ -z "$STUB_EXECUTIONS" ] || echo "stat::number_of_executed_units: $STUB_EXECUTIONS"
exit "$STUB_STATUS"
"""


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for file in ("tests/fuzz/run.sh", "packaging/lib.sh", "CMakePresets.json"):
            os.makedirs(os.path.dirname(self.path(file)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, file), self.path(file))
        for name, text in TOOLS.items():
            self.script("tools/" + name, text)
        self.script("target", TARGET)
        self.script("tests/fuzz/corpus/json/old", "old")

    def path(self, name):
        return os.path.join(self.root, name)

    def script(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(self.path(name), 0o755)

    def run_it(self, *options, status="0", executions="5", merge="works", finds=""):
        env = {**os.environ, "PATH": self.path("tools") + os.pathsep + os.environ["PATH"],
               "STUB_TARGET": self.path("target"), "STUB_STATUS": status, "STUB_EXECUTIONS": executions,
               "STUB_MERGE": merge, "STUB_FINDS": finds}
        return subprocess.run(["sh", self.path("tests/fuzz/run.sh"), *options, "1", "json"], env=env, text=True,
                              capture_output=True, check=False)

    def corpus(self):
        return os.listdir(self.path("tests/fuzz/corpus/json"))

    def assert_fails(self, *said, **how):
        done = self.run_it(**how)
        self.assertEqual(done.returncode, 1, done)
        for words in said:
            self.assertIn(words, done.stderr)
        self.assertEqual(self.corpus(), ["old"])
        self.assertRegex(done.stdout, "(?m)^json ", "the table is printed all the same")

    def test_a_good_run(self):
        done = self.run_it()
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, r"(?m)^json +5 ")
        self.assertEqual(self.corpus(), ["merged"])

    def test_a_target_that_does_not_run(self):
        self.assert_fails("json did not run", "exit status 1, 0 executions", status="1", executions="")
        self.assert_fails("json did not run", "exit status 0, 0 executions", executions="0")
        done = self.run_it("-j", "2", status="1", executions="")  # without the logs of its processes
        self.assertEqual(done.returncode, 1, done)

    def test_a_target_that_stops_early(self):
        self.assert_fails("json did not run", "exit status 137, 5 executions", status="137")

    def test_a_merge_that_fails(self):
        self.assert_fails("could not be merged", merge="fails")
        self.assert_fails("could not be merged", merge="nothing")

    def test_a_finding(self):
        self.assert_fails("json: a finding", status="77", finds="yes")


if __name__ == "__main__":
    unittest.main()
