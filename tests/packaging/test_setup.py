#!/usr/bin/env python3
"""
packaging/setup.sh with scripts in place of compilers, cargo, npm and apt: which steps it takes, and what it prints. Nothing is
downloaded, built or installed.
"""
import json
import os
import pty
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOCK = "helper/engine/guide/guidance/Cargo.lock"
TEXT = "cmake --build build --target fm-proxy fm-engine-llama"
WHOLE = TEXT + " fm-engine-remote"

# Only these programs of the system are in PATH.
STOCK = "awk cat cmp cut dirname env find flock grep ls mkdir mktemp mv python3 rm sed sh sha256sum tail tee touch tr wc".split()
NOTED = 'echo "${0##*/} $*" >>"$CALLS"\n'
SCRIPTS = {
    "apt-get": NOTED,
    # works like rustup's cargo, which needs the HOME where it was installed
    "cargo": NOTED + '[ "$HOME" = /home/first ] && echo "cargo 1.95.0"',
    # A build stays in its seventh step until something is written to the pipe $GO, if the pipe exists.
    "cmake": NOTED + """
if [ "$1" = --preset ]; then
  touch build/build.ninja
  [ "$2" != "$BROKEN" ]
  exit
fi
echo "$NINJA_STATUS" | sed 's/%f/7/; s/%t/95/; s/$/building libmtmd/'
echo "[5/5] Linking libfm_mtmd.a" # of the ninja that this step runs
[ ! -p "$GO" ] || read -r line <"$GO"
mkdir -p build/bin
printf '#!/bin/sh\\n' >build/bin/fm-proxy
/bin/chmod +x build/bin/fm-proxy
""",
    # In the tests that have the pipe, each call of date is twenty seconds later than the one before. No time passes in others.
    "date": """
[ -p "$GO" ] || { echo 1000; exit; }
now=$(cat "$CALLS.now" 2>/dev/null || echo 1000)
echo $((now + 20)) | tee "$CALLS.now"
""",
    "g++": "",
    "gcc": "",
    "git": "",
    "id": "echo 0",
    "ninja": '[ -z "$GUIDANCE" ] || echo "ninja: no work to do."',
    "node": "echo v22.0.0",
    "npm": NOTED,
    "pkg-config": NOTED,
    "rustc": "",
    "sleep": "exec /bin/sleep 0.01",
    "uname": "echo Linux x86_64",
}


def write(path, text="", mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


class SetUp(unittest.TestCase):
    """Each test has a checkout with all downloads."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.calls = os.path.join(self.folder, "calls")
        self.go = os.path.join(self.folder, "go")
        self.checkout = os.path.join(self.folder, "checkout")
        for path in "packaging/setup.sh", "packaging/lib.sh", "packaging/pins", "CMakePresets.json", LOCK:
            os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, path), self.at(path))
        self.make_programs()
        self.make_downloads()

    def at(self, path):
        return os.path.join(self.checkout, path)

    def make_programs(self):
        programs = os.path.join(self.folder, "bin")
        for name, text in SCRIPTS.items():
            write(os.path.join(programs, name), "#!/bin/sh\n" + text + "\n", 0o755)
        for name in STOCK:
            os.symlink(shutil.which(name), os.path.join(programs, name))
        self.env = {"PATH": programs, "HOME": "/home/first", "CALLS": self.calls, "GO": self.go, "BROKEN": "", "GUIDANCE": ""}

    def make_downloads(self):
        with open(self.at("packaging/pins"), encoding="utf-8") as pins:
            sums = {line.split()[0]: line.split()[5] for line in pins if line[0] not in "#\n"}
        for name in "llama-lib", "llama-src", "model":
            write(self.at(f"build/deps/.pin.{name}"), sums[name] + "\n")
        write(self.at("build/models/SmolLM2-135M-Instruct.Q4_1.gguf"))
        for folder in "build/deps/llama/lib", "build/deps/llama/src", "js-shim/dist":
            os.makedirs(self.at(folder))
        write(self.at("js-shim/package-lock.json"))
        write(self.at("js-shim/node_modules/.fm-installed"))
        write(self.at("build/.js-built"))
        self.vendor()

    def vendor(self):
        os.makedirs(self.at("build/deps/rust"), exist_ok=True)
        shutil.copy(self.at(LOCK), self.at("build/deps/rust/.vendored"))

    def run_setup(self, *options, status=0, **env):
        """Returns the programs that it calls, and its output."""
        write(self.calls)
        command = ["sh", self.at("packaging/setup.sh"), *options]
        run = subprocess.run(command, env=self.env | env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, status, run.stderr)
        self.assertEqual(run.stdout, "")
        with open(self.calls, encoding="utf-8") as calls:
            return calls.read().splitlines(), run.stderr

    def builds(self, *options, **more):
        return [call for call in self.run_setup(*options, **more)[0] if call.startswith("cmake ")]


class Text(SetUp):
    def test_no_more_than_a_text_answer_needs(self):
        os.remove(self.at("build/deps/rust/.vendored"))
        for home in "/home/first", "/home/other":
            with self.subTest(home):
                shutil.rmtree(self.at("build/bin"), ignore_errors=True)
                calls, said = self.run_setup("--text", HOME=home)
                libraries = ["json-c", "sqlite3", "xcb-randr xcb-ewmh gio-unix-2.0"]
                self.assertEqual(set(calls) - {f"pkg-config --exists {library}" for library in libraries},
                                 {"cmake --preset text", TEXT} if home == "/home/first" else {TEXT})
                self.assertEqual(said, "fm-proxy: building (text)\n")

    def test_it_is_done_once(self):
        self.builds("--text")
        self.assertEqual(self.builds("--text"), [TEXT])

    def test_the_rest_follows(self):
        self.builds("--text")
        calls, said = self.run_setup()
        self.assertEqual([call for call in calls if call.startswith("cmake ")], ["cmake --preset default", WHOLE])
        self.assertEqual(said, "fm-proxy: building (default)\n")

    def test_a_whole_build_stays_whole(self):
        self.builds()
        self.assertEqual(self.builds("--text"), [WHOLE])

    def test_another_option_wants_all(self):
        self.assertEqual(self.builds("--text", "--system"), ["cmake --preset default", WHOLE + " fm-system"])

    def test_after_a_failure_the_text_is_configured_again(self):
        self.builds("--text")
        self.builds(status=1, BROKEN="default")
        self.assertEqual(self.builds("--text"), ["cmake --preset text", TEXT])

    def test_each_preset_takes_back_what_the_other_set(self):
        with open(os.path.join(ROOT, "CMakePresets.json"), encoding="utf-8") as presets:
            found = {preset["name"]: preset for preset in json.load(presets)["configurePresets"]}
        self.assertEqual(found["text"]["cacheVariables"].keys(), found["default"]["cacheVariables"].keys())
        self.assertEqual(found["text"]["binaryDir"], found["default"]["binaryDir"])


class Home(SetUp):
    """Rust was installed by rustup, for one HOME."""

    def test_another_one_needs_nothing(self):
        self.builds()
        calls, said = self.run_setup(HOME="/home/other", GUIDANCE="yes")
        self.assertEqual([call for call in calls if call.split()[0] in ("apt-get", "cmake", "npm")], [WHOLE])
        self.assertEqual(said, "")

    def test_rust_is_looked_for_where_its_library_must_be_compiled(self):
        self.builds()
        calls, said = self.run_setup(HOME="/home/other")
        self.assertIn("apt-get -q -o DPkg::Lock::Timeout=300 update", calls)
        self.assertIn("building without structured output", said)


class Progress(SetUp):
    """A build waits until the test has seen the line about its progress."""

    def setUp(self):
        super().setUp()
        os.mkfifo(self.go)

    def start(self, stderr):
        command = ["sh", self.at("packaging/setup.sh"), "--text"]
        return subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)

    def let_go(self):
        with open(self.go, "w", encoding="utf-8") as go:
            go.write("\n")

    def test_a_log_has_a_line_every_twenty_seconds(self):
        with self.start(subprocess.PIPE) as run:
            said = [run.stderr.readline() for _ in range(4)]
            while said[-1] and b"[" not in said[-1]:
                said.append(run.stderr.readline())
            self.let_go()
            run.stderr.read()
        self.assertEqual(run.returncode, 0)
        self.assertEqual(said[0], b"fm-proxy: building (text)\n")
        self.assertIn(b"[7/95]", said[-1])
        for line, time in zip(said[1:], ("0:20", "0:40", "1:00")):
            self.assertRegex(line.decode(), rf"^fm-proxy: (building|\[7/95\]) after {time}\n$")

    def test_a_terminal_has_one_line_that_is_taken_away(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        with self.start(theirs) as run:
            os.close(theirs)
            said = b""
            while not re.search(rb"\rfm-proxy: \[\d+/\d+\] after \d+:[024]0 ", said):
                said += os.read(ours, 4096)
            self.let_go()
            while not said.endswith(b"\r" + b" " * 40 + b"\r"):
                said += os.read(ours, 4096)
        self.assertEqual(run.returncode, 0)
        self.assertIn(b"[7/95]", said)
        self.assertEqual(said.count(b"\n"), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
