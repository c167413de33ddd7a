"""Windows of tokens from a text, and the order in which they are trained on."""
import json
import math
import os
import pathlib
import subprocess

PROGRAMS = pathlib.Path(os.environ.get("BIN", pathlib.Path(__file__).resolve().parents[3] / "build/release/bin"))
MASK64 = (1 << 64) - 1


class Refused(Exception):
    """Input that cannot be used; the message is the line for the user."""


class Random:
    """core/base/random.h: splitmix64 seeds xoshiro256++, so that an order is the same on every machine."""

    def __init__(self, seed):
        self.state = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & MASK64
            z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
            self.state.append(z ^ (z >> 31))

    def below(self, bound):
        s = self.state
        result = (_rotated((s[0] + s[3]) & MASK64, 23) + s[0]) & MASK64
        t = (s[1] << 17) & MASK64
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = _rotated(s[3], 45)
        return ((result >> 32) * bound) >> 32


def _rotated(x, k):
    return ((x << k) | (x >> (64 - k))) & MASK64


def _tokens(tokenizer, more):
    program = PROGRAMS / "tier-tokenize"
    try:
        done = subprocess.run([program, "-m", tokenizer, "--ids", *more], capture_output=True, text=True)
    except OSError as error:
        raise Refused(f"{program}: {error.strerror}; build tier-tokenize, or name the folder of programs in BIN") from None
    if done.returncode != 0:
        raise Refused(done.stderr.strip().removeprefix("tier-tokenize: "))
    return json.loads(done.stdout)


def text_windows(tokenizer, text, length):
    """Windows of `length` tokens; each begins with the tokens that the tokenizer puts before a text (BOS). A last window
    of one token is left out: there is nothing to predict in it."""
    before = _tokens(tokenizer, ["-p", ""])
    tokens = _tokens(tokenizer, ["--no-bos", "-f", text])
    room = length - len(before)
    windows = [before + tokens[at : at + room] for at in range(0, len(tokens), room)] if room > 0 else []
    return [window for window in windows if len(window) > 1]


def split(windows, share, text, length):
    """Returns the windows to train on and the last `share` of them, which is held out: windows taken at random would have
    neighbours that are trained on."""
    held_out = math.ceil(len(windows) * share)
    if held_out >= len(windows):
        raise Refused(
            f"{text}: {len(windows)} windows of {length} tokens, of which {held_out} are to be held out: none is left to train on")
    return windows[:-held_out], windows[-held_out:]


class Batches:
    """Batches of nearly one size, in an order that the seed decides: every window once before any of them again."""

    def __init__(self, windows, size, seed):
        self.windows = windows
        self.per_epoch = (len(windows) - 1) // size + 1
        self.at = 0
        self.random = Random(seed)
        self.order = list(range(len(windows)))

    def next(self):
        n = len(self.order)
        if self.at == 0:
            for i in range(n - 1, 0, -1):
                j = self.random.below(i + 1)
                self.order[i], self.order[j] = self.order[j], self.order[i]
        batch = self.order[n * self.at // self.per_epoch : n * (self.at + 1) // self.per_epoch]
        self.at = (self.at + 1) % self.per_epoch
        return [self.windows[i] for i in batch]
