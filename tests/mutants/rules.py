"""rules.py - which faults can be planted in a file.

A rule changes one thing in the body of a function (a constant: also where it is defined), and never
what is said to the reader or to the processor only: comments, strings, asserts, checks of what
always holds, conditions of the preprocessor, memory that is asked for ahead of need, pauses of a
spin, what tests are told of locks.

  relation  < and <=, > and >=, == and !=, && and ||; a ! left out
  one       0 and 1 become one more; what is added or taken away is not; a step of its own left out
  constant  any other number is doubled
  call      a call whose result nobody uses is left out
  order     the order of an atomic operation is weakened by one step
  swap      two statements, one after the other, change places

A mutant's name is made of the function, the rule and the text of the statement's line, so that it
stays the same when lines move.
"""

import hashlib
import re

RULES = ("relation", "one", "constant", "call", "order", "swap")

RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||",
             "||": "&&", "!": ""}
WEAKER = {"due__load_seq": "due__load_acquire", "due__load_acquire": "due__load_relaxed",
          "due__store_seq": "due__store_release", "due__store_release": "due__store_relaxed",
          "due__add_seq": "due__add_relaxed", "due__cas_seq": "due__cas_acq_rel"}
SETS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--"}
KEYWORDS = {"if", "else", "for", "while", "do", "switch", "case", "default", "return", "break",
            "continue", "goto", "sizeof", "struct", "union", "enum", "static", "const", "typedef",
            "extern", "register", "volatile", "inline", "_Static_assert", "_Alignas"}
TOLD_ONLY = {"assert", "static_assert", "_Static_assert", "sizeof", "offsetof", "va_start",
             "va_end", "__attribute__"}
HINT = re.compile(r"prefetch|^due__(?:relax|alloc_touch|pool_warm|watch_(?:got|leaving))$|_pause$")

TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<directive>\#(?:\\\n|/\*.*?\*/|[^\n])*)
  | (?P<string>L?"(?:\\.|[^"\\\n])*"|L?'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|.)
""", re.X | re.S)
DEFINE = re.compile(r"#\s*define\s+(\w+)\s+\(?(?:\([^)]*\))?(\d\w*)")


class Token:
    __slots__ = ("kind", "text", "at", "end")

    def __init__(self, kind, text, at):
        self.kind, self.text, self.at, self.end = kind, text, at, at + len(text)


class Mutant:
    """In this file, from `at` to `end`, the text becomes `new`.  `constant`: the name of a constant
    that is changed where it is defined."""

    def __init__(self, file, rule, at, end, new, function, constant=None):
        self.file, self.rule, self.at, self.end, self.new = file, rule, at, end, new
        self.function, self.constant = function, constant
        self.id = self.line = self.last = self.old_line = self.new_line = None

    def plant(self, text):
        return text[:self.at] + self.new + text[self.end:]

    def show(self):
        return f"{self.old_line}  ->  {self.new_line}"


def tokens_of(text):
    """The tokens of the code, and the directives."""
    tokens, directives = [], []
    for match in TOKEN.finditer(text):
        if match.lastgroup == "directive":
            directives.append(Token("directive", match.group(), match.start()))
        elif match.lastgroup != "skip":
            tokens.append(Token(match.lastgroup, match.group(), match.start()))
    return tokens, directives


def closing(tokens, i):
    """The place of the bracket that closes the one at i."""
    depth = 0
    for j in range(i, len(tokens)):
        if tokens[j].text in ("(", "[", "{"):
            depth += 1
        elif tokens[j].text in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return j
    return len(tokens) - 1


def functions(tokens):
    """Of each function: its name, and from where to where its body goes.  Left out are those that
    check what always holds, for tests, and those that are hints to the processor."""
    i = 0
    while i < len(tokens):
        if tokens[i].text != "{":
            i += 1
            continue
        end = closing(tokens, i)
        if i > 0 and tokens[i - 1].text == ")":
            j, depth = i - 1, 0
            while j >= 0:
                depth += {")": 1, "(": -1}.get(tokens[j].text, 0)
                if depth == 0:
                    break
                j -= 1
            name = tokens[j - 1].text
            if not (name.endswith("_check") and tokens[j - 2].text == "bool" or HINT.search(name)):
                yield name, i, end
        i = end + 1


def told_only(tokens, first, last):
    """Which tokens are only for the reader or the compiler."""
    skipped = set()
    i = first
    while i < last:
        told = tokens[i].text in TOLD_ONLY or HINT.search(tokens[i].text)
        if told and tokens[i + 1].text == "(":
            end = closing(tokens, i + 1)
            skipped.update(range(i, end + 1))
            i = end
        i += 1
    return skipped


def statements(tokens, first, last):
    """The simple statements of a body: from, to (its semicolon), and whether it stands in a list of
    statements rather than behind a condition."""
    i = first + 1
    while i < last:
        before = tokens[i - 1].text
        starts = before in ("{", "}", ";", ":", "else", "do") or (
            before == ")" and tokens[i].text not in ("{", ";"))
        if not starts or tokens[i].kind != "name" or tokens[i].text in KEYWORDS:
            if tokens[i].text == "(" and tokens[i - 1].text in ("for", "if", "while", "switch"):
                i = closing(tokens, i)
            i += 1
            continue
        end = i
        while end < last and tokens[end].text != ";":
            if tokens[end].text in ("(", "[", "{"):
                end = closing(tokens, end)
            elif tokens[end].text in ("}", ":", ")"):
                break
            end += 1
        if end < last and tokens[end].text == ";":
            yield i, end, before in ("{", "}", ";", ":")
            i = end + 1
        else:
            i += 1


def is_declaration(tokens, i):
    follows = tokens[i + 1]
    return follows.kind == "name" or follows.text == "*"


def is_call(tokens, i, end):
    """Is all of it one call?"""
    while tokens[i + 1].text in (".", "->"):
        i += 2
    return (tokens[i + 1].text == "(" and closing(tokens, i + 1) == end - 1 and
            tokens[i].text not in TOLD_ONLY)


def independent(one, other):
    """Do they only set different places, and neither names what the other sets?  Then nobody asks
    for their order."""
    places = [place_set(words) for words in (one, other)]
    if None in places or places[0] == places[1]:
        return False
    return not any(place[-1] in [t.text for t in words]
                   for place, words in zip(places, (other, one)))


def place_set(words):
    """The place that a statement sets, if that is all it does."""
    texts = [t.text for t in words]
    if texts[0] in ("free", "snprintf", "memcpy", "memset") and texts[1] == "(":
        end = next((i for i, text in enumerate(texts) if text in (",", ")")), len(texts))
        return texts[2:end]
    sets = [i for i, text in enumerate(texts) if text in SETS]
    calls = any(t.text == "(" and before.kind == "name" for before, t in zip(words, words[1:]))
    if calls or not sets or sets[0] == 0:
        return None
    place = texts[:sets[0]]
    return place[:place.index("[")] if "[" in place else place


def number_change(tokens, i):
    """What becomes of a number, and by which rule."""
    match = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", tokens[i].text)
    if match is None:
        return None
    value, suffix = int(match.group(1), 0 if match.group(1)[:2] in ("0x", "0X") else 10), match[2]
    before = tokens[i - 1].text
    if value == 1 and before in ("+", "-"):
        return "one", "0" + suffix
    if value <= 1:
        return "one", f"{value + 1}{suffix}"
    return "constant", f"{2 * value}{suffix}"


def in_array_size(tokens, i):
    """char text[20]: more room is no fault."""
    return (tokens[i - 1].text == "[" and tokens[i + 1].text == "]" and
            tokens[i - 3].kind == "name" and tokens[i - 3].text not in ("return", "case"))


def in_body(file, tokens, name, first, last):
    """The mutants of one function."""
    skipped = told_only(tokens, first, last)

    def mutant(rule, i, end, new):
        return Mutant(file, rule, tokens[i].at, tokens[end].end, new, name)

    for i in range(first + 1, last):
        token = tokens[i]
        if i in skipped:
            continue
        if token.text in RELATIONS:
            yield mutant("relation", i, i, RELATIONS[token.text])
        elif token.text in WEAKER:
            yield mutant("order", i, i, WEAKER[token.text])
        elif token.kind == "number" and not in_array_size(tokens, i):
            change = number_change(tokens, i)
            if change is not None:
                yield mutant(change[0], i, i, change[1])
    simple = [s for s in statements(tokens, first, last) if s[0] not in skipped]
    for i, end, _ in simple:
        if is_call(tokens, i, end):
            yield mutant("call", i, end, ";")
        elif tokens[end - 1].text in ("++", "--"):
            yield mutant("one", i, end, ";")
    for (i, end, listed), (after, last_of_it, _) in zip(simple, simple[1:]):
        if (listed and after == end + 1 and not is_declaration(tokens, i) and
                not is_declaration(tokens, after) and
                not independent(tokens[i:end], tokens[after:last_of_it])):
            yield Mutant(file, "swap", tokens[i].at, tokens[last_of_it].end, None, name)


def mutants_of(file, text):
    """All mutants of a file, in the order of its lines."""
    tokens, directives = tokens_of(text)
    found = []
    for name, first, last in functions(tokens):
        found += in_body(file, tokens, name, first, last)
    for directive in directives:
        match = DEFINE.match(directive.text)
        number = match and re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", match.group(2))
        if number and number.group(1) not in ("0", "1") and not match.group(1).endswith("_H"):
            value = int(number.group(1), 0)
            found.append(Mutant(file, "constant", directive.at + match.start(2),
                                directive.at + match.end(2), f"{2 * value}{number.group(2)}",
                                match.group(1), match.group(1)))
    found.sort(key=lambda m: (m.at, m.end, m.rule))
    for mutant in found:
        if mutant.rule == "swap":
            mutant.new = swapped(tokens, text, mutant)
        place(mutant, text)
    name_all(found)
    return found


def swapped(tokens, text, mutant):
    """The second statement, what stands between them, the first."""
    inside = [t for t in tokens if mutant.at <= t.at < mutant.end]
    depth = 0
    for i, token in enumerate(inside):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token.text, 0)
        if token.text == ";" and depth == 0:
            end, start = token.end, inside[i + 1].at
            break
    between = text[end:start]
    first, second = text[mutant.at:end], text[start:mutant.end]
    # A comment behind the first stays where its lines are.
    return second + between + first


def place(mutant, text):
    """Where it is, and how the line reads before and after."""
    mutant.line = text.count("\n", 0, mutant.at) + 1
    mutant.last = text.count("\n", 0, mutant.end) + 1
    start = text.rfind("\n", 0, mutant.at) + 1
    end = text.find("\n", mutant.end)
    end = len(text) if end < 0 else end
    planted = text[start:mutant.at] + mutant.new + text[mutant.end:end]
    mutant.old_line = tidy(text[start:end])
    mutant.new_line = tidy(planted)


def tidy(text):
    return " ".join(re.sub(r"/\*.*?(?:\*/|$)", "", text, flags=re.S).split())


def name_all(mutants):
    """Give each its id: file:rule:hash.  Those that read the same are numbered."""
    seen = {}
    for mutant in mutants:
        key = "|".join((mutant.function, mutant.rule, mutant.old_line, mutant.new_line))
        seen[key] = seen.get(key, 0) + 1
        digest = hashlib.sha1(f"{key}|{seen[key]}".encode()).hexdigest()[:7]
        mutant.id = f"{mutant.file}:{mutant.rule}:{digest}"


def uses_of(names, text):
    """On which lines one of these names stands, also by way of constants made of it."""
    names = set(names)
    tokens, directives = tokens_of(text)
    grown = True
    while grown:
        grown = False
        for directive in directives:
            match = re.match(r"#\s*define\s+(\w+)\b(.*)", directive.text, re.S)
            if match and match.group(1) not in names and names & set(
                    re.findall(r"\w+", match.group(2))):
                names.add(match.group(1))
                grown = True
    return names, {text.count("\n", 0, t.at) + 1 for t in tokens if t.text in names}
