"""Finds the names that a C file defines, and those that it uses, as the linker sees them.

This also reads headers and their inline functions. clang-format has formatted all files, so a function
begins in the first column, and ends with a `}` in that column."""
import re

NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
FUNCTION = re.compile(r"^(static\b[^\n;{}=]*?|[a-z][\w *]*?)(\w+)\([^;{}]*\)\n\{(.*?)^\}",
                      re.M | re.S)
OBJECT = re.compile(r"^(static\b|(?!extern\b|typedef\b)[a-z])[\w *]*?(\w+)"
                    r"(?:\[\w*\])*(?: = |;)", re.M)
DECLARED = re.compile(r"^(?!static\b|typedef\b|return\b)[a-z][\w *]*?(\w+)\([^;{}]*\);", re.M)
# A name that is a member, a tag or a label of an initializer is not the function of that name.
USED = re.compile(r"(?<![\w.])(?<!->)(?<!struct )(?<!enum )(?<!union )([a-z]\w*)")


def blank(found):
    """Replaces strings by "" and comments by a space; lines keep their numbers."""
    return '""' if found[0][0] in "\"'" else " " + "\n" * found[0].count("\n")


def code(path):
    """The text of a file without comments and strings; lines with #include become empty."""
    return re.sub(r"^#\s*include\b.*$", "", NOT_CODE.sub(blank, path.read_text()), flags=re.M)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def exported(text):
    """The functions and objects that other files can name."""
    names = {name for kind, name, _ in FUNCTION.findall(text) if not kind.startswith("static")}
    bare = FUNCTION.sub("", text)
    return names | {name for kind, name in OBJECT.findall(bare) if kind != "static"}


def own(text):
    """The names of the static things of a file, which hide others of the same name."""
    return ({name for kind, name, _ in FUNCTION.findall(text) if kind.startswith("static")} |
            {name for kind, name in OBJECT.findall(text) if kind == "static"})
