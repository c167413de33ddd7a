"""A planted OPT-6.7B in three encodings, and runs of M2Cache's configurations on it: for m2cache_ladder and m2cache_ahead."""
import json
import os
import pathlib
import subprocess
import sys

from calibration import describe

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Every step uses the same neurons, however many a memory holds.
RANKED = {"predictor.fit_memory": "false"}


def setting(name, default):
    return os.environ.get(name, default)


def link_of(report, to):
    return next(of for of in report["links"] if of["to"] == to)


def say(line):
    print(f"{pathlib.Path(sys.argv[0]).name}: {line}", file=sys.stderr)


class Runs:
    """Reports of runs on the first layers of a planted OPT-6.7B: a layer costs what it costs in the whole model.

    folder: where reports are kept; a run whose report is there is not made again. Stores are made where they are missing.
    Environment: BIN (build/release/bin), MODELS (/var/tmp/tierd-bench), LAYERS 8, BACKEND host, KEEP 0.3, TOKENS 32, GPU
    2.3GB, COMMIT (asked of git if it is not said), ARGS (further arguments of tierd).
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.bin = pathlib.Path(setting("BIN", ROOT / "build/release/bin"))
        self.layers = setting("LAYERS", "8")
        self.keep = setting("KEEP", "0.3")
        self.tokens = int(setting("TOKENS", "32"))
        self.backend = setting("BACKEND", "host")
        self.store = pathlib.Path(setting("MODELS", "/var/tmp/tierd-bench")) / f"planted-m2cache-{self.layers}"
        self.one_edition = self.store.with_name(self.store.name + "-f16")  # lower editions are made from it
        self.folder.mkdir(parents=True, exist_ok=True)

    def _make_store(self, store):
        store.parent.mkdir(parents=True, exist_ok=True)
        shape = self.folder / "shape.toml"
        whole = (ROOT / "configs/models/opt-6.7b.toml").read_text()
        shape.write_text(whole.replace("n_layers = 32", f"n_layers = {self.layers}"))
        editions = "none" if store == self.one_edition else "q8_0,q4_0"
        subprocess.run([self.bin / "tier-synth", "--shape", shape, "--sparsity-profile", "m2cache", "--seed", "1", "--layout",
                        "neuron", "--encoding", "f16", "--editions", editions, "--documents", "1", "--prompt-tokens", "32",
                        store], check=True)

    def machine(self, number=1):
        """Returns the number-th file that describes this machine, as it is now or was then, and what is in it."""
        if not (self.store / "manifest.json").exists():
            self._make_store(self.store)
        return describe(self.bin / "tier-calibrate", self.store / "weights.bin", self.folder / f"machine-{number}.toml")

    def report(self, name, configuration, settings, further=(), store=None):
        """Returns the report of a run. name: of its file. settings: of the configuration, over those of every run. further:
        arguments of tierd. store: another one than that of three encodings."""
        store = store or self.store
        kept = self.folder / f"{name.replace(' ', '-')}.json"
        if not kept.exists():
            if not (store / "manifest.json").exists():
                self._make_store(store)
            say(name)
            given = {"predictor.tensors": f"{store}.predictor.safetensors", "predictor.keep": self.keep,
                     "tiers.gpu.backend": self.backend, "tiers.gpu.capacity": setting("GPU", "2.3GB")} | settings
            command = [self.bin / "tierd", "--config", ROOT / f"configs/{configuration}.toml", "-m", store, "-f",
                       f"{store}.prompt.txt", "-n", str(self.tokens + 1), "--temp", "0", "--ignore-eos", "-c", "128",
                       "--json"]
            for key, value in given.items():
                command += ["--set", f"{key}={value}"]
            command += [*further, *setting("ARGS", "").split()]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{name}: {done.stderr.strip().splitlines()[-1]}")
            kept.write_text(json.dumps(json.loads(done.stdout)["report"]))
        return json.loads(kept.read_text())

    def write(self, lines, how):
        """Prints a table, keeps it as table.md, and says below it what was run and how."""
        commit = setting("COMMIT", "") or subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"],
                                                         capture_output=True, text=True).stdout.strip()
        text = "\n".join(lines + ["", f"{self.layers} layers; activity is planted (configs/models/planted/m2cache.toml, seed "
                                  f"1), {self.keep} of the neurons; {self.tokens} tokens after a prompt of 32; {how}; "
                                  f"commit {commit}."]) + "\n"
        (self.folder / "table.md").write_text(text)
        print(text)
