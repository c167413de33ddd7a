#!/usr/bin/env python3
"""Compares tierd with llama.cpp on the tiny GGUF models of models/, on each token of a text that both are given.

Development only. Both keep keys and values in f16. Needs llama.cpp's llama-perplexity.

    tests/golden/compare_llama_cpp.py --tierd build/release/bin/tierd --llama FOLDER [NAME ...]

Prints one line a model: the mean and largest difference of log-probabilities, perplexities, and at how many tokens
greedy sampling takes the same one.
"""

import argparse
import json
import math
import struct
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import gguf
import numpy as np

CONTEXT = 48
CHUNKS = 4
TEXT = ("the man was in the house and he said that it is not so. of all the things that are in the world, the sea is "
        "the one that he would see again, and the wind was on the water, as it ever is at the end of the day. ") * 3


def their_logprobs(llama, model, folder):
    """The tokens [chunks x context], and of the second half of each chunk the log-probabilities [chunks x rows] and the
    numbers of the likeliest tokens."""
    text, base = folder / "text", folder / "logits"
    text.write_text(TEXT)
    subprocess.run([llama / "llama-perplexity", "-m", model, "-f", text, "-c", str(CONTEXT), "--chunks", str(CHUNKS),
                    "-fa", "off", "-t", "1", "-ngl", "0", "--save-all-logits", base],
                   capture_output=True, check=True)  # fmt: skip
    data = base.read_bytes()
    assert data[:8] == b"_logits_"
    n_ctx, n_vocab, n_chunks = struct.unpack_from("3i", data, 8)
    at = 20
    tokens = np.frombuffer(data, np.int32, n_ctx * n_chunks, at).reshape(n_chunks, n_ctx)
    at += tokens.nbytes
    width, first = 2 * ((n_vocab + 1) // 2) + 4, n_ctx // 2
    rows = n_ctx - 1 - first
    values = np.frombuffer(data, np.uint16, n_chunks * rows * width, at).reshape(n_chunks, rows, width)
    found = np.full((n_chunks, rows), np.nan)
    for chunk in range(n_chunks):
        for row in range(rows):
            scale, low = struct.unpack("2f", values[chunk, row, :4].tobytes())
            code = values[chunk, row, 4 + tokens[chunk, first + row + 1]]
            if code:  # 0: below the largest by more than the file's 16
                found[chunk, row] = scale * float(code) + low
    return tokens, found, values[:, :, 4 : 4 + n_vocab].argmax(axis=2)


class Server:
    def __init__(self, tierd, model, folder):
        self.log = open(folder / "server.log", "w+")
        self.process = subprocess.Popen([tierd, "serve", model, "--port", "0", "-c", "64", "--fit"],
                                        stdout=subprocess.DEVNULL, stderr=self.log)  # fmt: skip
        self.url = None
        while self.url is None:
            assert self.process.poll() is None, Path(self.log.name).read_text()
            lines = Path(self.log.name).read_text().splitlines()
            self.url = next((line.split()[-1] for line in lines if line.startswith("serving on ")), None)
            time.sleep(0.05)

    def ask(self, body):
        request = urllib.request.Request(self.url + "/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})  # fmt: skip
        return json.load(urllib.request.urlopen(request, timeout=60))["choices"][0]

    def logprobs(self, tokens):
        asked = {"prompt": tokens, "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}
        got = self.ask(asked)["logprobs"]
        return got["token_logprobs"], [max(top, key=top.get) if top else None for top in got["top_logprobs"]]


def compare(tierd, llama, model, folder):
    tokens, theirs, likeliest = their_logprobs(llama, model, folder)
    fields = gguf.GGUFReader(model).fields
    bos = fields["tokenizer.ggml.bos_token_id"].contents()
    written = {"▁": " ", "<0x0A>": "\n", "<unk>": " ⁇ "}
    pieces = list(fields["tokenizer.ggml.tokens"].contents())
    for kept, shown in written.items():
        pieces = [piece.replace(kept, shown) for piece in pieces]
    server = Server(tierd, model, folder)
    ours, same = [], 0
    try:
        for chunk, top in zip(tokens, likeliest):
            logprobs, tops = server.logprobs([bos] + chunk[1:].tolist())
            half = slice(len(chunk) // 2 + 1, len(chunk))
            ours.append(logprobs[half])
            same += sum(pieces[theirs_top] == our_top for theirs_top, our_top in zip(top, tops[half]))
    finally:
        server.process.terminate()
    ours = np.array(ours, dtype=float)
    seen = ~np.isnan(theirs)
    delta = np.abs(ours - theirs)[seen]
    perplexity = [math.exp(-values[seen].mean()) for values in (ours, theirs)]
    print(f"{model.parent.name:24} |delta logprob| {delta.mean():.5f}, largest {delta.max():.4f}, of {delta.size}; "
          f"perplexity {perplexity[0]:.2f}, llama.cpp {perplexity[1]:.2f}; "
          f"greedy: {same} of {likeliest.size} equal",
          flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tierd", type=Path, required=True)
    parser.add_argument("--llama", type=Path, required=True, help="the folder of llama.cpp's programs")
    parser.add_argument("models", nargs="*", help="only these (default: all GGUF models in f32)")
    arguments = parser.parse_args()
    folder = Path(__file__).parent / "models"
    names = arguments.models or sorted(path.name for path in folder.glob("gguf-*-f32"))
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            model = Path(scratch) / name / "model.gguf"
            model.parent.mkdir()
            # llama.cpp expects tokens of Phi 3 in a model of that name.
            data = (folder / name / "model.gguf").read_bytes().replace(b"gguf-phi3", b"gguf-ph_3")
            model.write_bytes(data)
            compare(arguments.tierd, arguments.llama, model, Path(scratch))


if __name__ == "__main__":
    main()
