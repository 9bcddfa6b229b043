"""A desktop for tests: an X server with two monitors side by side, a window manager, a separate home folder, and programs.
Everything that is started here ends with the desktop. screenshot() makes a PNG.

The server is Xvfb; its second monitor is a part of the screen that RandR 1.5 declares to be one. GTK, and so xfwm4, only
knows monitors with their own outputs. For xfwm4 the server is Xorg with the driver "dummy", which has any number of outputs."""

import atexit
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
sys.dont_write_bytecode = True
from patience import WAIT  # noqa: E402

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that atexit's functions run

WIDTH, HEIGHT = 2400, 800  # size of both monitors together
LEFT, RIGHT = [0, 0, 1200, 800], [1200, 0, 2400, 800]
MANAGERS = {
    "openbox": ["openbox", "--sm-disable"],
    "xfwm4": ["dbus-run-session", "--", "xfwm4", "--compositor=off"],
}
XORG = "/usr/lib/xorg/Xorg"  # the program itself, because /usr/bin/Xorg may be a wrapper that only lets console users start it
XORG_CONFIG = f"""
Section "ServerFlags"
    Option "AutoAddDevices" "false"
    Option "AutoAddGPU" "false"
EndSection
Section "Device"
    Identifier "none"
    Driver "dummy"
    VideoRam 16384
EndSection
Section "Monitor"
    Identifier "any"
    HorizSync 5-1000
    VertRefresh 5-1000
    Modeline "half" 80 {WIDTH // 2} 1248 1360 1504 {HEIGHT} 801 804 824
EndSection
Section "Screen"
    Identifier "both"
    Device "none"
    Monitor "any"
    DefaultDepth 24
    SubSection "Display"
        Virtual {WIDTH} {HEIGHT}
        Modes "half"
    EndSubSection
EndSection
"""
NEEDED = ("Xvfb", "xrandr", "xwd", "xwininfo", "xprop", "openbox", "xfwm4", "dbus-run-session", "xterm", "xclock")


def missing():
    """What this machine lacks for a desktop, in words; "": nothing."""
    programs = [name for name in (*NEEDED, XORG) if not shutil.which(name)]
    programs += [] if os.path.exists(f"{os.path.dirname(XORG)}/modules/drivers/dummy_drv.so") else ["Xorg's driver dummy"]
    return f"these programs are missing: {' '.join(programs)} (packaging/setup.sh --tests)" if programs else ""


def until(what, condition, wait=WAIT):
    """Calls condition() again and again until it returns a true value: X and its programs give no other signal."""
    end = time.monotonic() + wait
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {wait:.0f} s")
        time.sleep(0.01)
    return value


class Program:
    """A process of the desktop, in a separate session, that writes lines to stdout."""

    def __init__(self, args, env, **more):
        self.process = subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        start_new_session=True, **more)
        self.rest = b""

    @property
    def pid(self):
        return self.process.pid

    def line(self, wait=WAIT):
        """The next line of stdout; None at its end."""
        end = time.monotonic() + wait
        while b"\n" not in self.rest:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{self.process.args[0]} says nothing within {wait:.0f} s")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                return None
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def end(self):
        """Ends it and the processes that it started."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Desktop:
    """`manager`: a key of MANAGERS, or None for a bare screen. `display`: a number; None: a free one."""

    def __init__(self, manager=None, display=None):
        self.home = tempfile.mkdtemp(prefix="fm-desktop-")
        self.programs = []
        self.server = None
        atexit.register(self.end)  # an interrupted test does not run its cleanups
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("XDG_", "DBUS_", "WAYLAND", "DISPLAY", "XAUTHORITY"))}
        self.env |= {"HOME": self.home, "XDG_DATA_HOME": f"{self.home}/data", "XDG_DATA_DIRS": f"{self.home}/system",
                     "XDG_CONFIG_HOME": f"{self.home}/config", "XDG_CACHE_HOME": f"{self.home}/cache",
                     "XDG_RUNTIME_DIR": self.home, "DBUS_SESSION_BUS_ADDRESS": "disabled:", "LC_ALL": "C.UTF-8",
                     "NO_AT_BRIDGE": "1"}
        os.makedirs(f"{self.home}/data/applications")
        try:
            self.start_server(display, xorg=manager == "xfwm4")
            self.start_manager(manager)
        except BaseException:
            self.end()
            raise

    def start_server(self, display=None, xorg=False):
        read, write = os.pipe()
        number = [f":{display}"] if display is not None else []
        server = self.xorg() if xorg else ["Xvfb", "-screen", "0", f"{WIDTH}x{HEIGHT}x24"]
        try:
            self.server = Program([server[0], *number, *server[1:], "-displayfd", str(write), "-nolisten", "tcp", "-noreset"],
                                  self.env, pass_fds=[write], stderr=subprocess.DEVNULL)
        finally:
            os.close(write)
        with open(read, encoding="utf-8") as ready:
            if not select.select([ready], [], [], WAIT)[0]:
                raise AssertionError(f"{server[0]} does not start")
            told = ready.readline().strip()  # Xvfb writes the number and the newline separately: both writes must succeed
        if not told:
            raise AssertionError(f"{server[0]} ended at its start")
        self.display = int(told)
        self.env["DISPLAY"] = f":{self.display}"
        self.make_outputs() if xorg else self.make_monitors()

    def xorg(self):
        """The command to start Xorg without any device of this machine, above all not its console."""
        with open(f"{self.home}/xorg.conf", "w", encoding="utf-8") as file:
            file.write(XORG_CONFIG)
        return [XORG, "-config", f"{self.home}/xorg.conf", "-logfile", f"{self.home}/xorg.log", "-novtswitch", "-sharevts"]

    def make_monitors(self):
        """Makes two monitors; the left one is the primary one."""
        for name, area, outputs in (("*LEFT", LEFT, "screen"), ("RIGHT", RIGHT, "none")):
            self.run("xrandr", "--setmonitor", name, f"1200/300x800/200+{area[0]}+{area[1]}", outputs)

    def make_outputs(self):
        """Makes the two monitors as outputs. The second one is switched on."""
        self.run("xrandr", "--addmode", "DUMMY1", "half")
        left, right = (["--mode", "half", "--pos", f"{area[0]}x{area[1]}"] for area in (LEFT, RIGHT))
        self.run("xrandr", "--fb", f"{WIDTH}x{HEIGHT}", "--output", "DUMMY0", "--primary", *left, "--output", "DUMMY1", *right)
        self.run("xrandr")  # updates which outputs are connected; the driver only reports an output as connected if it is on

    def start_manager(self, name):
        if not name:
            return
        themes = {"XDG_DATA_DIRS": "/usr/local/share:/usr/share"}
        self.manager = Program(MANAGERS[name], self.env | themes, stderr=subprocess.DEVNULL)
        self.programs.append(self.manager)
        # The manager sets its name on the root window early. After that, openbox may have read events that it only handles when
        # another event comes.
        until(f"{name} is there", lambda: b"window id #" in self.run("xprop", "-root", "_NET_SUPPORTING_WM_CHECK"))
        clock = Program(["xclock"], self.env, stderr=subprocess.DEVNULL)
        until(f"{name} lists a window", lambda: self.nudge() or b"0x" in self.run("xprop", "-root", "_NET_CLIENT_LIST"))
        clock.end()
        until(f"{name} lists none", lambda: self.nudge() or b"0x" not in self.run("xprop", "-root", "_NET_CLIENT_LIST"))

    def nudge(self):
        self.run("xprop", "-root", "-f", "FM_NUDGE", "8s", "-set", "FM_NUDGE", "")

    def run(self, *args):
        """Runs a program to its end, and returns its stdout."""
        return subprocess.run(args, env=self.env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              timeout=WAIT).stdout

    # ---- what X itself reports about windows, whose ids are "0x..." here ----

    def frame(self, window):
        """The outer edges of a window with its frame: the edges of its topmost ancestor below the root."""
        while True:
            tree = self.run("xwininfo", "-tree", "-id", window).decode()
            root, parent = (re.search(rf"{what} window id: (0x[0-9a-f]+)", tree)[1] for what in ("Root", "Parent"))
            if parent == root:
                break
            window = parent
        told = self.run("xwininfo", "-id", window).decode()
        x, y, width, height = (int(re.search(rf"{what}: +(-?\d+)", told)[1])
                               for what in ("Absolute upper-left X", "Absolute upper-left Y", "Width", "Height"))
        return [x, y, x + width, y + height]

    def stacked(self):
        """Windows of applications, the topmost first. With a single window, xfwm4 reports no order."""
        return (self.listed("_NET_CLIENT_LIST_STACKING") or self.listed("_NET_CLIENT_LIST"))[::-1]

    def listed(self, name):
        """The windows in a property of the root window."""
        return re.findall(r"0x[0-9a-f]+", self.run("xprop", "-root", name).decode().partition("#")[2])

    def text(self, window, name):
        """The last string of a property (for WM_CLASS, the class). None: the window is gone, or has no such property."""
        told = subprocess.run(["xprop", "-id", window, name], env=self.env, stdin=subprocess.DEVNULL, timeout=WAIT,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
        found = re.findall(r'"((?:[^"\\]|\\.)*)"', told)
        return found[-1] if found else None

    def start(self, *args, **more):
        program = Program(args, self.env, **more)
        self.programs.append(program)
        return program

    def entry(self, id, name, command, window_class="", more=""):
        """Installs an application."""
        text = f"[Desktop Entry]\nType=Application\nName={name}\nExec={command}\n{more}"
        text += f"StartupWMClass={window_class}\n" if window_class else ""
        with open(f"{self.home}/data/applications/{id}.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(f"{self.home}/data/applications/{id}.new", f"{self.home}/data/applications/{id}")

    def end_programs(self):
        while self.programs:
            self.programs.pop().end()

    def end(self):
        self.end_programs()
        if self.server:
            self.server.end()
            self.server = None
        atexit.unregister(self.end)
        shutil.rmtree(self.home, ignore_errors=True)

    def screenshot(self, path):
        """A PNG of the whole screen."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(png(*read_xwd(self.run("xwd", "-root", "-silent"))))


def read_xwd(data):
    """(width, rows of RGB) from a dump by xwd with 32 bits per pixel and the lowest byte first, as Xvfb makes them."""
    header = struct.unpack(">20I", data[:80])
    size, width, height, bits, line, colours = header[0], header[4], header[5], header[11], header[12], header[19]
    if bits != 32 or header[7] != 0:
        raise AssertionError(f"a picture of {bits} bits a pixel, or of another order")
    start = size + colours * 12
    rows = []
    for y in range(height):
        row = data[start + y * line:start + y * line + width * 4]
        rgb = bytearray(width * 3)
        rgb[0::3], rgb[1::3], rgb[2::3] = row[2::4], row[1::4], row[0::4]
        rows.append(bytes(rgb))
    return width, rows


def png(width, rows):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    head = struct.pack(">2I5B", width, len(rows), 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows), 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


class Driver(Program):
    """The program of desktop_driver.c. `changes` are those of the environment: None removes a variable."""

    def __init__(self, desktop, **changes):
        env = {name: value for name, value in {**desktop.env, **changes}.items() if value is not None}
        read, self.cancel_fd = os.pipe()
        super().__init__([os.environ["FM_SYSTEM_DESKTOP_DRIVER"], "--cancel-fd", str(read)], env, pass_fds=[read])
        self.cancel_read = read

    def send(self, request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.line()
        if line is None:
            raise AssertionError(f"the driver ended with status {self.process.wait()}")
        return json.loads(line)

    def ask(self, request):
        self.send(request)
        return self.answer()

    def command(self, type, **args):
        return self.ask({"type": type, "args": args})

    def dump(self):
        return self.ask({"dump": True})

    def windows(self):
        return self.dump()["windows"]

    def cancel(self):
        os.write(self.cancel_fd, b"x")

    def end_cancel(self):
        os.read(self.cancel_read, 1)

    def end(self):
        """Closes the program's stdin, so that it ends. Checks that it ends normally, and without a leak if leaks are checked."""
        try:
            self.process.stdin.close()
            status = self.process.wait(WAIT)
            if status not in (0, -signal.SIGKILL):
                raise AssertionError(f"the driver ended with status {status}")
        finally:
            super().end()
            os.close(self.cancel_fd)
            os.close(self.cancel_read)
