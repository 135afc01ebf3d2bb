#!/usr/bin/env -S python3 -B
"""Does for a service what systemd does (sd_listen_fds(3), sd_notify(3)), without a booted system.

    service_manager.py NAME=ADDRESS … -- PROGRAM ARGUMENT …

ADDRESS is a port of 127.0.0.1, or a path. The sockets stay bound for as long as this process
lives. It obeys the lines start, stop, kill and end of its input, and prints events as lines of JSON:
{"sockets": […]}, {"started": pid}, {"notified": "READY=1"}, {"ended": status}."""
import json
import os
import select
import signal
import socket
import sys
import tempfile

BACKLOG = 4096


def report(**what):
    print(json.dumps(what), flush=True)


def bind(address):
    if address.startswith("/"):
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(address)
    else:
        bound = socket.socket(socket.AF_INET)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", int(address)))
    bound.listen(BACKLOG)
    return bound


def start(program, names, sockets, notify):
    pid = os.fork()
    if pid:
        return pid
    os.dup2(2, 1)  # standard output is only for the events of this process
    for at, bound in enumerate(sockets):  # their descriptors are above these, because of `spare`
        os.dup2(bound.fileno(), 3 + at, inheritable=True)
    environment = dict(os.environ, LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(sockets)),
                       LISTEN_FDNAMES=":".join(names), NOTIFY_SOCKET=notify,
                       WATCHDOG_PID=str(os.getpid()))
    os.execve(program[0], program, environment)


def main():
    words = sys.argv[1:]
    split = words.index("--")
    program = words[split + 1:]
    names, addresses = zip(*(word.split("=", 1) for word in words[:split]))
    spare = [os.open("/dev/null", os.O_RDONLY) for _ in range(32)]
    sockets = [bind(address) for address in addresses]
    for one in spare:
        os.close(one)
    notify = os.path.join(tempfile.mkdtemp(prefix="runcast-test-"), "notify")
    notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notified.bind(notify)
    wake, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.set_wakeup_fd(ring)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    pid = 0
    report(sockets=[list(one.getsockname()) if isinstance(one.getsockname(), tuple) else one.getsockname()
                 for one in sockets])
    while True:
        for ready in select.select([sys.stdin, notified, wake], [], [])[0]:
            if ready is notified:
                for line in notified.recv(4096).decode().split("\n"):
                    report(notified=line)
            elif ready == wake:
                os.read(wake, 64)
                ended, status = os.waitpid(-1, os.WNOHANG) if pid else (0, 0)
                if ended == pid and ended:
                    pid = 0
                    report(ended=os.waitstatus_to_exitcode(status))
            else:
                order = os.read(0, 64).decode().strip()
                if order == "start":
                    pid = start(program, names, sockets, notify)
                    report(started=pid)
                elif order in ("stop", "kill") and pid:
                    os.kill(pid, signal.SIGTERM if order == "stop" else signal.SIGKILL)
                elif order in ("end", ""):
                    if pid:
                        os.kill(pid, signal.SIGKILL)
                    return


main()
