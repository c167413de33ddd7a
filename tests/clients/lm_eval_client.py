"""lm-eval scores texts through echo and logprobs; its figure is that of tier-compare.

    lm_eval_client.py URL MODEL_FOLDER TEXT TIER_COMPARE...

TEXT is cut into pieces of one window each, since lm-eval and tier-compare join windows differently: the former goes
on from the last token, the latter begins again with BOS. TIER_COMPARE is the command that measures one such piece
with the configuration that is served; the piece and --json are added to it.
"""
import json
import math
import os
import subprocess
import sys
import tempfile
from types import SimpleNamespace

os.environ["OPENAI_API_KEY"] = "sesame"
os.environ["HF_HUB_OFFLINE"] = "1"

from lm_eval.models.openai_completions import LocalCompletionsAPI  # noqa: E402

url, folder, text, *compare = sys.argv[1:]
model = LocalCompletionsAPI(model=folder, base_url=url + "/v1/completions", tokenizer=folder,
                            tokenizer_backend="huggingface", max_length=256, num_concurrent=1)

with open(text) as file:
    words = file.read()
pieces = [words[at:at + 500] for at in range(0, 8 * 500, 500)]
scores = model.loglikelihood_rolling([SimpleNamespace(args=(piece,), arguments=(piece,)) for piece in pieces])

theirs = ours = tokens = 0
for piece, score in zip(pieces, scores):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(piece)
        file.flush()
        report = json.loads(subprocess.run([*compare, file.name, "--json"], check=True, capture_output=True).stdout)
    n = report["tokens"]
    assert n < 256, n
    tokens += n
    ours += n * math.log(report["perplexity"])
    theirs -= score
theirs, ours = math.exp(theirs / tokens), math.exp(ours / tokens)
print(f"perplexity of {tokens} tokens: lm-eval {theirs:.6f}, tier-compare {ours:.6f}, difference {theirs - ours:+.1e}")
assert abs(theirs - ours) < 1e-3
