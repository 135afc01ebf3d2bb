#!/usr/bin/env -S python3 -B
"""Executes a program as on a kernel without Landlock, without filters of system calls and without io_uring.

    old_kernel.py PROGRAM ARGUMENT …

This process sets a filter that answers their system calls with ENOSYS, and then executes the program."""
import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.ENOSYS
SECCOMP = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
LANDLOCK = [444, 445, 446]
IO_URING = [425, 426, 427]


def instruction(code, value, when_true=0, when_false=0):
    return struct.pack("=HBBI", code, when_true, when_false, value)


def program():
    code = instruction(LOAD, 0)
    for call in [SECCOMP, *LANDLOCK, *IO_URING]:
        code += instruction(EQUAL, call, 0, 1) + instruction(RETURN, REFUSE)
    return code + instruction(RETURN, ALLOW)


def main():
    code = program()
    buffer = ctypes.create_string_buffer(code, len(code))
    given = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, given):
        sys.exit(os.strerror(ctypes.get_errno()))
    os.execv(sys.argv[1], sys.argv[1:])


main()
