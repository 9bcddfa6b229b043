"""Makes another process do system calls: `Process(pid)` stops the process by ptrace, `call` runs a system call in its main thread
and returns the result, and `let_go` restores the process. So a test can try calls inside a process without a hook. The sandbox of
the process denies such a call like any other call of the thread. Works on Linux on x86_64, as root or for a child process that
can be traced. Uses only Python's standard library."""

import ctypes
import os
import platform
import signal
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long
PTRACE_SINGLESTEP, PTRACE_GETREGS, PTRACE_SETREGS, PTRACE_ATTACH, PTRACE_DETACH = 9, 12, 13, 16, 17
SUPPORTED = platform.system() == "Linux" and platform.machine() == "x86_64"
SYSCALL = b"\x0f\x05"
ROOM = 8192  # bytes below the stack pointer, far below what a function may use there


class Registers(ctypes.Structure):
    """struct user_regs_struct of <sys/user.h>."""
    _fields_ = [(name, ctypes.c_ulonglong) for name in
                "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es "
                "fs gs".split()]


def ptrace(request, pid, data=None):
    if LIBC.ptrace(request, pid, None, data) == -1:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


class Process:
    """A process that waits in a system call, as an idle process does."""

    def __init__(self, pid):
        self.pid = pid
        self.saved = Registers()
        ptrace(PTRACE_ATTACH, pid)
        self._wait()
        ptrace(PTRACE_GETREGS, pid, ctypes.addressof(self.saved))
        self.memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
        self.code = self.saved.rip - 2
        assert os.pread(self.memory, 2, self.code) == SYSCALL, "it was not in a system call"
        self.top = self.saved.rsp - ROOM
        self.used = 0

    def _wait(self):
        _, status = os.waitpid(self.pid, 0x40000000)  # __WALL
        assert os.WIFSTOPPED(status), f"it has ended: {status}"
        return os.WSTOPSIG(status)

    def put(self, data):
        """Puts these bytes into the process' memory until `let_go`; returns their address."""
        self.used += -(-len(data) // 16) * 16
        os.pwrite(self.memory, data, self.top - self.used)
        return self.top - self.used

    def call(self, number, *arguments):
        """Returns the result of the call: a negative errno if it fails. Arguments: integers, and bytes, whose address is
        passed."""
        registers = Registers.from_buffer_copy(self.saved)
        values = [self.put(a) if isinstance(a, bytes) else a for a in arguments]
        for name, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), values):
            setattr(registers, name, value & (1 << 64) - 1)
        registers.rax, registers.orig_rax, registers.rip = number, (1 << 64) - 1, self.code
        registers.rsp = self.top - ROOM
        ptrace(PTRACE_SETREGS, self.pid, ctypes.addressof(registers))
        ptrace(PTRACE_SINGLESTEP, self.pid)
        assert self._wait() == signal.SIGTRAP, "another signal came"
        ptrace(PTRACE_GETREGS, self.pid, ctypes.addressof(registers))
        assert registers.rip == self.code + 2, "it has not done that"
        return struct.unpack("q", struct.pack("Q", registers.rax))[0]

    def let_go(self):
        ptrace(PTRACE_SETREGS, self.pid, ctypes.addressof(self.saved))
        ptrace(PTRACE_DETACH, self.pid)
        os.close(self.memory)
