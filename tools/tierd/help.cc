#include "tools/tierd/help.h"

namespace tierd {

const char* const kDescription =
    "Runs language models larger than memory: what the DRAM budget holds stays, the rest streams from "
    "flash.\n"
    "\n"
    "  tierd --config configs/hybrid.toml -m llama-2-7b.Q4_0.gguf\n"
    "  tierd --config configs/hybrid.toml -m llama-2-7b.Q4_0.gguf -p \"Once upon a time\" -n 64\n"
    "  tierd --config configs/hybrid.toml -m model/ --set tiers.dram.capacity=50% --check\n"
    "\n"
    "With a prompt (-p, -f) the generated text, and nothing else, goes to standard output; progress and "
    "report go to "
    "standard error. Without one it chats where standard input and output are a terminal. `tierd serve`, or "
    "--host or "
    "--port, serves: OpenAI's API (/v1/completions, /v1/models ...) and llama-server's; /v1/tiers shows and "
    "moves the "
    "budget.\n";

const char* const kFooter = R"(
MODEL is a GGUF file (the first of its shards), a Hugging Face folder, a llama2.c checkpoint or a store made
by tier-convert. What is no store yet is converted once into a cache folder ($TIERD_CACHE, else
$XDG_CACHE_HOME/tierd, else ~/.cache/tierd); all configurations share that store.

-hf OWNER/REPO[:QUANT] takes MODEL from the cache that huggingface_hub and llama.cpp use ($LLAMA_CACHE, else $HF_HUB_CACHE,
else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub), or downloads it there from
$HF_ENDPOINT (https://huggingface.co). Ctrl-C is no loss: the next run goes on. With --check it says what would come.

Exit status:
  0        done
  1        the run failed: a disk or an output that does not work, a faulty plugin
  2        unusable arguments, configuration, model or store; one line on standard error says why
  128 + N  ended by signal N, within a second: 130 SIGINT, 143 SIGTERM

--timeline FILE: open it in ui.perfetto.dev or chrome://tracing. Rows: steps, sites, predictor, waits, and each agent's
work, reads that were needed at once (demand) apart from those that were made ahead (preload). It is written when the
run ends, under its name only when it is whole. Longer runs keep their latest 262144 slices.

A configuration that leaves weights out says at its start what tier-compare has measured of it on this model, with the
same settings, or the command that measures it. More than 0.1 nats a token (Kullback-Leibler, from the file as published)
is refused with exit status 2; --force runs it.

SIGHUP, with --config: the file is read again before the next step, and another tiers.dram.capacity becomes the
budget: what is resident shrinks or grows, and the text stays the same. Another predictor, quantizer, cache or
balancer takes the place of the old one; a plugin that is quarantined is made anew. Other keys take a restart; one
line on standard error tells of each change.

Keys of the configuration, for the TOML file and --set, with their defaults; what a plugin takes beside them in its
table, --plugin NAME prints:
)";

const char* const kBriefHelp =
    R"(tierd runs language models larger than memory: what fits stays, the rest is read from the disk in time.

Usage: tierd MODEL [options]             a chat on the terminal
       tierd MODEL -p TEXT [options]     continues a text
       tierd serve MODEL [options]       OpenAI's and llama-server's API on http://127.0.0.1:8080
       tierd -hf OWNER/REPO[:QUANT]      the same with a model of huggingface.co, downloaded once
       tierd MODEL --check               the plan from the model's headers: does it fit, how fast will it be?

MODEL is a GGUF file (the first of its shards), a Hugging Face folder, a llama2.c checkpoint or a store of
tier-convert.

  -p, --prompt TEXT       the prompt                          -f, --file FILE      a file that holds it
  -n, --predict N         tokens to generate                  -c, --ctx-size N     positions of the context
  -t, --threads N         threads that compute                -s, --seed N         the same seed, the same text
      --temp T            0: the most probable token          --top-k, --top-p, --min-p, ...
  --system-prompt TEXT    what a chat begins with             --chat-template NAME the form of chats

  --config FILE           a strategy: configs/hybrid.toml, llm-in-a-flash.toml, activeflow.toml,
                          moe-streaming.toml; without one hybrid, and for mixtures moe-streaming
  --set KEY=VALUE         a key of it: tiers.dram.capacity=3GB or 50%; "auto" is what the machine leaves
  --fit on|off            shorten a context that was not given until it fits
  --plugins, --plugin NAME   what can be plugged in, and the manual of one

  --host, --port          where to serve                      --api-key KEY        who may ask
  -np, --parallel N       texts continued at once             -a, --alias NAME     the model's name to clients

  --json                  one JSON object: text and report    -q, --quiet          the text alone
  --trace FILE            for tier-trace                      --timeline FILE      for ui.perfetto.dev
  --help all              everything: samplers, guesses, all keys of a configuration
  --figures               the names in reports and /metrics   --version

Flags of llama-server and llama-cli are taken, or refused by name with what to use instead. Exit status: 0 done,
1 the run failed, 2 unusable arguments or model, 128 + N ended by signal N.
)";

}  // namespace tierd
