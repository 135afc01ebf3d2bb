#!/usr/bin/env -S python3 -B
"""Who may include whom, and who may speak to which library. The architecture, as a test."""
import re
import sys

from common import Rules, lines, root

GROUND = {"base", "json", "net", "http", "model", "vault", "accounts", "auth", "wire", "live",
          "figures", "fleet"}
CALL = GROUND | {"engine", "call"}
MAY_INCLUDE = {
    "base": set(),
    "json": {"base"},
    "net": {"base"},
    "http": {"net", "base"},
    "outbound": {"http", "net", "base"},
    "process": {"base"},
    "config": {"accounts", "vault", "model", "http", "net", "process", "remote", "base"},
    "archive": {"base"},
    "build": {"archive", "process", "json", "base"},
    "site": {"build", "archive", "outbound", "process", "http", "net", "json", "base"},
    "runners": {"site", "build", "archive", "outbound", "process", "http", "net", "json", "base"},
    "supervise": {"runners", "site", "build", "archive", "outbound", "process", "http", "net", "json", "base"},
    "role": {"supervise", "site", "config", "accounts", "process", "base"},
    "remote": {"build", "archive", "outbound", "http", "json", "base"},
    "data": {"deployments", "accounts", "store", "vault", "json", "base"},
    "contract": {"json", "base"},
    "model": {"json", "base"},
    "store": {"model", "json", "base"},
    "cluster": {"base"},
    "vault": {"base"},
    "accounts": {"vault", "json", "base"},
    "auth": {"accounts", "json", "base"},
    "wire": {"model", "json", "base"},
    "figures": {"model", "base"},
    "live": {"figures", "wire", "model", "base"},
    "fleet": {"live", "model", "json", "base"},
    "engine": {"fleet", "live", "figures", "model", "json", "base"},
    "call": (GROUND - {"model", "vault"}) | {"engine"},
    "packets": CALL,
    "triggers": CALL | {"packets"},
    "telemetry": CALL,
    "envvars": CALL,
    "schedules": CALL | {"triggers"},
    "streams": CALL,
    "runs": CALL | {"packets", "triggers", "schedules"},
    "batches": CALL | {"packets", "triggers", "runs"},
    "bulk": CALL | {"triggers", "runs"},
    "waitpoints": CALL | {"artifacts", "triggers", "streams"},
    "realtime": CALL | {"batches", "runs"},
    "notices": CALL,
    "workers": CALL | {"packets", "telemetry", "batches", "bulk", "schedules"},
    "artifacts": CALL,
    "pages": CALL,
    "operators": CALL,
    "projects": CALL | {"deployments"},
    "deployments": CALL | {"artifacts", "schedules", "workers"},
    "api": CALL | {"artifacts", "deployments", "packets", "telemetry", "envvars", "schedules", "streams", "runs", "batches",
                   "bulk", "waitpoints", "realtime", "notices", "workers", "pages", "projects", "operators"},
}
ANYONE = {"runcast"}  # include/runcast: the contracts
SEES_EVERYTHING = {"gateway", "main.c"}

# A library, how its headers are called, and the folders and files that may include them.
LIBRARIES = {
    "libuv": (r"uv\.h|uv/", {"base/loop.c", "base/loop.h", "base/timers.c", "base/timers.h",
                             "base/work.h",
                             "net", "http", "outbound", "store", "process",
                             "remote/remote.c",
                             "role", "gateway", "main.c"}),
    "SQLite": (r"sqlite3", {"store"}),
    "libpq": (r"libpq|postgres", {"store"}),
    "liburing": (r"liburing", {"net"}),
    "jansson": (r"jansson", {"json/json_tree.c", "json/json_tree.h", "accounts", "auth", "wire", "call", "workers", "gateway"}),
    "OpenSSL": (r"openssl/", {"vault", "auth", "accounts", "http", "net", "outbound",
                              "archive", "runners/runner.c", "artifacts/bundle_file.c",
                              "data/file_pass.c"}),
    "msgpack": (r"msgpack", {"wire"}),
    "wslay": (r"wslay", {"http", "outbound"}),
    "llhttp": (r"llhttp", {"http", "outbound"}),
    "libdeflate": (r"libdeflate\.h", {"realtime/gzip.c"}),
    "libarchive": (r"archive(_entry)?\.h", {"archive/bundle_pack.c"}),
    "zlib": (r"zlib\.h", {"archive/gunzip.h"}),
    "inih": (r"ini\.h", {"config/config.c"}),
}
KNOWN = "only known folders and files in src"
NO_CIRCLE = "the table of who may include whom has no circle"
INCLUDE = re.compile(r'\s*#\s*include\s+([<"])([^>"]+)[>"]')


def below(layer):
    """All that it may reach by including."""
    found, todo = set(), [layer]
    while todo:
        more = MAY_INCLUDE[todo.pop()] - found
        found |= more
        todo += more
    return found


def main():
    src = root() / "src"
    layer_rule = {layer: f"{layer} includes only {' '.join(sorted(may | {layer}))} and contracts"
                  for layer, may in MAY_INCLUDE.items()}
    rules = Rules(KNOWN, NO_CIRCLE,
                  *layer_rule.values(),
                  *(f"{name} only where it belongs" for name in LIBRARIES))

    for layer in MAY_INCLUDE:
        if layer in below(layer):
            rules.broken(NO_CIRCLE, layer)
    for path in sorted(p for p in src.rglob("*") if p.suffix in (".c", ".h", ".def")):
        name = path.relative_to(src)
        layer = name.parts[0]
        if layer not in MAY_INCLUDE and layer not in SEES_EVERYTHING:
            rules.broken(KNOWN, name)
        for number, line in lines(path):
            include = INCLUDE.match(line)
            if not include:
                continue
            quote, header = include.groups()
            where = f"{name}:{number} includes {header}"
            folder = header.split("/")[0]
            if layer in MAY_INCLUDE and quote == '"':
                if "/" not in header or folder not in MAY_INCLUDE[layer] | ANYONE | {layer}:
                    rules.broken(layer_rule[layer], where)
            for library, (pattern, places) in LIBRARIES.items():
                if re.match(pattern, header) and not {layer, str(name)} & places:
                    rules.broken(f"{library} only where it belongs", where)
    return rules.report()


sys.exit(main())
