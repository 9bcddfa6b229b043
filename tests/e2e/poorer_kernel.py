"""Makes a helper run as on a kernel without some layers of the sandbox: a seccomp filter of the host denies their calls."""

import ctypes
import os
import platform
import struct

MACHINE = platform.machine()

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_SET_SECUREBITS = 22, 38, 24, 28
PRCTL = {"x86_64": 157, "aarch64": 167}.get(MACHINE)
EINVAL, ENOSYS = 22, 38

NO_LANDLOCK = (444, None, ENOSYS)
NO_CLOSE_RANGE = (436, None, ENOSYS)
NO_SECCOMP = (PRCTL, PR_SET_SECCOMP, EINVAL)
NO_NEW_PRIVS = (PRCTL, PR_SET_NO_NEW_PRIVS, EINVAL)
NO_CAPSET = ({"x86_64": 126, "aarch64": 91}.get(MACHINE), None, ENOSYS)
NO_BOUNDS = (PRCTL, PR_CAPBSET_DROP, EINVAL)
NO_SECUREBITS = (PRCTL, PR_SET_SECUREBITS, EINVAL)
KEEPS_CAPABILITIES = (NO_CAPSET, NO_BOUNDS, NO_SECUREBITS)
EVERYTHING = (NO_LANDLOCK, NO_SECCOMP, NO_NEW_PRIVS, *KEEPS_CAPABILITIES)


def poorer(*rules):
    """Returns a function for preexec_fn, after which these calls fail, always or with this first argument."""
    code = b""
    for number, argument, error in rules:
        fail = struct.pack("=HBBI", 0x06, 0, 0, 0x00050000 | error)
        if argument is None:
            body = fail
        else:
            body = struct.pack("=HBBI", 0x20, 0, 0, 16) + struct.pack("=HBBI", 0x15, 0, 1, argument) + fail
        # load the call's number; skip the body if it is another call
        code += struct.pack("=HBBI", 0x20, 0, 0, 0) + struct.pack("=HBBI", 0x15, 0, len(body) // 8, number) + body
    code += struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)
    libc = ctypes.CDLL(None, use_errno=True)

    def apply():
        program = ctypes.create_string_buffer(code, len(code))
        header = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(program)))
        # no_new_privs is inherited, so the engine's own report can't show whether the engine has set it
        for args in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, 2, ctypes.addressof(header), 0, 0)):
            if libc.prctl(*(ctypes.c_ulong(a) for a in args)) != 0:
                os._exit(111)
    return apply


def landlock_abi():
    """The kernel's version of Landlock; 0: it has none."""
    return max(0, ctypes.CDLL(None).syscall(ctypes.c_long(444), None, ctypes.c_size_t(0), ctypes.c_uint(1)))
