#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Comments and documents are written in plain words. A comment of C, a docstring, or a sentence of a document, does not
begin with a word that hides its subject, and no text has a phrase of a private vocabulary. FOLDERS
grows to the whole tree."""
import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

FOLDERS = ["include", "examples", "tools", "docs", "python", "tests/python",
           "src/base", "src/tcp", "src/ucx", "src/transport", "src/job", "src/far", "src/core", "src/boot", "src/launch", "src/device",
           "src/coll", "src/fused", "src/api", "src/ops", "src/without_gpu",
           "tests/base", "tests/tcp", "tests/ucx", "tests/job", "tests/far", "tests/boot", "tests/launch", "tests/core",
           "tests/coll", "tests/ops", "tests/api", "tests/gpu", "tests/random", "tests/conformance", "tests/faults",
           "tests/hosts", "bench"]
EXCEPT = re.compile(r"tests/python/helion_")  # these have Helion's own comments
OPENERS = re.compile(r"(?:--- )?(Who|Whoever|What|Where|Of|That|Those|The same)\b(?!.*\?$)")
COMMENTS_SHARE_MAX = 0.01
PHRASES = [
    r"go(es)? by (?!one)", r"so many", r"whoever", r"(?<!there )(is|are) none", r"of ours", r"its (kin|like)\b",
    r"one behind the other", r"speaks? for", r"as ever", r"ha(s|ve) come", r"none of those", r"is nothing(?! (to|left))",
    r"(PEs|members|hosts) alike", r"knows? nothing", r"in front of one", r"by turns", r"rules?(?= it| them)", r"had of\b",
    # The field's words are messages, host proxies, members, the slow path, the listener and tasks.
    r"letters (go|to|from|that|are applied)", r"by letters", r"carriers?", r"rosters?", r"detours?", r"the door",
    r"errands?",
    r"[Nn]o test of (its|their) own", r"[Ee]verybody", r"by lot", r"turned round", r"(the )?other way round",
    r"behind (that|it|this|them|a|each|every|the (last|barrier))\b", r"what (goes|comes)", r"but for\b",
]


def texts(pattern):
    names = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [(name, (ROOT / name).read_text()) for name in names.split()
            if re.search(pattern, name) and not EXCEPT.search(name)]


def comments():
    """Yields the name of the file and the text of every block comment of C and every docstring of Python."""
    for name, text in texts(r"\.(c|h|cu|cuh|cc|cpp)$"):
        for comment in re.findall(r"/\*(.*?)\*/", text, re.S):
            yield name, " ".join(re.sub(r"^\s*\*", " ", comment, flags=re.M).split())
    for name, text in texts(r"\.(py|t)$"):
        for node in ast.walk(ast.parse(text)) if "python" in text.split("\n")[0] or name.endswith(".py") else ():
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (docstring := ast.get_docstring(node)):
                yield name, " ".join(docstring.split())


def sentences():
    """Yields the name of the file and every sentence of documents, without programs. A cell of a table counts as one."""
    for name, text in texts(r"^docs/.*\.(md|\d)$"):
        text = re.sub(r"^```.*?^```|^\.EX.*?^\.EE|^\.nf.*?^\.fi", "", text, flags=re.M | re.S)
        text = re.sub(r'^(\.\\"|\'\\").*$|^\.(SH|TH|SS|TP|PP|IP|TQ|RS|RE|br)\b.*$|^#+ ', "\n\n", text, flags=re.M)
        text = re.sub(r"^\.(B|BR|I|IR|BI|IB|RB|RI) ", "", text, flags=re.M)
        for paragraph in re.split(r"\n\s*\n|^\s*[-*] (?:\*\*[^*]*\*\*)?|\|", text, flags=re.M):
            for sentence in re.split(r"(?<=[.:?!]) (?=[A-Z*`])", " ".join(paragraph.split())):
                yield name, sentence


def comments_begin(problems):
    found = list(comments())
    bad = [f"{name}: {text[:90]}" for name, text in found if OPENERS.match(text)]
    print(f"# {len(bad)} of {len(found)} comments begin with such a word")
    if len(bad) > COMMENTS_SHARE_MAX * len(found):
        problems += bad


def sentences_begin(problems):
    problems += [f"{name}: {sentence[:90]}" for name, sentence in sentences() if OPENERS.match(sentence)]


def phrases(problems):
    for name, text in [*comments(), *sentences()]:
        text = re.sub(r"`[^`]*`|\]\([^)]*\)", "`", text)  # names and links may contain anything
        for phrase in PHRASES:
            match = re.search(rf"\b{phrase}", text)
            if match:
                around = text[max(0, match.start() - 40):match.end() + 40]
                problems.append(f"{name}: '{match.group()}' in: {around}")


tap.run([
    ("comments begin with their subject", comments_begin),
    ("so do sentences of documents", sentences_begin),
    ("no phrase is of a private vocabulary", phrases),
])
