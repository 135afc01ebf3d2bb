#!/usr/bin/env -S python3 -B
"""Who may include whom, and who may speak to which library. The architecture, as a test."""
import re
import sys

from common import Rules, lines, root

MAY_INCLUDE = {
    "base": {"base"},
    "run": {"run", "base"},
    "net": {"net", "base"},
    "store": {"store", "base"},
    "live": {"live", "run", "base"},
    "auth": {"auth", "base"},
    "engine": {"engine", "live", "run", "base"},
    "api": {"api", "engine", "auth", "live", "run", "net", "base"},
}
ANYONE = {"runcast"}  # include/runcast: the contracts
SEES_EVERYTHING = re.compile(r"(main|gateway\w*|config\w*)\.(c|h|def)")

# A library, how its headers are called, and the folders and files that may include them.
LIBRARIES = {
    "libuv": (r"uv\.h|uv/", {"base/loop.c", "base/loop.h", "base/timers.c", "base/timers.h",
                             "net", "store", "gateway.c", "gateway.h", "gateway_admin.c",
                             "gateway_command.c", "gateway_rotate.c", "main.c"}),
    "SQLite": (r"sqlite3", {"store"}),
    "jansson": (r"jansson", {"api", "auth", "live", "config.c", "config.h"}),
    "OpenSSL": (r"openssl/", {"auth", "net"}),
    "msgpack": (r"msgpack", {"live"}),
    "wslay": (r"wslay", {"net"}),
    "llhttp": (r"llhttp", {"net"}),
    "zlib": (r"zlib\.h", {"base/gzip.c"}),
    "inih": (r"ini\.h", {"config.c"}),
}
INCLUDE = re.compile(r'\s*#\s*include\s+([<"])([^>"]+)[>"]')


def main():
    src = root() / "src"
    layer_rule = {layer: f"{layer} includes only {' '.join(sorted(may))} and contracts"
                  for layer, may in MAY_INCLUDE.items()}
    rules = Rules("only known folders and files in src",
                  *layer_rule.values(),
                  *(f"{name} only where it belongs" for name in LIBRARIES))

    for path in sorted(p for p in src.rglob("*") if p.suffix in (".c", ".h", ".def")):
        name = path.relative_to(src)
        layer = name.parts[0]
        if layer not in MAY_INCLUDE and not SEES_EVERYTHING.fullmatch(str(name)):
            rules.broken("only known folders and files in src", name)
        for number, line in lines(path):
            include = INCLUDE.match(line)
            if not include:
                continue
            quote, header = include.groups()
            where = f"{name}:{number} includes {header}"
            folder = header.split("/")[0]
            if layer in MAY_INCLUDE and quote == '"':
                if "/" not in header or folder not in MAY_INCLUDE[layer] | ANYONE:
                    rules.broken(layer_rule[layer], where)
            for library, (pattern, places) in LIBRARIES.items():
                if re.match(pattern, header) and not {layer, str(name)} & places:
                    rules.broken(f"{library} only where it belongs", where)
    return rules.report()


sys.exit(main())
