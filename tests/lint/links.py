#!/usr/bin/env -S python3 -B
"""The target of each link in a chapter (*.md) exists, with its heading, and each chapter can be reached
from README.md by links."""
import re
import sys

from common import Rules, files, root

EXISTS = "the target of each link in a chapter exists"
REACHED = "each chapter can be reached from README.md"


def text_of(path):
    """The text of a chapter without indented lines, which are code."""
    return "\n".join(line for line in path.read_text().splitlines() if not line.startswith("    "))


def anchors(path):
    """The names of the headings of a chapter in links, by the rules of GitHub."""
    found = set()
    for heading in re.findall(r"^#{1,6} (.+)$", text_of(path), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        same = sum(1 for one in found if re.fullmatch(rf"{re.escape(name)}(-\d+)?", one))
        found.add(f"{name}-{same}" if same else name)
    return found


def links(path):
    """Yields (target, path, anchor) of each link within the project; anchor is "" if the link has none."""
    text = re.sub(r"`[^`\n]*`", "", text_of(path))
    for target in re.findall(r"\]\(([^()\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            yield target, (path.parent / file).resolve() if file else path, anchor


def main():
    top = root()
    rules = Rules(EXISTS, REACHED)
    chapters = [top / "README.md", *files(top, ".md")]
    reached, ways = set(), [top / "README.md"]
    leads_to = {}
    for chapter in chapters:
        leads_to[chapter] = set()
        for target, file, anchor in links(chapter):
            leads_to[chapter].add(file)
            if not file.exists() or not file.is_relative_to(top):
                rules.broken(EXISTS, f"{chapter.relative_to(top)}: {target} does not exist")
            elif anchor and anchor not in anchors(file):
                rules.broken(EXISTS, f"{chapter.relative_to(top)}: {target}: the heading does not exist")
    while ways:
        way = ways.pop()
        if way not in reached:
            reached.add(way)
            ways += leads_to.get(way, ())
    for chapter in chapters:
        if chapter not in reached:
            rules.broken(REACHED, chapter.relative_to(top))
    return rules.report()


sys.exit(main())
