#include "tools/lab/prune/prune_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "core/model/text/tokenizer.h"
#include "tools/evaluation/text_windows.h"

namespace tierd {
namespace {

// Longer windows than those of the published programs cost more without a better calibration.
constexpr uint32_t kLongestWindow = 2048;
// Fewer tokens would give the channels' norms of a few words.
constexpr uint64_t kFewestTokens = 128;
constexpr int kMostThreads = 1024;

Error bad(const char* argument, std::string detail) {
  return {Code::invalid_argument, argument, std::move(detail)};
}

PruneMethod method_of(const std::string& name) {
  if (name == "magnitude") return PruneMethod::magnitude;
  return name == "wanda" ? PruneMethod::wanda : PruneMethod::sparsegpt;
}

}  // namespace

void PruneArguments::add_to(CommandLine& line) {
  line.group("Pruning, of the matrices of the layers (q, k, v, o, gate, up, down)");
  method_argument_ =
      line.option("--method", method_,
                  "Choice of the weights that become zero: magnitude; or, with less loss, by a calibration "
                  "text: wanda, or sparsegpt, which also corrects the other weights")
          .named("METHOD")
          .one_of({"magnitude", "wanda", "sparsegpt"});
  sparsity_argument_ = line.option("--share", sparsity_, "The share of zeros, above 0 and below 1")
                           .named("SHARE")
                           .shows_default()
                           .needs(*method_argument_);
  smooth_argument_ =
      line.option("--smooth", smooth_,
                  "SmoothQuant with this strength, 0 to 1 (0.5 is usual): outliers of activations move into "
                  "weights, for --encoding q8_0 and int8 activations; alone or after pruning")
          .named("A")
          .between(0.0, 1.0);
  line.option("--calibration", calibration_,
              "The text for which wanda, sparsegpt and --smooth compute activations; use another one to "
              "judge the model")
      .named("FILE");
  line.option("--nm", groups_,
              "N:M such as 2:4, instead of a share: of each M consecutive inputs of a row, N stay and the "
              "others become zero")
      .named("N:M")
      .needs(*method_argument_);
  line.option("-t,--threads", threads_, "Number of compute threads; 0: one for each core")
      .named("N")
      .between(0, kMostThreads)
      .shows_default();
  line.option("--calibration-tokens", tokens_, "Maximum number of tokens of the calibration text; 0: all")
      .named("N")
      .shows_default();
}

Result<PruneOptions> PruneArguments::options() const {
  PruneOptions options;
  options.threads = threads_ > 0 ? threads_ : std::max(1u, std::thread::hardware_concurrency());
  if (smooth_argument_->given()) options.smooth = static_cast<float>(smooth_);
  if (method_argument_->given()) {
    options.method = method_of(method_);
    TIERD_ASSIGN(options.pattern, pattern_of_share(sparsity_));
    if (!groups_.empty()) {
      TIERD_ASSIGN(options.pattern, parse_groups(groups_));
      if (sparsity_argument_->given() && sparsity_ != options.pattern.sparsity) {
        return bad("--share",
                   fmt::format("{}, but --nm {} makes {} of the weights zero; leave one of them out",
                               sparsity_, groups_, options.pattern.sparsity));
      }
    }
  }
  // A text for magnitude is allowed, though not read, so that one command line can compare methods.
  if (!options.method && !options.smooth)
    return bad("--method", "is missing; expected magnitude, wanda or sparsegpt, or --smooth alone");
  if (options.needs_calibration() && calibration_.empty()) {
    return bad("--calibration", fmt::format("is missing; {} computes activations for a text",
                                            options.smooth ? "--smooth" : "--method " + method_));
  }
  return options;
}

Result<std::vector<std::vector<uint32_t>>> PruneArguments::windows(const TensorSource& source,
                                                                   const PruneOptions& options) const {
  using Windows = std::vector<std::vector<uint32_t>>;
  if (!options.needs_calibration()) return Windows();
  if (source.vocab() == nullptr)
    return Error{Code::not_found, source.path(), "the model has no tokenizer; name one with --tokenizer"};
  TIERD_ASSIGN(const auto tokenizer, make_tokenizer(*source.vocab(), source.path()));
  const ModelConfig& config = source.config();
  TIERD_ASSIGN(Windows windows, read_text_windows(*tokenizer, calibration_, {.tokens = tokens_},
                                                  std::min(config.context_length, kLongestWindow)));
  uint64_t tokens = 0;
  for (const auto& window : windows) tokens += window.size();
  if (tokens >= kFewestTokens) return windows;
  return bad("--calibration",
             fmt::format("{} has {} tokens, expected at least {}", calibration_, tokens, kFewestTokens));
}

}  // namespace tierd
