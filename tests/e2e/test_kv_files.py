"""Tests the files in which an engine keeps what it has computed (ENGINE.md, Saved state): the front's part, with the fake engine.
FM_ENGINE_FAKE_SAVE sets what the fake engine does with the files."""

import contextlib
import os
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import time

import wire
from gateway import Gateway
from patience import Late
from wire import SLOW, HelperTest, alive, script, wait_until

NOTHING = "nothing"


class KvFiles(HelperTest):
    def setUp(self):
        parent = tempfile.TemporaryDirectory()
        self.addCleanup(parent.cleanup)
        self.folder = os.path.join(parent.name, "a", "kv")

    def start(self, how=None, *args, **more):
        env = {"FM_PROXY_NO_KV_CACHE_FILES": "0", "FM_PROXY_KV_CACHE_DIR": self.folder, **more.pop("env", {})}
        if how:
            env["FM_ENGINE_FAKE_SAVE"] = how
        return self.helper(*args, env=env, **more)

    def found(self, helper):
        """Returns the text that the engine has found from the previous engine."""
        events, result = helper.collect(self.create(helper, script({"parameter": "saved"})))
        self.assertTrue(result["ok"], result)
        return result["response"]["output"][0]["content"][0]["text"]

    def run_once(self, how=None, *args, **more):
        helper = self.start(how, *args, **more)
        found = self.found(helper)
        helper.call("process.shutdown")
        self.assertEqual(helper.wait_exit(), 0)
        return found

    def files(self):
        return sorted(os.listdir(self.folder)) if os.path.exists(self.folder) else []

    def only_file(self):
        if not self.files():
            raise Late("no file was saved within the helper's time for its end")
        self.assertEqual(len(self.files()), 1, self.files())
        return os.path.join(self.folder, self.files()[0])

    def write(self, text):
        with open(self.only_file(), "w") as f:
            f.write(text)


class Saves(KvFiles):
    def test_the_next_helper_has_it(self):
        self.assertEqual(self.run_once("text:first"), NOTHING)
        self.assertEqual(self.run_once("text:second"), "first")
        self.assertEqual(self.run_once(), "second")
        self.assertEqual(self.run_once(), "second", "an engine that saves nothing leaves what there is")
        self.only_file()

    def test_the_next_engine_has_it(self):
        helper = self.start("text:first", "--idle-unload-ms", "50")
        self.assertEqual(self.found(helper), NOTHING)
        first = helper.engine_pid()
        self.wait_engine_end(helper)
        self.assertFalse(first and alive(first))
        self.assertEqual(self.found(helper), "first")

    def test_modes(self):
        """The permissions do not depend on the umask, and are right even if the folder was readable for others."""
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        self.run_once("text:x")
        modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (self.folder, os.path.dirname(self.folder), self.only_file())]
        self.assertEqual(modes, [0o700, 0o700, 0o600])
        os.chmod(self.folder, 0o755)
        self.assertEqual(self.run_once(), "x")

    def test_the_usual_folder(self):
        home = os.path.dirname(os.path.dirname(self.folder))
        for env, folder in (({"HOME": home, "XDG_CACHE_HOME": ""}, ".cache/fm-proxy/kv"),
                            ({"HOME": home, "XDG_CACHE_HOME": f"{home}/c/"}, "c/fm-proxy/kv"),
                            ({"HOME": home, "XDG_CACHE_HOME": "not/absolute"}, ".cache/fm-proxy/kv")):
            with self.subTest(env):
                self.run_once("text:x", env={"FM_PROXY_KV_CACHE_DIR": "", **env})
                self.assertEqual(len(os.listdir(os.path.join(home, folder))), 1)
                shutil.rmtree(os.path.join(home, folder))

    def test_one_descriptor_to_write_one_to_read(self):
        self.run_once("text:x")
        path = self.only_file()
        for off in ("0", "1"):
            helper = self.start(env={"FM_PROXY_NO_KV_CACHE_FILES": off})
            self.found(helper)
            fds = f"/proc/{helper.engine_pid()}/fd"
            targets = {fd: os.readlink(os.path.join(fds, fd)) for fd in os.listdir(fds)}
            ours = {fd: target for fd, target in targets.items() if target.startswith(self.folder)}
            if off == "1":
                self.assertEqual(ours, {})
                continue
            self.assertEqual(sorted(ours), ["3", "4"])
            self.assertEqual(ours["3"], path)
            flags = {}
            for fd in ours:
                with open(f"/proc/{helper.engine_pid()}/fdinfo/{fd}") as f:
                    flags[fd] = int(f.read().split("flags:")[1].split()[0], 8) & os.O_ACCMODE
            self.assertEqual(flags, {"3": os.O_RDONLY, "4": os.O_WRONLY})

    def test_a_second_helper(self):
        """Both engines read the same file. The engine that ends last leaves its own file."""
        self.run_once("text:old")
        one, two = self.start("text:one"), self.start("text:two")
        self.assertEqual([self.found(one), self.found(two)], ["old", "old"])
        for helper in (one, two):
            helper.call("process.shutdown")
            self.assertEqual(helper.wait_exit(), 0)
        self.assertEqual(self.run_once(), "two")
        self.only_file()


class Off(KvFiles):
    def test_by_option(self):
        self.run_once("text:x", "--no-kv-cache-files")
        self.run_once("text:x", "--kv-cache-bytes", "0")
        self.run_once("text:x", env={"FM_PROXY_NO_KV_CACHE_FILES": "1"})
        self.assertFalse(os.path.exists(self.folder))

    def test_what_is_there_is_not_read(self):
        self.run_once("text:x")
        self.assertEqual(self.run_once("text:y", "--no-kv-cache-files"), NOTHING)
        self.assertEqual(self.run_once(), "x")

    def test_session_mode_has_none(self):
        """Session mode promises that it stores nothing."""
        refused = Gateway("--kv-cache-dir", self.folder)
        self.assertEqual(refused.wait_exit(), 64)
        self.assertIn("--kv-cache-dir", "".join(refused.rest_of_log()))
        refused.close()
        gateway = Gateway(env={"FM_PROXY_NO_KV_CACHE_FILES": "0", "FM_PROXY_KV_CACHE_DIR": self.folder,
                               "FM_ENGINE_FAKE_SAVE": "text:x"})
        self.assertTrue(gateway.message(gateway.open(), "x", "y")["ok"])
        self.assertEqual(gateway.close(), 0)
        self.assertFalse(os.path.exists(self.folder))


class Unusable(KvFiles):
    def test_a_folder_that_is_not_ours_alone(self):
        for mode in (0o777, 0o720):
            with self.subTest(oct(mode)):
                os.makedirs(self.folder, exist_ok=True)
                os.chmod(self.folder, mode)
                helper = self.start("text:x", "--log-level", "warn", stderr=subprocess.PIPE)
                self.assertEqual(self.found(helper), NOTHING)
                helper.close()
                with helper.process.stderr as log:
                    text = log.read().decode()
                self.assertIn(self.folder, text)
                self.assertIn("nobody else may write to it", text)
                self.assertEqual(self.files(), [])
        self.assertEqual(stat.S_IMODE(os.stat(self.folder).st_mode), 0o720, "it is somebody's: its mode stays")

    def test_a_folder_that_can_t_be(self):
        os.makedirs(os.path.dirname(self.folder))
        with open(self.folder, "w"):
            pass
        self.assertEqual(self.run_once("text:x"), NOTHING)

    def test_a_file_that_is_not_ours_alone(self):
        """A link is not followed, and a file that others can read or change is not read; both are replaced."""
        self.run_once("text:real")
        path = self.only_file()
        elsewhere = os.path.join(os.path.dirname(self.folder), "elsewhere")
        os.rename(path, elsewhere)
        os.symlink(elsewhere, path)
        self.assertEqual(self.run_once("text:new"), NOTHING)
        self.assertEqual(self.run_once(), "new")
        with open(elsewhere) as f:
            self.assertEqual(f.read(), "real")
        os.chmod(self.only_file(), 0o640)
        self.assertEqual(self.run_once("text:newer"), NOTHING)
        os.unlink(self.only_file())
        os.mkfifo(path)
        self.assertEqual(self.run_once(), NOTHING)

    def test_an_engine_that_can_t_use_it(self):
        self.run_once("text:x")
        self.assertEqual(self.run_once("unusable"), "x")
        self.assertEqual(self.files(), [])

    def test_an_engine_that_dies_of_it(self):
        """The file is removed, because otherwise the next engines would die too."""
        self.run_once("text:x")
        helper = self.start(env={"FM_ENGINE_FAKE_LOAD": "crash"})
        self.assert_error(helper.collect(self.create(helper, script("y")))[1], "UNAVAILABLE")
        wait_until(lambda: self.files() == [], "the end of the file")

    def test_the_file_is_exchanged_meanwhile(self):
        """The file that the engine can't use is removed, but not a newer one with the same name."""
        self.run_once("text:x")
        helper = self.start("unusable")
        self.assertEqual(self.found(helper), "x")
        self.run_once("text:y")
        helper.close()
        self.assertEqual(self.run_once(), "y")


class Torn(KvFiles):
    def setUp(self):
        super().setUp()
        self.run_once("text:old")

    def assert_old(self):
        self.only_file()
        self.assertEqual(self.run_once(), "old")

    def test_not_told_or_wrongly_told(self):
        for how in ("untold:new", "more:new"):
            with self.subTest(how):
                self.run_once(how)
                self.assert_old()

    def test_an_engine_that_hangs_while_it_saves(self):
        """The engine is killed in time, and what it wrote is dropped, both when the helper ends and when the engine is idle."""
        helper = self.start("hang:new")
        self.found(helper)
        before = time.monotonic()
        helper.call("process.shutdown")
        self.assertEqual(helper.wait_exit(), 0)
        self.assert_soon(time.monotonic() - before, 2 * SLOW)
        self.assert_old()
        helper = self.start("hang:new", "--idle-unload-ms", "50")
        self.found(helper)
        engine = helper.engine_pid()
        self.wait_engine_end(helper)
        self.assertFalse(alive(engine))
        helper.close()
        self.assert_old()

    def test_an_engine_that_is_stopped(self):
        """The engine does not even end when it is told to. A request that comes meanwhile goes to a new engine."""
        helper = self.start("text:new", "--idle-unload-ms", "300")
        self.found(helper)
        engine = helper.engine_pid()
        os.kill(engine, signal.SIGSTOP)
        wait_until(lambda: not alive(engine), "the engine's end")
        self.assertEqual(self.found(helper), "old")

    def test_an_engine_that_dies(self):
        helper = self.start("hang:new", "--idle-unload-ms", "50")
        self.found(helper)
        engine = helper.engine_pid()
        wait_until(lambda: any(os.path.getsize(os.path.join(self.folder, f)) == 3 and f.endswith(".new")
                               for f in self.files()), "the text")
        os.kill(engine, signal.SIGKILL)
        wait_until(lambda: len(self.files()) == 1, "the end of the new file")
        helper.close()
        self.assert_old()

    def test_a_helper_that_dies(self):
        """The file that a dead helper left is removed once it is old enough. The file of a running helper stays."""
        living, dead = self.start("text:living"), self.start("hang:dead")
        for helper in (living, dead):
            self.found(helper)
        self.assertEqual(len(self.files()), 3)
        os.kill(dead.pid, signal.SIGKILL)
        dead.wait_exit()
        self.assertEqual(len(self.files()), 3)
        for name in self.files():
            path = os.path.join(self.folder, name)
            if name.endswith(".new"):
                os.utime(path, (1, 1))
        engine_gone = lambda: self.run_once() == "old" and len(self.files()) == 2  # the dead helper's engine has ended too
        wait_until(engine_gone, "the end of what was left over")
        living.call("process.shutdown")
        self.assertEqual(living.wait_exit(), 0)
        self.assertEqual(self.run_once(), "living")

    def test_a_disk_that_is_full(self):
        """No signal ends the engine, and nothing that it wrote is left."""
        def small():
            resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
        helper = self.start("full", "--kv-cache-bytes", str(16 << 20), preexec_fn=small)
        self.found(helper)
        helper.call("process.shutdown")
        self.assertEqual(helper.wait_exit(), 0)
        self.assert_old()

    def test_a_small_file_system(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount a small file system")
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "none", self.folder], capture_output=True)
        if mount.returncode != 0:
            self.skipTest(f"no tmpfs can be mounted here: {mount.stderr.decode()}")
        self.addCleanup(subprocess.run, ["umount", self.folder], check=True)
        self.run_once("text:small")
        self.assertEqual(self.run_once("full", "--kv-cache-bytes", str(16 << 20)), "small")
        self.assertEqual(self.run_once(), "small")
        self.only_file()


class Bounds(KvFiles):
    def test_a_file_has_half_of_the_bytes(self):
        self.run_once("full", "--kv-cache-bytes", str(5 << 20))
        self.assertEqual(os.path.getsize(self.only_file()), 2 << 20)

    def test_an_engine_can_t_write_more(self):
        """The system refuses a file that is too large, whatever the engine does, so the disk does not fill up while the engine
        lives."""
        helper = self.start("beyond", "--kv-cache-bytes", str(4 << 20), "--idle-unload-ms", "50")
        self.found(helper)
        engine = helper.engine_pid()
        most = 0
        while alive(engine):
            for name in self.files():
                with contextlib.suppress(OSError):
                    most = max(most, os.path.getsize(os.path.join(self.folder, name)))
        self.assertEqual(most, 2 << 20)
        self.assertEqual(os.path.getsize(self.only_file()), 2 << 20)

    def test_what_was_not_used_goes_first(self):
        """Only as many other files are removed as necessary, and only files with saved state."""
        os.makedirs(self.folder, 0o700)
        names = [f"{number:016x}.kv" for number in range(4)] + ["mine.kv", "0123456789abcdef.txt"]
        for age, name in enumerate(names):
            path = os.path.join(self.folder, name)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
                f.truncate(1 << 20)
            os.utime(path, (2000 - age, 2000 - age))
        self.run_once("full", "--kv-cache-bytes", str(4 << 20))
        ours = [name for name in self.files() if name not in names]
        self.assertEqual(len(ours), 1)
        self.assertEqual([name for name in self.files() if name in names], sorted(names[:2] + names[4:]))

    def test_a_lower_limit(self):
        """A file that is too long is used once more, and then removed, also if nothing new is saved."""
        for how, left in ((None, 0), ("text:y", 1)):
            self.run_once("full", "--kv-cache-bytes", str(8 << 20))
            self.assertEqual(os.path.getsize(self.only_file()), 4 << 20)
            self.assertNotEqual(self.run_once(how, "--kv-cache-bytes", str(7 << 20)), NOTHING)
            self.assertEqual(sum(os.path.getsize(os.path.join(self.folder, name)) for name in self.files()), left)

    def test_a_name_that_is_taken(self):
        """A folder has the file's name: nothing is kept, and the log says so."""
        self.run_once("text:x")
        path = self.only_file()
        os.unlink(path)
        os.makedirs(os.path.join(path, "full"))
        helper = self.start("text:y", "--log-level", "warn", stderr=subprocess.PIPE)
        self.assertEqual(self.found(helper), NOTHING)
        helper.close()
        with helper.process.stderr as log:
            self.assertIn("is not kept", log.read().decode())
        self.assertEqual(self.files(), [os.path.basename(path)])

    def test_a_file_that_is_read_is_used(self):
        self.run_once("text:x")
        os.utime(self.only_file(), (1, 1))
        self.run_once()
        self.assertGreater(os.stat(self.only_file()).st_mtime, time.time() - 3600)


if __name__ == "__main__":
    wire.main()
