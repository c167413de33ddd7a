#include "tools/measurement/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/file.h"

namespace tierd {
namespace {

constexpr uint32_t kDefaultPrompt = 512;
constexpr uint32_t kDefaultGenerate = 128;

}  // namespace

void MeasurementArguments::add_to(const char* program, CommandLine& line) {
  program_ = program;
  line.option("--config", arguments_.config_file, "configuration, see configs/").named("FILE");
  line.option("--set", arguments_.overrides, "a key over the configuration's, see tierd --help")
      .named("KEY=VALUE");
  line.option("-m,--model", model_, "the model").named("PATH");
  const Argument prompt =
      line.option("-p,--n-prompt", prompt_, fmt::format("tokens of a prompt, 0 is none [{}]", kDefaultPrompt))
          .named("N");
  line.option("-n,--n-gen", generate_,
              fmt::format("tokens decoded from an empty context, or after the text; 0 is none [{}]",
                          kDefaultGenerate))
      .named("N");
  const Argument text = line.option("-f,--file", text_file_,
                                    "a text that the model continues, always with the most probable token; "
                                    "how fast it reads the text is not measured")
                            .named("FILE")
                            .excludes(prompt);
  repetitions_ =
      line.option("-r,--repetitions", rounds_, fmt::format("blocks of each test [{}]", kDefaultRounds))
          .named("N")
          .between(1, 1000);
  line.option("-c,--ctx-size", context_, "positions of the context [what -p and -n need]").named("N");
  line.option("-t,--threads", threads_, "compute workers, 0 is one a core").named("N");
  line.option("--ub,--ubatch-size", ubatch_, "most tokens of a prefill chunk").named("N");
  line.option("-s,--seed", seed_, "of the tokens").named("N");
  line.option("--block-seconds", arguments_.block_seconds,
              "repeat the test in a block for at least so long; the context is emptied when full")
      .named("S")
      .between(0.0, 86400.0)
      .excludes(text);
  line.option("--warmup-seconds", arguments_.warmup_seconds, "run so long before the first block")
      .named("S")
      .between(0.0, 86400.0);
  line.flag("--fit", arguments_.fit, "raise a budget that is too small to the least that would do");
  const Argument format =
      line.option("-o,--output", format_, "md, json or csv").one_of({"md", "json", "csv"});
  line.flag("--json", json_, "the same as -o json").excludes(format);
  line.flag("-q,--quiet", arguments_.quiet, "no progress");
}

Status MeasurementArguments::complete(bool alone) {
  TIERD_ASSIGN(arguments_.config, load_config(arguments_.config_file, arguments_.overrides));
  if (format_ == "json" || json_) arguments_.format = Format::json;
  if (format_ == "csv") arguments_.format = Format::csv;
  if (!text_file_.empty()) {
    TIERD_ASSIGN(std::string text, read_file_or_pipe(text_file_));
    arguments_.text = TextArguments{text_file_, std::move(text)};
  }
  most_prompt_ = prompt_.value_or(alone && !arguments_.text ? kDefaultPrompt : 0);
  most_generate_ = generate_.value_or(alone || most_prompt_ == 0 ? kDefaultGenerate : 0);
  if (most_prompt_ > 0) arguments_.tests.push_back({Workload::Kind::prefill, most_prompt_});
  if (most_generate_ > 0) arguments_.tests.push_back({Workload::Kind::decode, most_generate_});
  if (arguments_.tests.empty()) {
    return Error{Code::invalid_argument, program_, "-p 0 and -n 0 leave nothing to measure"};
  }
  arguments_.rounds = rounds_.value_or(kDefaultRounds);
  return settle(arguments_.config);
}

Status MeasurementArguments::settle(Config& config) const {
  if (!model_.empty()) config.model = model_;
  if (threads_) config.threads = *threads_;
  if (context_) config.context = *context_;
  if (ubatch_) config.ubatch = *ubatch_;
  if (seed_) config.seed = *seed_;
  // The length of a text is known only to the model's tokenizer.
  if (config.context == 0 && !arguments_.text) config.context = std::max(most_prompt_, most_generate_);
  if (most_prompt_ <= config.context) return {};
  return Error{Code::invalid_argument, "-p",
               fmt::format("{} tokens do not fit a context of {} (-c)", most_prompt_, config.context)};
}

std::string_view MeasurementArguments::flag_of(std::string_view key) const {
  if (key == "model.path" && !model_.empty()) return "-m";
  if (key == "run.threads" && threads_) return "-t";
  if (key == "run.context" && context_) return "-c";
  if (key == "run.ubatch" && ubatch_) return "--ub";
  if (key == "run.seed" && seed_) return "-s";
  return "";
}

}  // namespace tierd
