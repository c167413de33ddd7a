"""A Hugging Face folder made from another one: other weights, all else unchanged."""
import json
import pathlib
import shutil

import safetensors
import safetensors.torch
import torch
import transformers

from windows import Refused

WEIGHTS = "model.safetensors"
# The files beside the weights that transformers and tierd read.
COMPANIONS = (
    "config.json generation_config.json tokenizer.json tokenizer.model tokenizer_config.json special_tokens_map.json "
    "added_tokens.json vocab.json merges.txt chat_template.jinja"
).split()
MIXTURES = ("num_experts", "num_local_experts", "n_routed_experts")
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def load(path):
    """Returns the model of a folder, in f32."""
    path = pathlib.Path(path)
    if not path.exists():
        raise Refused(f"{path}: there is no such folder")
    if not (path / "config.json").is_file():
        raise Refused(f"{path}: is no Hugging Face folder, which alone can be distilled")
    if any(json.loads((path / "config.json").read_text()).get(key) for key in MIXTURES):
        raise Refused(f"{path}: a mixture of experts; models without can be distilled")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, local_files_only=True)
    except (KeyError, OSError, ValueError) as error:
        raise Refused(f"{path}: transformers cannot load it: {' '.join(str(error).split())}") from None
    model.get_input_embeddings().padding_idx = None  # no token is padding here, and BOS has the same number in some models
    return model


class ModelFolder:
    """`out` appears under its name when it is whole; until then it is `out`.partial, which is made at once, so that a place
    that cannot be written is found before the work."""

    def __init__(self, source, out):
        self.source = pathlib.Path(source)
        self.out = pathlib.Path(out)
        self.partial = self.out.with_name(self.out.name + ".partial")
        if self.out.exists():
            raise Refused(f"{out}: is there already; a distilled model needs a folder of its own")
        try:
            self.partial.mkdir(exist_ok=True)
        except OSError as error:
            raise Refused(f"{self.partial}: {error.strerror}") from None

    def write(self, model, provenance):
        """Writes the weights of `model` under the names and in the encodings that the source has, in one file."""
        safetensors.torch.save_file(self._weights(model), self.partial / WEIGHTS, {"format": "pt"})
        for name in COMPANIONS:
            if (self.source / name).exists():
                shutil.copyfile(self.source / name, self.partial / name)
        (self.partial / "distillation.json").write_text(json.dumps(provenance, indent=2) + "\n")
        self.partial.rename(self.out)

    def _weights(self, model):
        state = model.state_dict()
        weights = {}
        for shard in sorted(self.source.glob("*.safetensors")):
            if shard.name != WEIGHTS and not shard.name.startswith("model-"):
                continue
            with safetensors.safe_open(shard, "pt") as file:
                for name in file.keys():
                    part = file.get_slice(name)
                    value = state.get(name, state.get(f"{model.base_model_prefix}.{name}"))
                    if value is None or list(value.shape) != part.get_shape() or part.get_dtype() not in DTYPES:
                        raise Refused(f"{shard}: tensor \"{name}\", {part.get_dtype()} {part.get_shape()}, is no parameter of the "
                                      f"loaded model in F32, F16 or BF16")
                    weights[name] = value.to("cpu", DTYPES[part.get_dtype()], copy=True).contiguous()
                    if not weights[name].isfinite().all():
                        raise Refused(f"{name}: a trained value does not fit {part.get_dtype()}, the model's own; a lower "
                                      f"--learning-rate or a model in f32 does")
        return weights
