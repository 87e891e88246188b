# SPDX-License-Identifier: BSD-3-Clause
"""all-MiniLM-L6-v2 in numpy, from the papers and not from the example's C: the reference its test
compares with. Its tokenizer knows all of Unicode, through Python's own tables."""
import json
import math
import pathlib
import struct
import unicodedata

import numpy

TOKENS_MAX = 256
WORD_MAX = 100


def read_safetensors(path):
    """name -> array, of a file whose floats are F32."""
    data = path.read_bytes()
    (header_bytes,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + header_bytes])
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        if entry["dtype"] == "F32":
            begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
            arrays[name] = numpy.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    return arrays


def is_cjk(code):
    return any(first <= code <= last for first, last in (
        (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
        (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)))


def is_punctuation(c):
    return c.isascii() and c.isprintable() and not c.isalnum() and c != " " \
        or unicodedata.category(c).startswith("P")


def words_of(text):
    """BERT's basic tokenizer: cleaned, lower case, without accents, cut at spaces and marks."""
    out = []
    for c in text:
        category = unicodedata.category(c)
        if c in "\t\n\r" or category in ("Zs", "Zl", "Zp"):
            out.append(" ")
        elif c != "\ufffd" and not category.startswith("C"):
            out.append(f" {c} " if is_cjk(ord(c)) else c)
    folded = unicodedata.normalize("NFD", "".join(out))
    folded = "".join(c for c in folded if unicodedata.category(c) != "Mn").lower()
    return "".join(f" {c} " if is_punctuation(c) else c for c in folded).split()


def pieces_of(word, vocabulary):
    """WordPiece: greedy, longest first; [UNK] for a word that cannot be cut."""
    pieces, start = [], 0
    while start < len(word) <= WORD_MAX:
        prefix = "##" if start else ""
        end = next((end for end in range(len(word), start, -1)
                    if prefix + word[start:end] in vocabulary), None)
        if end is None:
            break
        pieces.append(vocabulary[prefix + word[start:end]])
        start = end
    return pieces if start == len(word) else [vocabulary["[UNK]"]]


ERF_AT = numpy.linspace(-6, 6, 3 * 2 ** 14 + 1)  # beyond, it is -1 or 1
ERF = numpy.array([math.erf(x) for x in ERF_AT])


def erf(x):
    """Between the standard library's values, numpy having none: within 1e-8, an eighth of an F32's last bit."""
    return numpy.interp(x, ERF_AT, ERF).astype(x.dtype)


class Model:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        config = json.loads((folder / "config.json").read_text())
        self.layers, self.heads = config["num_hidden_layers"], config["num_attention_heads"]
        self.epsilon = config["layer_norm_eps"]
        self.weights = read_safetensors(folder / "model.safetensors")
        lines = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self.vocabulary = {piece: i for i, piece in enumerate(lines) if piece}

    def tokens(self, text):
        pieces = [piece for word in words_of(text) for piece in pieces_of(word, self.vocabulary)]
        return [self.vocabulary["[CLS]"], *pieces[:TOKENS_MAX - 2], self.vocabulary["[SEP]"]]

    def linear(self, name, x):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, name, x):
        x = x - x.mean(-1, keepdims=True)
        x = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon)
        return x * self.weights[name + ".LayerNorm.weight"] + self.weights[name + ".LayerNorm.bias"]

    def attention(self, prefix, x):
        tokens, hidden = x.shape
        q, k, v = (self.linear(prefix + "self." + name, x)
                   .reshape(tokens, self.heads, -1).transpose(1, 0, 2)
                   for name in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / numpy.sqrt(hidden // self.heads)
        scores = numpy.exp(scores - scores.max(-1, keepdims=True))
        context = scores / scores.sum(-1, keepdims=True) @ v
        return self.linear(prefix + "output.dense", context.transpose(1, 0, 2).reshape(x.shape))

    def encode(self, text):
        """The unit vector of one sentence."""
        ids = self.tokens(text)
        table = "embeddings.{}_embeddings.weight"
        x = self.norm("embeddings", self.weights[table.format("word")][ids]
                      + self.weights[table.format("position")][:len(ids)]
                      + self.weights[table.format("token_type")][0])
        for i in range(self.layers):
            prefix = f"encoder.layer.{i}."
            x = self.norm(prefix + "attention.output", x + self.attention(prefix + "attention.", x))
            inner = self.linear(prefix + "intermediate.dense", x)
            inner = inner * (1 + erf(inner / 2 ** 0.5)) / 2
            x = self.norm(prefix + "output", x + self.linear(prefix + "output.dense", inner))
        mean = x.mean(0)
        return mean / numpy.linalg.norm(mean)
