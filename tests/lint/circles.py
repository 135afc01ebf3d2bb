#!/usr/bin/env -S python3 -B
"""No circular uses between folders, and between files of a folder only where one idea has several files.

A file uses another file if it names a function or an object of that file, as the linker sees it.
A header and its functions belong to the files that include it. CIRCLES lists each permitted circle,
with the file at whose top it is drawn. That drawing names all files of the circle."""
import re
import sys

from common import Rules, files_below, root
from uses import FUNCTION, USED, code, exported, own

BETWEEN = "no circle between folders, as the linker sees them"
NONE = "no circle between the files of a folder, except listed ones"
DRAWN = "a circle is drawn at the top of one of its files, which names all of them"
IS_ONE = "each listed circle exists"

# For each folder: the file that draws a circle, and the other files of the circle.
CIRCLES = {
    "api/bulk": [("bulk_work", {"bulk_cancel", "bulk_replay"})],
    "core/engine": [("apply", {"flight", "run_commands", "store_retry", "sweep", "waits"})],
    "net/client": [("muxer", {"relay"})],
    "net/http": [("http_reply", {"http_conn"})],
    "core/replication": [("replica", {"replica_changes", "replica_held"})],
    "core/live": [("feed", {"catch_up", "evaluation", "hub", "watch", "windows"})],
    "api/realtime": [("socket", {"socket_openings"})],
    "api/schedules": [("schedules", {"firing", "schedule_commands"})],
    "store/pg": [("pg_writer", {"pg_writers"})],
}


def uses(text, inline):
    """The names that a text uses, and those in the inline functions that it calls."""
    found, todo = set(), set(USED.findall(text)) - own(text)
    while todo:
        name = todo.pop()
        found.add(name)
        todo |= inline.get(name, set()) - found
    return found


def groups(edges):
    """Files that reach each other, as sets of at least two."""
    def reached(start):
        seen, todo = set(), [start]
        while todo:
            for other in edges[todo.pop()] - seen:
                seen.add(other)
                todo.append(other)
        return seen

    reach = {name: reached(name) for name in edges}
    return {frozenset(other for other in reach[name] if name in reach[other])
            for name in edges if name in reach[name]}


def circles(texts, place, inline):
    """The circles between places. texts: by path; place(path): the file or folder of the path."""
    owner = {name: place(path) for path, text in texts.items() for name in exported(text)}
    edges = {place(path): set() for path in texts}
    for path, text in texts.items():
        edges[place(path)] |= {owner[name] for name in uses(text, inline) if name in owner}
    return groups({one: others - {one} for one, others in edges.items()})


def top_of(path):
    return path.read_text().split("*/")[0]


def main():
    src = root() / "src"
    rules = Rules(BETWEEN, NONE, DRAWN, IS_ONE)
    inline = {}
    for path in [*files_below(src, ".h"), *files_below(root() / "include", ".h")]:
        for _, name, body in FUNCTION.findall(code(path)):
            inline[name] = set(USED.findall(body))
    texts = {path: code(path) for path in files_below(src, ".c")}
    for circle in circles(texts, lambda path: str(path.parent.relative_to(src)), inline):
        rules.broken(BETWEEN, " ".join(sorted(circle)))
    for folder in sorted({path.parent for path in texts}):
        name = str(folder.relative_to(src))
        here = {path: text for path, text in texts.items() if path.parent == folder}
        found = circles(here, lambda path: path.stem, inline)
        for drawing, others in CIRCLES.get(name, []):
            if frozenset(others | {drawing}) not in found:
                rules.broken(IS_ONE, f"{name}: {drawing} {' '.join(sorted(others))}")
            for other in others:
                if not re.search(rf"\b{other}\b", top_of(folder / f"{drawing}.c")):
                    rules.broken(DRAWN, f"{name}/{drawing}.c does not name {other}")
        listed = {frozenset(others | {drawing}) for drawing, others in CIRCLES.get(name, [])}
        for circle in found - listed:
            rules.broken(NONE, f"{name}: {' '.join(sorted(circle))}")
    return rules.report()


sys.exit(main())
