"""The prose of a file, for rules about sentences: the comments of a source, the text of a chapter.

Code, drawings, identifiers and quotations are replaced by a word that no pattern matches. A block
keeps its line breaks, so that each word keeps its line."""
import io
import re
import tokenize

C_LIKE = (".c", ".h", ".def", ".js", ".mjs", ".jsx", ".ts")
SUFFIXES = (*C_LIKE, ".py", ".sh", ".md")

STRINGS = r'"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'"
C_TOKEN = re.compile(rf"(?s:(?P<block>/\*.*?\*/))|(?P<line>//[^\n]*)|{STRINGS}")
# A template and a literal of a regular expression may hold `//` and quotes.
SCRIPT_TOKEN = re.compile(
    r"(?s:(?P<block>/\*.*?\*/))|(?<![:\\])(?P<line>//[^\n]*)|(?s:`(?:\\.|[^`\\])*`)|" + STRINGS +
    r"|(?:[=(,:\[!&|?{};]|\breturn)[ ]*/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/")
SHELL_COMMENT = re.compile(r"(?:^|(?<=\s))#(?!!)[ ]?(.*)$")

DRAWN = re.compile(r"[─-╿▀-◿←-⇿]|--+>|<--+|\+--|-{4,}|={4,}|^ {3,}\S")
NOT_PROSE = re.compile(r"``?[^`]*``?|\"[^\"\n]{0,80}\"|<[^<>\n]*>|\]\([^()\s]*\)|https?://\S+|"
                       r"[\w./-]*\w\(\)|\b\w*[a-z0-9]_\w*|\w+(?:->|::)\w+|[\w-]*/[\w./-]+")


def blank(match):
    """A word that no pattern matches, with the line breaks of the replaced text."""
    return "x" + "\n" * match.group().count("\n")


def clean(text):
    """The prose of a block: drawings are removed, other things that are not prose become a word."""
    kept = "\n".join("" if DRAWN.search(line) else line for line in text.split("\n"))
    return NOT_PROSE.sub(blank, kept)


def c_comments(text, token):
    """Yields (line, text) of each comment; `//` of lines that follow each other are one."""
    pending, pending_line, pending_end = [], 0, 0
    for match in token.finditer(text):
        if not match["block"] and not match["line"]:
            continue
        line = text.count("\n", 0, match.start()) + 1
        starts_line = not text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()
        if match["line"] and pending and starts_line and line == pending_end + 1:
            pending.append(match["line"][2:])
            pending_end = line
            continue
        if pending:
            yield pending_line, "\n".join(pending)
            pending = []
        if match["line"]:
            pending, pending_line, pending_end = [match["line"][2:]], line, line
        else:
            yield line, re.sub(r"(?m)^\s*\*(?!/)", "", match["block"][2:-2].lstrip("*"))
    if pending:
        yield pending_line, "\n".join(pending)


def follow(lines):
    """Joins (line, text) of lines that follow each other."""
    pending, first = [], 0
    for number, text in lines:
        if pending and number == first + len(pending):
            pending.append(text)
            continue
        if pending:
            yield first, "\n".join(pending)
        pending, first = [text], number
    if pending:
        yield first, "\n".join(pending)


def python_comments(text):
    comments, before = [], tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            comments.append((token.start[0], token.string[1:]))
        elif token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT):
            yield token.start[0], token.string.strip("rfb").strip("\"'")
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type
    yield from follow(comments)


def shell_comments(text):
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        match = SHELL_COMMENT.search(line)
        if match and line[:match.start()].count('"') % 2 == 0 and line[:match.start()].count("'") % 2 == 0:
            found.append((number, " " + match[1]))
    yield from follow(found)


def chapter(text):
    """A heading begins in lower case, since it may be a noun clause ("What it promises")."""
    fenced, out = False, []
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            line = ""
        elif fenced or line.startswith("    "):
            line = ""
        elif heading := re.match(r"#+ (.*)", line):
            line = heading[1][:1].lower() + heading[1][1:]
        out.append(line)
    yield 1, "\n".join(out)


def prose(path):
    """Yields (line, text) of each block of prose of a file."""
    text = path.read_text(errors="replace")
    if path.suffix == ".md":
        blocks = chapter(text)
    elif path.suffix == ".py":
        blocks = python_comments(text)
    elif path.suffix == ".sh":
        blocks = shell_comments(text)
    else:
        blocks = c_comments(text, C_TOKEN if path.suffix in (".c", ".h", ".def") else SCRIPT_TOKEN)
    for line, block in blocks:
        yield line, clean(block)
