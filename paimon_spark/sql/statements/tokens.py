"""A tokenizer of SQL texts: names, strings, numbers and signs with their positions, without blanks and comments."""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<blank>\s+|--(?:\\\n|[^\r\n])*)
      | (?P<comment>/\*)
      | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<number>\d+(?![\w$]))
      | (?P<name>[\w$]+)
      | (?P<sign>=>|.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}


class SyntaxMismatch(Exception):
    """The text starts like a Paimon-specific statement but continues differently.

    ``near``: the unexpected word; "": the end of the text.
    """

    def __init__(self, line: int, column: int, near: str) -> None:
        super().__init__(f"line {line}, column {column}: {near!r}")
        self.line, self.column, self.near = line, column, near


@dataclass(frozen=True)
class Token:
    """A token: its kind (string, quoted, number, name, sign or end), its text as written, and its position."""

    kind: str
    text: str
    start: int

    @property
    def value(self) -> str:
        """The content of a string or a quoted name; the text of any other token."""
        if self.kind == "quoted":
            return self.text[1:-1].replace("``", "`")
        if self.kind != "string":
            return self.text
        quote = self.text[-1]
        if self.text[0] in "rR":
            return self.text[2:-1]
        return re.sub(rf"{_ESCAPE}|{quote}{quote}", lambda m: _unescaped(m) or quote, self.text[1:-1], flags=re.S)


def _unescaped(match: re.Match[str]) -> str:
    """Return the character of an escape sequence; "": the sequence stands for no character."""
    short, long, octal, character = match.groups()
    if octal is not None:
        return chr(int(octal, 8))
    if short or long:
        return chr(int(short or long, 16))
    return _ESCAPES.get(character, character) if character else ""


def with_settings(text: str, *, double_quoted_names: bool, plain_strings: bool) -> str:
    """Rewrite a text for other parser settings so that it has the same meaning under Spark's defaults.

    Args:
        text: the text as written.
        double_quoted_names: True if double quotes enclose a name.
        plain_strings: True if a backslash in a string is an ordinary character.
    """
    parts, end = [], 0
    for token in tokens_of(text):
        if token.kind != "string" or token.text[0] in "rR":
            continue
        new = token.text
        if double_quoted_names and new[0] == '"':
            new = "`" + new[1:-1].replace('""', '"').replace("`", "``") + "`"
        elif plain_strings:
            inside = new[1:-1].replace("\\", "\\\\").replace(new[0], "\\" + new[0])
            new = new[0] + inside + new[0]
        parts += [text[end : token.start], new]
        end = token.start + len(token.text)
    return "".join([*parts, text[end:]])


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text, followed by a token of kind ``end``. A final semicolon is dropped."""
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None  # the last alternative is any character
        if match.lastgroup == "comment":
            at = _after_comment(text, at)
            continue
        if match.lastgroup != "blank":
            tokens.append(Token(str(match.lastgroup), match[0], at))
        at = match.end()
    if tokens and tokens[-1].text == ";":
        tokens.pop()
    return [*tokens, Token("end", "", len(text))]


def _after_comment(text: str, start: int) -> int:
    depth, at = 0, start
    for match in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if match[0] == "/*" else -1
        at = match.end()
        if depth == 0:
            return at
    return len(text)


class Cursor:
    """A position in the tokens of a text, with methods to consume the next tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._at = 0

    @property
    def next(self) -> Token:
        """The next token."""
        return self._tokens[self._at]

    def accept(self, *keywords: str) -> bool:
        """Consume the keywords if they come next, in any case; else consume nothing and return False."""
        tokens = self._tokens[self._at : self._at + len(keywords)]
        same = len(tokens) == len(keywords) and all(
            token.kind in ("name", "sign") and token.text.upper() == word
            for token, word in zip(tokens, keywords, strict=True)
        )
        self._at += len(keywords) if same else 0
        return same

    def expect(self, *keywords: str) -> None:
        """Consume the keywords in order. Raise SyntaxMismatch at the first keyword that is missing."""
        for word in keywords:
            if not self.accept(word):
                raise self.mismatch()

    def name(self) -> str:
        """Consume a name, quoted or not, and return it. A number is also a name."""
        return self._take("name", "quoted", "number")

    def number(self) -> int:
        """Consume a number and return it."""
        return int(self._take("number"))

    def digits(self) -> str:
        """Consume a number and return its digits as written."""
        return self._take("number")

    def text(self) -> str:
        """Consume a string and return its content."""
        return self._take("string")

    def skip(self) -> None:
        """Consume any token. Raise SyntaxMismatch at the end."""
        if self.next.kind == "end":
            raise self.mismatch()
        self._at += 1

    def parenthesised(self) -> str:
        """Consume text in parentheses and return it. Raise SyntaxMismatch if a parenthesis is missing."""
        self.expect("(")
        start, depth = self.next.start, 1
        while depth:
            end = self.next
            depth += {"(": 1, ")": -1}.get(end.text, 0) if end.kind == "sign" else 0
            self.skip()
        return self._text[start : end.start]

    def rest(self) -> str:
        """Return the text from the next token on."""
        return self._text[self.next.start :]

    def value(self) -> str:
        """Consume a string, a number or a word and return its text."""
        return self._take("string", "number", "name")

    def parts(self) -> tuple[str, ...]:
        """Consume a name of several parts with dots between them, and return the parts."""
        names = [self.name()]
        while self.accept("."):
            names.append(self.name())
        return tuple(names)

    def end(self) -> None:
        """Raise SyntaxMismatch unless the text ends here."""
        if self.next.kind != "end":
            raise self.mismatch()

    def mismatch(self) -> SyntaxMismatch:
        """Return the error for an unexpected next token."""
        before = self._text[: self.next.start]
        return SyntaxMismatch(before.count("\n") + 1, len(before) - before.rfind("\n") - 1, self.next.text)

    def _take(self, *kinds: str) -> str:
        token = self.next
        if token.kind not in kinds:
            raise self.mismatch()
        self._at += 1
        return token.value
