#!/usr/bin/env -S python3 -B
"""The chapters (*.md) lead to each other: what a link names is there, with its heading, and each
chapter can be reached from README.md."""
import re
import sys

from common import Rules, files, root

THERE = "what a link of a chapter names is there"
REACHED = "each chapter is reached from README.md"


def text_of(path):
    """Without what is indented, which is a program's."""
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
    """(words of the link, path, anchor) of each that stays in the project; "": none."""
    text = re.sub(r"`[^`\n]*`", "", text_of(path))
    for target in re.findall(r"\]\(([^()\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            yield target, (path.parent / file).resolve() if file else path, anchor


def main():
    top = root()
    rules = Rules(THERE, REACHED)
    chapters = [top / "README.md", *files(top, ".md")]
    reached, ways = set(), [top / "README.md"]
    leads_to = {}
    for chapter in chapters:
        leads_to[chapter] = set()
        for target, file, anchor in links(chapter):
            leads_to[chapter].add(file)
            if not file.exists() or not file.is_relative_to(top):
                rules.broken(THERE, f"{chapter.relative_to(top)}: {target} is not there")
            elif anchor and anchor not in anchors(file):
                rules.broken(THERE, f"{chapter.relative_to(top)}: {target} has no such heading")
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
