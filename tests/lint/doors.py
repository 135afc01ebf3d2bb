#!/usr/bin/env -S python3 -B
"""Doors and services: how a product room is entered.

A door takes calls. It consists of a file with a table of routes, and of the headers between it and
the files that handle its calls. A service is shared by all calls: api/router/services.c creates it,
and server/gateway, server/memory or server/upkeep calls it."""
import re
import sys

from common import Rules, files_below, lines, root

LEAF = "a file with a table of routes exports only its area"
SERVICE = "the header of a service does not mention calls"

ABOUT_CALLS = {"api/request", "api/router"}  # these folders are only about calls
AREA = re.compile(r"^const struct area \w+_area\b", re.M)
FUNCTION = re.compile(r"^(?!static\b)[a-z][\w *]*?(\w+)\([^;{}]*\)\n\{", re.M)
OBJECT = re.compile(r"^(?!static\b|extern\b|const struct area\b|struct \w+;)"
                    r"[a-z][\w *]*?(\w+)(?:\[\w*\])*(?: =|;)", re.M)
INCLUDE = re.compile(r'#include "(([^"]+)/[^/"]+\.h)"')
CALLS = re.compile(r"\bstruct api_call\b|\broute_fn\b|\"api/request/route\.h\"")


def services(src):
    """The headers of services: those that the files include which create or call services."""
    rooms = [src / "server" / name for name in ("gateway", "memory", "upkeep")]
    makers = [src / "api/router/services.c", *(path for room in rooms for path in sorted(room.glob("*.c")))]
    return {header for path in makers for header, folder in INCLUDE.findall(path.read_text())
            if folder not in ABOUT_CALLS and (src / header).exists()}


def main():
    src = root() / "src"
    rules = Rules(LEAF, SERVICE)
    for path in files_below(src, ".c"):
        text = path.read_text()
        if AREA.search(text):
            for name in FUNCTION.findall(text) + OBJECT.findall(text):
                rules.broken(LEAF, f"{path.relative_to(src)}: {name}")
    for header in sorted(services(src)):
        for number, line in lines(src / header):
            if CALLS.search(line):
                rules.broken(SERVICE, f"{header}:{number}")
    return rules.report()


sys.exit(main())
