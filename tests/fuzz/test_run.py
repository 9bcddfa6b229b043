"""Tests run.sh with scripts in place of the target and the tools: its exit status, and the changes of the corpus. Also tests
packs."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import pack

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PROBE = os.environ.get("FM_REPLAY_PROBE")

TOOLS = {
    "clang": """while [ "$1" != -o ]; do shift; done; : >"$2"\n""",
    "ninja": "",
    "pkg-config": "",
    # the only thing that is built is the target
    "cmake": """
if [ "$1" = --build ]; then
  mkdir -p "$2/tests-bin"
  cp "$STUB_TARGET" "$2/tests-bin/fuzz_json"
else
  echo "build fuzz_$STUB_CAN_BUILD: phony" >build/fuzz/build.ninja
fi
""",
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
        for file in ("tests/fuzz/run.sh", "tests/fuzz/pack.py", "packaging/lib.sh", "CMakePresets.json"):
            os.makedirs(os.path.dirname(self.path(file)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, file), self.path(file))
        for name, text in TOOLS.items():
            self.script("tools/" + name, text)
        self.script("target", TARGET)
        self.script("old/input", "old")
        os.makedirs(self.path("tests/fuzz/corpus"))
        pack.pack(self.path("old"), self.corpus_file())

    def path(self, name):
        return os.path.join(self.root, name)

    def script(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(self.path(name), 0o755)

    def run_it(self, *options, status="0", executions="5", merge="works", finds="", can_build="json"):
        env = {**os.environ, "PATH": self.path("tools") + os.pathsep + os.environ["PATH"],
               "STUB_TARGET": self.path("target"), "STUB_STATUS": status, "STUB_EXECUTIONS": executions,
               "STUB_MERGE": merge, "STUB_FINDS": finds, "STUB_CAN_BUILD": can_build}
        return subprocess.run(["sh", self.path("tests/fuzz/run.sh"), *options, "1", "json"], env=env, text=True,
                              capture_output=True, check=False)

    def corpus_file(self):
        return self.path("tests/fuzz/corpus/json.pack")

    def corpus(self):
        return [body for _, body in pack.entries(self.corpus_file())]

    def assert_fails(self, *said, **how):
        done = self.run_it(**how)
        self.assertEqual(done.returncode, 1, done)
        for words in said:
            self.assertIn(words, done.stderr)
        self.assertEqual(self.corpus(), [b"#!/bin/sh\nold"])
        self.assertRegex(done.stdout, "(?m)^json ", "the table is printed all the same")

    def test_a_good_run(self):
        done = self.run_it()
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, r"(?m)^json +5 ")
        self.assertEqual(self.corpus(), [b"merged\n"])

    def test_a_target_that_does_not_run(self):
        self.assert_fails("json did not run", "exit status 1, 0 executions", status="1", executions="")
        self.assert_fails("json did not run", "exit status 0, 0 executions", executions="0")
        done = self.run_it("-j", "2", status="1", executions="")  # the logs of its processes are missing
        self.assertEqual(done.returncode, 1, done)

    def test_a_target_whose_libraries_are_missing(self):
        done = self.run_it(can_build="url")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("the target json is built with libraries that are not here", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_target_that_stops_early(self):
        self.assert_fails("json did not run", "exit status 137, 5 executions", status="137")

    def test_a_merge_that_fails(self):
        self.assert_fails("could not be merged", merge="fails")
        self.assert_fails("could not be merged", merge="nothing")

    def test_a_finding(self):
        self.assert_fails("json: a finding", status="77", finds="yes")


class PackTest(unittest.TestCase):
    INPUTS = (b"", b"\n", b"one line\n", b"0" * 40 + b" 3\nabc\n", bytes(range(256)) * 100)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.pack = os.path.join(self.root, "a.pack")
        self.write(self.INPUTS)

    def write(self, inputs):
        folder = tempfile.mkdtemp(dir=self.root)
        for i, body in enumerate(inputs):
            with open(os.path.join(folder, str(i)), "wb") as file:
                file.write(body)
        pack.pack(folder, self.pack)

    def bytes(self):
        with open(self.pack, "rb") as file:
            return file.read()

    def run_it(self, *arguments):
        return subprocess.run([sys.executable, "-B", pack.__file__, *arguments], capture_output=True, check=False)


class Packs(PackTest):
    def test_what_is_packed_comes_out(self):
        out = os.path.join(self.root, "out")
        self.assertEqual(self.run_it("unpack", self.pack, out).returncode, 0)
        found = []
        for name in os.listdir(out):
            with open(os.path.join(out, name), "rb") as file:
                found.append(file.read())
        self.assertEqual(sorted(found), sorted(self.INPUTS))

    def test_the_same_inputs_make_the_same_file(self):
        first = self.bytes()
        self.write([*reversed(self.INPUTS), self.INPUTS[0]])
        self.assertEqual(self.bytes(), first)

    def test_one_entry_is_shown(self):
        for line in self.run_it("list", self.pack).stdout.decode().splitlines():
            name, length = line.split()
            self.assertIn(body := self.run_it("show", self.pack, name[:8]).stdout, self.INPUTS)
            self.assertEqual(len(body), int(length))
        self.assertEqual(self.run_it("show", self.pack, "").returncode, 1, "several entries fit")

    def test_a_damaged_pack_is_refused(self):
        whole = self.bytes()
        for at in range(0, len(whole), 997):
            for damaged in (whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:], whole[:at] + b"\n"):
                with open(self.pack, "wb") as file:
                    file.write(damaged)
                with self.assertRaisesRegex(pack.Damaged, "is damaged"):
                    list(pack.entries(self.pack))
        done = self.run_it("list", self.pack)
        self.assertEqual((done.returncode, b"is damaged" in done.stderr), (1, True), done)

    def test_the_corpora_are_whole(self):
        packs = glob.glob(os.path.join(ROOT, "tests", "fuzz", "corpus", "*.pack"))
        self.assertGreaterEqual(len(packs), 7)
        for path in packs:
            self.assertGreater(sum(1 for _ in pack.entries(path)), 0, path)


@unittest.skipUnless(PROBE, "FM_REPLAY_PROBE names no program; ctest sets it where libFuzzer doesn't drive the targets")
class Replay(PackTest):
    """Tests replay.c on packs; its target aborts at an input that begins with "!"."""

    def replay(self):
        return subprocess.run([PROBE, self.pack], capture_output=True, text=True, check=False)

    def test_each_entry_is_replayed(self):
        done = self.replay()
        self.assertEqual((done.returncode, done.stdout.split()[-2:]), (0, [str(len(self.INPUTS)), "inputs"]), done)

    def test_a_crash_names_its_entry(self):
        self.write([*self.INPUTS, b"!bad"])
        done = self.replay()
        self.assertNotEqual(done.returncode, 0)
        name = done.stderr.rsplit("entry ", 1)[1].strip()
        self.assertEqual(self.run_it("show", self.pack, name).stdout, b"!bad")

    def test_what_is_no_pack_fails(self):
        whole = self.bytes()
        for damaged in (b"", b"\n", b"no pack", b"x 1\nab", b"x " + b"9" * 30 + b"\n", whole[:-1], whole[:-2], whole + b"a 1\n"):
            with open(self.pack, "wb") as file:
                file.write(damaged)
            self.assertEqual(self.replay().returncode, 1, damaged)


if __name__ == "__main__":
    unittest.main()
