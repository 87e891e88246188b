#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Comments and documents are written in plain words: comments of C, and sentences of documents, do not begin with a word that
hides the subject, and no text has a phrase of a private vocabulary. FOLDERS grows until it is the whole tree."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

FOLDERS = ["include", "examples", "tools", "docs"]
EXCEPT = re.compile(r"docs/(architecture\.md|python\.md|torch\.md|triton\.md)|\.svg$|examples/python/")
OPENERS = re.compile(r"(Who|Whoever|What|Where|Of|That|Those|The same)\b(?!.*\?$)")
COMMENT_SHARE_MAX = 0.01  # of comments that begin with one of these words
PHRASES = [
    r"go(es)? by (?!one)", r"so many", r"whoever", r"(?<!there )(is|are) none", r"of ours", r"its (kin|like)", r"one behind the other",
    r"speaks? for", r"as ever", r"has come", r"have come", r"none of those", r"is nothing(?! (to|left))", r"(PEs|members|hosts) alike",
    r"knows? nothing", r"in front of one", r"by turns", r"rules?(?= it| them)", r"had of\b", r"letters (go|to|from|that|are applied)",
    r"by letters", r"carriers?", r"rosters?", r"detours?", r"the door", r"errands?",
]


def texts(pattern):
    names = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return [(name, (ROOT / name).read_text()) for name in names if re.search(pattern, name) and not EXCEPT.search(name)]


def comments():
    """(name, text) of every block comment of C."""
    for name, text in texts(r"\.(c|h|cu|cuh|cc)$"):
        for comment in re.findall(r"/\*(.*?)\*/", text, re.S):
            yield name, " ".join(re.sub(r"^\s*\*", " ", comment, flags=re.M).split())


def prose(text):
    """Sentences of a page without its programs and commands; rows of tables are cells."""
    text = re.sub(r"^```.*?^```|^\.EX.*?^\.EE|^\.nf.*?^\.fi", "", text, flags=re.M | re.S)
    text = re.sub(r'^(\.\\"|\'\\").*$|^\.(SH|TH|SS|TP|PP|IP|TQ|RS|RE|br)\b.*$|^#+ ', "\n\n", text, flags=re.M)
    text = re.sub(r"^\.(B|BR|I|IR|BI|IB|RB|RI) ", "", text, flags=re.M)
    for paragraph in re.split(r"\n\s*\n|^\s*[-*] (?:\*\*[^*]*\*\*)?|\|", text, flags=re.M):
        yield from re.split(r"(?<=[.:?!]) (?=[A-Z*`])", " ".join(paragraph.split()))


def openers_of_comments(problems):
    found = list(comments())
    bad = [f"{name}: {text[:90]}" for name, text in found if OPENERS.match(text)]
    print(f"# {len(bad)} of {len(found)} comments begin with such a word")
    if len(bad) > COMMENT_SHARE_MAX * len(found):
        problems += bad


def openers_of_documents(problems):
    for name, text in texts(r"^docs/.*\.(md|\d)$"):
        problems += [f"{name}: {sentence[:90]}" for sentence in prose(text) if OPENERS.match(sentence)]


def phrases(problems):
    pages = [(name, sentence) for name, text in texts(r"\.(md|\d)$") for sentence in prose(text)]
    for name, text in [*comments(), *pages]:
        text = re.sub(r"`[^`]*`|\]\([^)]*\)", "`", text)  # names of code and links have their own reasons
        for phrase in PHRASES:
            match = re.search(rf"\b{phrase}", text)
            if match:
                problems.append(f"{name}: '{match.group()}' in: ...{text[max(0, match.start() - 40):match.end() + 40]}...")


tap.run([
    ("comments do not begin with a word that hides their subject", openers_of_comments),
    ("nor do sentences of documents", openers_of_documents),
    ("no phrase is of a private vocabulary", phrases),
])
