"""
Runs a command in a folder like a container with Docker's defaults: the folder is the root and a separate mount point,
/sys and /proc/sys are read-only, /dev has the usual devices alone, and root lacks most capabilities and the system calls for
namespaces, mounts, keys and io_uring. bare-root.sh --container starts it, as root, in namespaces for mounts and processes.

usage: container.py FOLDER PROGRAM ARGUMENT...     the program is looked for in FOLDER; x86_64 alone
"""
import ctypes
import os
import struct
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
PIVOT_ROOT, PR_SET_SECCOMP, PR_CAPBSET_DROP = 155, 22, 24
EPERM, ENOSYS = 1, 38
CLONE, CLONE3, PERSONALITY = 56, 435, 135
NAMESPACES = 0x7E020000  # the flags of clone(2)
NO_RANDOM_ADDRESSES = 0x40000
# unshare setns mount umount2, keys, userfaultfd perf_event_open bpf, mounts by descriptor, io_uring
DENIED = (272, 308, 165, 166, 248, 249, 250, 323, 298, 321, 428, 429, 430, 431, 432, 433, 442, 425, 426, 427)
# chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot mknod audit_write setfcap
KEPT = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def call(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def fill(root):
    mount("--bind", root, root)
    os.chdir(root)
    mount("-t", "proc", "proc", "proc")
    mount("--bind", "proc/sys", "proc/sys")
    mount("-o", "remount,bind,ro", "proc/sys")
    mount("-t", "sysfs", "-o", "ro", "sysfs", "sys")
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "dev")
    for name, (major, minor) in DEVICES.items():
        os.mknod("dev/" + name, 0o020666, os.makedev(major, minor))
        os.chmod("dev/" + name, 0o666)
    for name, target in LINKS.items():
        os.symlink(target, "dev/" + name)
    for name, kind, options in (("pts", "devpts", "newinstance,ptmxmode=666,gid=5,mode=620"), ("shm", "tmpfs", "mode=1777")):
        os.mkdir("dev/" + name)
        mount("-t", kind, "-o", options, kind, "dev/" + name)


def seccomp():
    def line(code, value, if_true=0, if_false=0):
        return struct.pack("=HBBI", code, if_true, if_false, value)

    def load(offset):
        return line(0x20, offset)

    def fail(error):
        return line(0x06, 0x00050000 | error)

    number, first = 0, 16
    code = load(number) + line(0x15, CLONE3, 0, 1) + fail(ENOSYS)  # the filter can't read its flags, so glibc must use clone
    for denied in DENIED:
        code += line(0x15, denied, 0, 1) + fail(EPERM)
    code += line(0x15, CLONE, 0, 3) + load(first) + line(0x45, NAMESPACES, 0, 1) + fail(EPERM)
    code += load(number) + line(0x15, PERSONALITY, 0, 3) + load(first) + line(0x45, NO_RANDOM_ADDRESSES, 0, 1) + fail(EPERM)
    code += line(0x06, 0x7FFF0000)
    program = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(program)))
    call(LIBC.prctl(PR_SET_SECCOMP, 2, ctypes.c_void_p(ctypes.addressof(header)), 0, 0))


def main():
    if len(sys.argv) < 3 or os.uname().machine != "x86_64":
        sys.exit(__doc__)
    with open("/proc/sys/kernel/cap_last_cap", "rb") as file:
        capabilities = range(int(file.read()) + 1)
    fill(sys.argv[1])
    call(LIBC.syscall(PIVOT_ROOT, b".", b"."))  # now the old root covers the new one
    call(LIBC.umount2(b".", 2))  # MNT_DETACH
    os.chdir("/")
    seccomp()
    for capability in set(capabilities) - set(KEPT):
        call(LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0))
    os.execve(sys.argv[2], sys.argv[2:], {})


main()
