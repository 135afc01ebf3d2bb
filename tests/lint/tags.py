#!/usr/bin/env -S python3 -B
"""No two structs, unions or enums of src and include have the same tag."""
import re
import sys

from common import Rules, files, lines, root

RULE = "tags of structs, unions and enums are unique in the program"
DEFINED = re.compile(r"^(?:static\s+)?(?:const\s+)?(?:struct|union|enum)\s+(\w+)\s*\{")


def main():
    top = root()
    rules = Rules(RULE)
    places = {}
    for path in files(top, ".c", ".h"):
        name = path.relative_to(top)
        if name.parts[0] not in ("src", "include"):
            continue
        for number, line in lines(path):
            defined = DEFINED.match(line)
            if defined:
                places.setdefault(defined.group(1), []).append(f"{name}:{number}")
    for tag, where in sorted(places.items()):
        if len(where) > 1:
            rules.broken(RULE, f"{tag} in {' '.join(where)}")
    return rules.report()


sys.exit(main())
