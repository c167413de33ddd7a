#include "tools/evaluation/model_arguments.h"

namespace tierd {

void ModelArguments::declare(CommandLine& line) {
  line.option("--config", file_, "a configuration: a TOML file, such as those in configs/").named("FILE");
  line.option("--set", overrides_, "sets a key of the configuration; may be repeated").named("KEY=VALUE");
  line.option("--plugin-path", plugin_folders_,
              "a folder with plugins, searched before those of the configuration; may be repeated")
      .named("DIR");
  line.option("-m,--model", model_, "a GGUF file, Hugging Face folder, llama2.c checkpoint or store")
      .named("MODEL");
  line.option("--tokenizer", tokenizer_, "a tokenizer that replaces the model's").named("FILE");
  line.option("-c,--ctx-size", context_,
              "tokens of a window of the text; 0: the model's context, at most 4096")
      .named("N");
  line.option("-t,--threads", threads_, "number of compute threads; 0: one for each core").named("N");
  line.flag("--fit", fit_, "raise a budget that is too small to the minimum");
  line.flag("-q,--quiet", quiet_, "no progress");
}

Result<Config> ModelArguments::config() const {
  TIERD_ASSIGN(Config config, load_config(file_, overrides_));
  for (auto folder = plugin_folders_.rbegin(); folder != plugin_folders_.rend(); ++folder)
    config.plugin_path = *folder + (config.plugin_path.empty() ? "" : ":") + config.plugin_path;
  if (!model_.empty()) config.model = model_;
  if (!tokenizer_.empty()) config.tokenizer = tokenizer_;
  if (threads_) config.threads = *threads_;
  if (context_) config.context = *context_;
  return config;
}

}  // namespace tierd
