# SPDX-License-Identifier: BSD-3-Clause
"""A sentence encoder, all-MiniLM-L6-v2, on several PEs: the demo of examples/minilm in Python. Each PE has a part of
the attention heads and of the feed-forward columns, and a part of the rows; the operators gather the rows in one
product and scatter the sums of the next one.

    examples/minilm/fetch.sh build/models/all-MiniLM-L6-v2
    oshrun -n 2 python examples/python/minilm.py --question "May I charge money for copies?"
"""
import argparse
import json
import math
import pathlib
import re
import struct
import time
import unicodedata

import numpy as np
import weft

TOKENS_MAX = 256  # of a sentence


# --- The model's files ------------------------------------------------------------------------------

def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    entries = json.loads(data[8:8 + length])
    return {name: np.frombuffer(data, "<f4", math.prod(entry["shape"]), 8 + length + entry["data_offsets"][0])
            .reshape(entry["shape"]) for name, entry in entries.items() if entry.get("dtype") == "F32"}


class Tokenizer:
    """BERT's tokenizer: lower case, without accents, split at spaces and punctuation, then into the longest known
    pieces."""

    def __init__(self, path):
        lines = path.read_text(encoding="utf-8").split("\n")
        self.ids = {piece: number for number, piece in enumerate(lines)}

    def pieces(self, word):
        found, rest, prefix = [], word, ""
        while rest:
            end = next((end for end in range(len(rest), 0, -1) if prefix + rest[:end] in self.ids), None)
            if end is None or len(word) > 100:
                return [self.ids["[UNK]"]]
            found.append(self.ids[prefix + rest[:end]])
            rest, prefix = rest[end:], "##"
        return found

    def __call__(self, text):
        text = unicodedata.normalize("NFD", text.lower())
        text = "".join(c for c in text if unicodedata.category(c) != "Mn")
        words = re.findall(r"\w+|[^\w\s]", text.replace("_", " _ "))
        inner = [piece for word in words for piece in self.pieces(word)]
        return [self.ids["[CLS]"], *inner[:TOKENS_MAX - 2], self.ids["[SEP]"]]


# --- The encoder ------------------------------------------------------------------------------------

def gelu(x):
    """GELU, with approximation 7.1.26 of Abramowitz and Stegun for the error function: within 1.5e-7."""
    t = 1 / (1 + 0.3275911 / math.sqrt(2) * abs(x))
    poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return x / 2 * (1 + np.sign(x) * (1 - poly * np.exp(-x * x / 2)))


class Encoder:
    def __init__(self, folder, rows_max):
        config = json.loads((folder / "config.json").read_text())
        self.weights = read_safetensors(folder / "model.safetensors")
        self.heads, self.hidden = config["num_attention_heads"], config["hidden_size"]
        self.epsilon, self.layers = config["layer_norm_eps"], config["num_hidden_layers"]
        self.me, self.n = weft.my_pe(), weft.n_pes()
        if self.heads % self.n:
            raise ValueError(f"{self.n} PEs cannot share {self.heads} heads")
        # This PE's rows, in symmetric memory that the others read directly.
        self.x = np.asarray(weft.empty((rows_max, self.hidden)))
        self.parts = [self.load(f"encoder.layer.{i}.") for i in range(self.layers)]

    def load(self, prefix):
        return {"prefix": prefix, "qkv": [self.columns(f"{prefix}attention.self.{name}") for name in ("query", "key", "value")],
                "out": self.rows_of(f"{prefix}attention.output.dense"), "up": self.columns(f"{prefix}intermediate.dense"),
                "down": self.rows_of(f"{prefix}output.dense")}

    def mine(self, count):
        return slice(count // self.n * self.me, count // self.n * (self.me + 1))

    def columns(self, name):
        """Returns this PE's part of a factor whose other factor is gathered; the files hold transposed factors."""
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        part = self.mine(len(weight))
        return np.ascontiguousarray(weight[part].T), bias[part]

    def rows_of(self, name):
        """Returns this PE's part of a factor whose product is scattered."""
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return np.ascontiguousarray(weight[:, self.mine(weight.shape[1])].T), bias

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon)
        return x * self.weights[f"{name}.LayerNorm.weight"] + self.weights[f"{name}.LayerNorm.bias"]

    def gather(self, x, *parts):
        """Multiplies all rows by each part, and adds its bias."""
        results = [np.empty((self.tokens, weight.shape[1]), "f") for weight, _ in parts]
        weft.all_gather_matmul(results, x, [weight for weight, _ in parts])
        return [result + bias for result, (_, bias) in zip(results, parts)]

    def scatter(self, x, part):
        """Returns this PE's rows of the sum of all PEs' products."""
        result = np.empty((self.rows, self.hidden), "f")
        weft.matmul_reduce_scatter(result, np.ascontiguousarray(x), part[0])
        return result + part[1]

    def attend(self, q, k, v, bounds):
        """Computes the attention of this PE's heads, sentence by sentence."""
        context = np.empty_like(q)
        width = self.hidden // self.heads
        for begin, end in bounds:
            a, b, c = (m[begin:end].reshape(end - begin, -1, width).transpose(1, 0, 2) for m in (q, k, v))
            scores = a @ b.transpose(0, 2, 1) / math.sqrt(width)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            context[begin:end] = (scores @ c).transpose(1, 0, 2).reshape(end - begin, -1)
        return context

    def __call__(self, sentences):
        """Returns a unit vector for each sentence, given as a list of tokens."""
        ids = np.concatenate(sentences)
        ends = np.cumsum([len(tokens) for tokens in sentences])
        bounds = list(zip(ends - [len(tokens) for tokens in sentences], ends))
        self.tokens, share = len(ids), -(-len(ids) // self.n)
        first = min(self.me * share, self.tokens)
        mine = slice(first, min(first + share, self.tokens))
        self.rows = mine.stop - mine.start
        x = self.x[:self.rows]

        table = "embeddings.{}_embeddings.weight"
        places = np.concatenate([np.arange(len(tokens)) for tokens in sentences])
        x[:] = self.norm(self.weights[table.format("word")][ids[mine]] + self.weights[table.format("token_type")][0] +
                         self.weights[table.format("position")][places[mine]], "embeddings")
        for part in self.parts:
            context = self.attend(*self.gather(x, *part["qkv"]), bounds)
            x[:] = self.norm(x + self.scatter(context, part["out"]), part["prefix"] + "attention.output")
            inner, = self.gather(x, part["up"])
            x[:] = self.norm(x + self.scatter(gelu(inner), part["down"]), part["prefix"] + "output")

        sums = np.zeros((len(sentences), self.hidden), "f")
        for sentence, (begin, end) in enumerate(bounds):
            sums[sentence] = x[max(begin - first, 0):max(end - first, 0)].sum(0)
        weft.all_reduce(sums)  # the sum has the same direction as the mean
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)


# --- The demo ---------------------------------------------------------------------------------------

def sentences_of(text):
    for paragraph in re.split(r"\n\s*\n", text):
        for sentence in re.split(r"(?<=[.;:!?])\s+", " ".join(paragraph.split())):
            if len(sentence) > 20:
                yield sentence


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", type=pathlib.Path, default=pathlib.Path("build/models/all-MiniLM-L6-v2"))
    parser.add_argument("--text", type=pathlib.Path, default=pathlib.Path("/usr/share/common-licenses/GPL-3"))
    parser.add_argument("--question", default="May I charge money for copies?")
    parser.add_argument("--dump", type=pathlib.Path, help="file for each sentence and its vector")
    options = parser.parse_args()
    if not (options.model / "vocab.txt").exists():
        parser.error(f"no model in {options.model}: fetch it with examples/minilm/fetch.sh {options.model}")

    weft.init()
    tokenize, batch = Tokenizer(options.model / "vocab.txt"), 16
    texts = [options.question, *sentences_of(options.text.read_text(encoding="utf-8"))]
    tokens = [tokenize(text) for text in texts]
    encode = Encoder(options.model, batch * TOKENS_MAX)
    began = time.perf_counter()
    vectors = np.concatenate([encode(tokens[i:i + batch]) for i in range(0, len(tokens), batch)])
    took = time.perf_counter() - began
    if weft.my_pe() == 0:
        print(f"{len(texts)} sentences, {sum(map(len, tokens))} tokens on {weft.n_pes()} PEs: {took:.2f} s\n")
        scores = vectors[1:] @ vectors[0]
        for at in scores.argsort()[::-1][:5]:
            print(f"{scores[at]:.3f}  {texts[at + 1]}")
        if options.dump:
            options.dump.write_text("".join("\t".join([text, *map(str, vector)]) + "\n"
                                            for text, vector in zip(texts, vectors)), encoding="utf-8")


main()
