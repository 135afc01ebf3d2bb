"""busy_clients.py - clients that call a gateway without pause until they get SIGTERM.

    python3 busy_clients.py ADDRESS:PORT KEY CLIENTS

Each call opens its own connection and triggers a run. At the end it prints a line of JSON: how many
runs were acknowledged, the ids of the last thousand, how many connections were refused, and how
many ended without a response. It prints "busy" to stderr when 101 runs were acknowledged."""
import collections
import json
import signal
import socket
import sys
import threading

host, port = sys.argv[1].rsplit(":", 1)
key, clients = sys.argv[2], int(sys.argv[3])
ending = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: ending.set())
counts, lock = collections.Counter(), threading.Lock()
last = collections.deque(maxlen=1000)
body = b'{"payload":{}}'
request = (f"POST /api/v1/tasks/busy/trigger HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
           f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode() + body


def call():
    """Triggers a run; returns its outcome (a status, "refused" or "cut"), and the response."""
    try:
        connection = socket.create_connection((host, int(port)), timeout=60)
    except OSError:
        return "refused", b""
    with connection:
        try:
            connection.sendall(request)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        except OSError:
            return "cut", b""
    if not answer:
        return "cut", b""
    return answer.split(b" ", 2)[1].decode(), answer


def client():
    while not ending.is_set():
        outcome, answer = call()
        with lock:
            counts[outcome] += 1
            if outcome == "200":
                if counts[outcome] == 101:
                    print("busy", file=sys.stderr, flush=True)
                last.append(json.loads(answer.split(b"\r\n\r\n", 1)[1])["id"])


threads = [threading.Thread(target=client) for _ in range(clients)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({"outcomes": counts, "last": list(last)}))
