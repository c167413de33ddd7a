"""A model in the stores that ActiveFlow's configurations read, and runs of tierd on them: for channel_ladder, plan_table and
ahead_sweep.

Environment: BIN (build/release/bin), MODELS (/var/tmp/tierd-bench), THREADS 2, PROMPT 32 (tokens, of planted models).
"""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/bench"
PROGRAMS = pathlib.Path(os.environ.get("BIN", ROOT / "build/release/bin"))
MODELS = pathlib.Path(os.environ.get("MODELS", "/var/tmp/tierd-bench"))
BESIDE = 192 << 20  # bytes that a process may use beside its budget


# Kinds of stores: "rows"; "channels" by number; "by-rate": by their rates in another text than the prompt; "groups-4":
# channels of four layers contiguous; "experts-by-rate": experts in channels, too.

def call(command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def layout_of(kind):
    if kind == "rows":
        return []
    if kind == "experts-by-rate":
        return ["--layout", "channel-group", "--experts", "channels"]
    group = ["--layer-group", kind.removeprefix("groups-")] if kind.startswith("groups-") else []
    return ["--layout", "channel-group", *group]


class Planted:
    """A shape in q4_0 whose channels are planted (tier-synth --sparsity-profile activeflow): which of them matter to a token is
    drawn so that two tokens share what those of a text share, .55 of them. The text goes on with the same tokens in every run,
    whatever is left out, so that all runs compute the same passes."""

    context = 128

    def __init__(self, shape, name, layers=None):
        """layers: the first ones alone; a layer costs what it costs in the whole model."""
        self.name = f"planted-{name}"
        self._layers = layers
        self._shape = ROOT / f"configs/models/{shape}.toml"
        self._synth = [PROGRAMS / "tier-synth", "--shape", self._path(".toml") if layers else self._shape, "--encoding", "q4_0",
                       "--sparsity-profile", "activeflow", "--seed", 1, "--documents", 2, "--prompt-tokens", 256, "-q"]

    def _path(self, ending):
        return MODELS / f"{self.name}{ending}"

    def store(self, kind):
        """Returns the store of a kind, which is made if it is missing."""
        store = self._path(f"-{kind}")
        if not (store / "manifest.json").exists():
            MODELS.mkdir(parents=True, exist_ok=True)
            if self._layers:
                whole = self._shape.read_text()
                self._path(".toml").write_text(re.sub("n_layers = [0-9]+", f"n_layers = {self._layers}", whole))
            order = {"by-rate": lambda: ["--order", self._tables()], "experts-by-rate": lambda: ["--order", "planted"]}
            order = order.get(kind, list)()
            call([*self._synth, *layout_of(kind), *order, store])
        return store

    def gguf(self):
        gguf = self._path(".gguf")
        if not gguf.exists():
            call([*self._synth, "--format", "gguf", gguf])
        return gguf

    def _tables(self):
        tables, channels = self._path(".tables.safetensors"), self.store("channels")
        if not tables.exists():
            call([PROGRAMS / "tier-profile", "-m", channels, f"{channels}.prompt-2.txt", "-o", tables, "--thresholds", "--tokens", 256])
        return tables

    def prompt(self):
        prompt = self._path(".prompt.txt")
        words = pathlib.Path(f"{self.store('rows')}.prompt.txt").read_text().split()
        prompt.write_text(" ".join(words[: int(os.environ.get("PROMPT", "32"))]))
        return prompt


class Embedded:
    """The model that comes with tierd, and the text that was held out from it."""

    context = 256
    name = "demo"
    _model = ROOT / "configs/models/demo"

    def store(self, kind):
        store = MODELS / f"demo-{kind}"
        if not (store / "manifest.json").exists():
            MODELS.mkdir(parents=True, exist_ok=True)
            order = []
            if kind == "by-rate":
                tables = MODELS / "demo.tables.safetensors"
                call([PROGRAMS / "tier-profile", "-m", self._model, self._model / "held-out.txt", "-o", tables, "--thresholds",
                      "--skip", 10000, "-q"])
                order = ["--order", tables]
            call([PROGRAMS / "tier-convert", self._model, store, *layout_of(kind), *order, "-q"])
        return store

    def prompt(self):
        prompt = MODELS / "demo.prompt.txt"
        prompt.write_text((self._model / "held-out.txt").read_text()[:80])
        return prompt


def weights_bytes(model):
    return json.loads((model.store("rows") / "manifest.json").read_text())["tensor_bytes"]


def arguments(model, configuration, kind, percent):
    """Returns those of a run with this share of the weights in memory. configuration: a name within configs/, or a path without
    its ending."""
    return ["--config", ROOT / "configs" / f"{configuration}.toml", "-m", model.store(kind), "-c", model.context, "-t",
            os.environ.get("THREADS", "2"), "--set", f"tiers.dram.capacity={percent}%", "--json"]


def report_of(model, configuration, kind, percent, tokens, more=()):
    """Returns the report of a run in a memory group of its budget and BESIDE."""
    capacity = weights_bytes(model) * percent // 100
    return json.loads(call([HERE / "cgroup_run", capacity + BESIDE, PROGRAMS / "tierd",
                            *arguments(model, configuration, kind, percent), "-f", model.prompt(), "-n", tokens, "--temp", 0,
                            "--ignore-eos", *more]))["report"]
