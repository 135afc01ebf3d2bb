#!/usr/bin/env -S python3 -B
"""Tests the architecture: which folder may use which, and which folder may call which library.

A folder of src is an area, and a folder in it with C files is a room of the area. A use is a
function or an object of another room that a file names, or a header that it includes.
AREAS has the permitted uses between two areas; ROOMS those between two rooms of one area."""
import re
import sys

from common import Rules, files_below, root
from uses import DECLARED, FUNCTION, USED, blank, code, exported, line_of, own

EVERY = "*"  # as a row: each room; as an entry: all others
AREAS = {
    "base": set(),
    "net": {"base"},
    "os": {"base"},
    "store": {"base"},
    "core": {"base"},
    "accounts": {"base"},
    "api": {"accounts", "base", "core", "net"},
    "supervisor": {"base", "net", "os"},
    "server": {EVERY},
    "web": set(),  # no C
}
# The room that consists of an area's own files has the name of the area.
ROOMS = {
    "base": {
        "base": set(),
        "json": {"base"},
        "vault": {"base"},
        "contract": {"base", "json"},
    },
    "net": {
        "net": set(),
        "http": {"net"},
        "client": {"http", "net"},
    },
    "os": {
        "archive": set(),
        "files": set(),
        "process": set(),
    },
    "store": {
        "store": set(),
        "sqlite": {"store"},
        "sqlite/snapshot": {"sqlite"},
        "pg/sql": {"store"},
        "pg": {"pg/sql", "sqlite", "sqlite/snapshot", "store"},
        "lead": set(),
    },
    "core": {
        "model": set(),
        "queues": set(),
        "wire": {"model"},
        "counters": set(),
        "changes": {"model", "queues", "wire"},
        "live": {"changes", "counters", "model", "queues", "wire"},
        "fleet": {"live", "model", "queues"},
        "replication": {"changes", "live"},
        "state": {"changes", "fleet", "live", "model", "queues"},
        "engine": {"changes", "counters", "fleet", "live", "model", "queues", "state"},
    },
    "accounts": {
        "accounts": set(),
        "auth": {"accounts"},
    },
    "api": {
        EVERY: {"request"},
        "request": set(),
        "packets": set(),
        "triggers": {"packets"},
        "telemetry": set(),
        "envvars": set(),
        "schedules": {"triggers"},
        "streams": set(),
        "runs": {"packets", "schedules", "triggers"},
        "batches": {"packets", "runs", "triggers"},
        "bulk": {"runs"},
        "artifacts": set(),
        "waitpoints": {"artifacts", "streams", "triggers"},
        "realtime": {"batches", "runs"},
        "worker_notices": set(),
        "registration": {"schedules"},
        "workers": {"batches", "packets", "registration", "telemetry"},
        "deployments": {"artifacts", "registration"},
        "projects": {"deployments"},
        "browser": {"projects"},
        "ops": set(),
        "queues": set(),
        "router": {EVERY},
    },
    "supervisor": {
        "gateway_client": set(),
        "versions": {"gateway_client"},
        "runners": {"gateway_client", "versions"},
        "supervise": {"gateway_client", "runners", "versions"},
    },
    "server": {
        "cli": {"config"},
        "config": set(),
        "backup": set(),
        "gateway": {"backup", "config", "memory", "operator", "upkeep"},
        "memory": {"config", "operator", "peers", "upkeep"},
        "operator": {"config", "peers", "upkeep"},
        "upkeep": set(),
        "peers": set(),
        "role": {"config"},
        "server": {EVERY},
    },
}
ALL = {area if room == area else f"{area}/{room}"
       for area, table in ROOMS.items() for room in table if room != EVERY}

# For each library: a pattern of its headers' names, and the folders and files that may include them.
LIBRARIES = {
    "libuv": (r"uv\.h|uv/", {"base/loop.c", "base/loop.h", "base/timers.c", "base/timers.h",
                             "base/work.h", "net", "os/process", "store",
                             "server/cli/remote.c", "server/role", "server/gateway",
                             "server/operator/admin_socket.c",
                             "server/main.c", "server/serve.c"}),
    "SQLite": (r"sqlite3", {"store"}),
    "libpq": (r"libpq|postgres", {"store/pg"}),
    "liburing": (r"liburing", {"net/ring.c"}),
    "jansson": (r"jansson", {"base/json/json_tree.c", "base/json/json_tree.h", "accounts",
                             "core/wire", "api/request", "api/registration", "api/workers",
                             "server/gateway", "server/upkeep/reseal.c"}),
    "OpenSSL": (r"openssl/", {"base/vault", "accounts", "net", "os/archive",
                              "supervisor/runners/runner.c", "api/artifacts/bundle_file.c",
                              "server/backup/file_pass.c"}),
    "msgpack": (r"msgpack", {"core/wire", "core/replication"}),
    "wslay": (r"wslay", {"net/http", "net/client"}),
    "llhttp": (r"llhttp", {"net/http", "net/client"}),
    "libdeflate": (r"libdeflate\.h", {"api/realtime/gzip.c"}),
    "libarchive": (r"archive(_entry)?\.h", {"os/archive/bundle_pack.c"}),
    "zlib": (r"zlib\.h", {"os/archive/gunzip.h"}),
    "inih": (r"ini\.h", {"server/config/config.c"}),
}

CONTRACT = "base/contract"  # include/runcast belongs to this room, which defines what these headers declare
KNOWN = "each folder of src is a room of the tables"
NO_CIRCLE = "the tables of permitted uses have no circle"
ALLOWED = "a room uses what the tables allow"
NEEDED = "each permission of the tables is used"
HOME = "a function is defined in the room that declares it"
INCLUDE = re.compile(r'\s*#\s*include\s+([<"])([^>"]+)[>"]')


def area_of(room):
    return room.split("/")[0]


def in_area(room):
    """The name of a room in the tables of its area."""
    return room.partition("/")[2] or room


def permissions(one, other):
    """The entries that let a room use another: (area or None, row, entry) of the tables."""
    area, foreign = area_of(one), area_of(other)
    if area != foreign:
        return [(None, area, entry) for entry in (foreign, EVERY) if entry in AREAS[area]]
    table = ROOMS.get(area, {})
    return [(area, row, entry) for row in (in_area(one), EVERY)
            for entry in (in_area(other), EVERY) if entry in table.get(row, ())]


def below(row, table):
    """All rows that a row of a table reaches."""
    found, todo = set(), [row]
    while todo:
        one = todo.pop()
        more = table.get(one, set()) | table.get(EVERY, set()) - {one}
        more = (more | table.keys() - {one} if EVERY in more else more) - {EVERY} - found
        found |= more
        todo += more
    return found


class Source:
    """A file of src or include, with what it uses of others."""

    def __init__(self, path, top):
        self.name = path.relative_to(top)
        folder = self.name.parent.parts
        self.room = "/".join(folder[1:]) if folder[0] == "src" else CONTRACT
        self.text = path.read_text()
        self.code = code(path) if path.suffix != ".def" else ""
        self.is_header = path.suffix == ".h"

    def defines(self):
        """The names that others can use; a header defines its inline functions."""
        if self.is_header:
            return {name for _, name, _ in FUNCTION.findall(self.code)}
        return exported(self.code)

    def uses(self, rooms_of, files):
        """(line, words for it, room) of each use of another room."""
        for number, line in enumerate(self.text.splitlines(), 1):
            include = INCLUDE.match(line)
            if include and include[1] == '"':
                room = files.get(include[2])
                yield number, include[2], room
        mine = own(self.code)
        text = DECLARED.sub(blank, self.code)
        for use in USED.finditer(text):
            rooms = rooms_of.get(use[1], ())
            if rooms and use[1] not in mine and self.room not in rooms:
                yield line_of(text, use.start()), use[1], min(rooms)


def sources(top):
    return [Source(path, top) for folder in ("src", "include")
            for path in files_below(top / folder, ".c", ".h", ".def")]


def right_rooms(one, other):
    """Where code that needs both rooms may be: areas or rooms; the server only if no other may."""
    fit = {room for room in ALL if all(room == needed or permissions(room, needed)
                                       for needed in (one, other))}
    names = set()
    for area in AREAS:
        rooms = {room for room in ALL if area_of(room) == area}
        names |= {area} if rooms and rooms <= fit else fit & rooms
    names = {name for name in names if not EVERY in AREAS[area_of(name)]} or names
    return f"code that needs both belongs in {' or '.join(sorted(names))}" if names else \
        "no room may use both"


def check_uses(rules, every):
    """Reports uses that are not permitted; returns the permissions that are used."""
    files = {"/".join(source.name.parts[1:]): source.room for source in every}
    rooms_of, used = {}, set()
    for source in every:
        for name in source.defines():
            rooms_of.setdefault(name, set()).add(source.room)
    for source in every:
        for line, words, room in source.uses(rooms_of, files):
            where = f"{source.name}:{line}"
            if room is None:
                rules.broken(ALLOWED, f"{where} includes {words}, which is not in src")
            elif room != source.room and source.room in ALL and room in ALL:
                found = permissions(source.room, room)
                used.update(found)
                if not found:
                    rules.broken(ALLOWED, f"{where} uses {words} of {room}; "
                                          f"{right_rooms(source.room, room)}")
    return used


def check_homes(rules, every):
    """A header and the functions that it declares have one room."""
    defined = {}
    for source in every:
        if not source.is_header:
            for name in exported(source.code):
                defined.setdefault(name, []).append(source)
    for header in every:
        if header.is_header:
            bare = FUNCTION.sub("", header.code)
            for name in DECLARED.findall(bare):
                for source in defined.get(name, ()):
                    if source.room != header.room:
                        rules.broken(HOME, f"{source.name} defines {name}, which {header.name} "
                                           f"declares: it belongs in {header.room}")


def check_tables(rules, used):
    tables = [(None, AREAS), *ROOMS.items()]
    for area, table in tables:
        for row, entries in table.items():
            if row != EVERY and row in below(row, table):
                rules.broken(NO_CIRCLE, row)
            for entry in entries:
                if entry != EVERY and (area, row, entry) not in used:
                    rules.broken(NEEDED, f"{area or 'between areas'}: {row} does not use {entry}")


def check_libraries(rules, every):
    for source in every:
        inside = "/".join(source.name.parts[1:])
        for number, line in enumerate(source.text.splitlines(), 1):
            include = INCLUDE.match(line)
            for library, (pattern, places) in LIBRARIES.items() if include else ():
                if re.match(pattern, include[2]) and not any(
                        inside == place or inside.startswith(f"{place}/") for place in places):
                    rules.broken(f"{library} only where it belongs",
                                 f"{source.name}:{number} includes {include[2]}")


def main():
    rules = Rules(KNOWN, NO_CIRCLE, ALLOWED, NEEDED, HOME,
                  *(f"{name} only where it belongs" for name in LIBRARIES))
    every = sources(root())
    for room in sorted({source.room for source in every} - ALL):
        area = area_of(room)
        rules.broken(KNOWN, f"src/{room}: unknown; add a row \"{in_area(room)}\" to "
                            + (f"\"{area}\" in ROOMS" if area in ROOMS else "AREAS and ROOMS")
                            + " of tests/lint/layers.py")
    check_tables(rules, check_uses(rules, every))
    check_homes(rules, every)
    check_libraries(rules, every)
    return rules.report()


sys.exit(main())
