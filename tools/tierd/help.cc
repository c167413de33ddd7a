#include "tools/tierd/help.h"

namespace tierd {

const char* const kDescription =
    "Runs language models larger than memory: keeps the weights that fit in the DRAM budget, and reads the "
    "others from flash.\n"
    "\n"
    "  tierd --config configs/hybrid.toml -m llama-2-7b.Q4_0.gguf\n"
    "  tierd --config configs/hybrid.toml -m llama-2-7b.Q4_0.gguf -p \"Once upon a time\" -n 64\n"
    "  tierd --config configs/hybrid.toml -m model/ --set tiers.dram.capacity=50% --check\n"
    "\n"
    "With a prompt (-p, -f) only the generated text goes to standard output; progress and report go to "
    "standard error. Without a prompt tierd chats if standard input and output are a terminal. `tierd "
    "serve`, "
    "or --host or --port, serves OpenAI's API (/v1/completions, /v1/models ...) and llama-server's; "
    "/v1/tiers "
    "shows and changes the budget.\n";

const char* const kFooter = R"(
MODEL is a GGUF file (the first of its shards), a Hugging Face folder, a llama2.c checkpoint or a store made
by tier convert. A model that is not a store is converted once into a cache folder ($TIERD_CACHE, else
$XDG_CACHE_HOME/tierd, else ~/.cache/tierd); all configurations share that store.

-hf OWNER/REPO[:QUANT] takes MODEL from the cache that huggingface_hub and llama.cpp use ($LLAMA_CACHE, else $HF_HUB_CACHE,
else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub), or downloads it there from
$HF_ENDPOINT (https://huggingface.co). The next run resumes a download that Ctrl-C stopped. With --check nothing is
downloaded, and the files are listed.

Exit status:
  0        done
  1        the run failed: an error of a disk or an output, or a faulty plugin
  2        unusable arguments, configuration, model or store; one line on standard error says why
  128 + N  ended by signal N, within a second: 130 SIGINT, 143 SIGTERM

--timeline FILE: open it in ui.perfetto.dev or chrome://tracing. Rows: steps, sites, predictor, waits, and the work of
each agent, with separate rows for reads that a pass waits for (demand) and for prefetching (preload). The file is
written at the end of the run, and renamed to FILE when it is complete. It has the latest 262144 slices of a run.

A configuration that leaves weights out prints at its start the loss that tier compare has measured on this model with
the same settings, or the command that measures it. A loss of more than 0.1 nats a token (Kullback-Leibler divergence
from the published file) is refused with exit status 2; run it with --force.

SIGHUP, with --config: the file is read again before the next step, and a changed tiers.dram.capacity becomes the
budget: resident weights are evicted or loaded, and the text stays the same. A changed predictor, quantizer, cache or
balancer replaces the old one; a quarantined plugin is created again. Other keys need a restart; one line on standard
error reports each change.

Keys of the configuration, for the TOML file and --set, with their defaults; --plugin NAME prints the further keys of a
plugin's table:
)";

const char* const kBriefHelp =
    R"(tierd runs language models larger than memory: it keeps the weights that fit, and reads the others in time.

Usage: tierd MODEL [options]             a chat on the terminal
       tierd MODEL -p TEXT [options]     continues a text
       tierd serve MODEL [options]       OpenAI's and llama-server's API on http://127.0.0.1:8080
       tierd -hf OWNER/REPO[:QUANT]      the same with a model of huggingface.co, downloaded once
       tierd MODEL --check               the plan from the model's headers: does it fit, how fast will it be?

MODEL is a GGUF file (the first of its shards), a Hugging Face folder, a llama2.c checkpoint or a store made by
tier convert.

  -p, --prompt TEXT       the prompt                          -f, --file FILE      a file with the prompt
  -n, --predict N         tokens to generate                  -c, --ctx-size N     positions of the context
  -t, --threads N         number of compute threads           -s, --seed N         the same seed, the same text
      --temp T            0: the most probable token          --top-k, --top-p, --min-p, ...
  --system-prompt TEXT    the system prompt of a chat         --chat-template NAME the form of chats

  --config FILE           a configuration: configs/hybrid.toml, llm-in-a-flash.toml, activeflow.toml,
                          moe-streaming.toml; default: hybrid, and for mixtures moe-streaming
  --set KEY=VALUE         a key of it: tiers.dram.capacity=3GB or 50%; "auto" is the available memory
  --fit on|off            shorten a context that was not set until it fits
  --plugins, --plugin NAME   list plugins, print the manual of one

  --host, --port          where to serve                      --api-key KEY        key of clients
  -np, --parallel N       texts generated at once             -a, --alias NAME     the model's name to clients

  --json                  one JSON object: text and report    -q, --quiet          only the text
  --trace FILE            for tier trace                      --timeline FILE      for ui.perfetto.dev
  --help all              all flags, and all keys of a configuration
  --figures               the names in reports and /metrics   --version

Flags of llama-server and llama-cli are accepted, or refused with the name of an alternative. Exit status: 0 done,
1 the run failed, 2 unusable arguments or model, 128 + N ended by signal N.
)";

}  // namespace tierd
