#include "tools/lab/train/training_progress.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

namespace tierd {

TrainingProgress::TrainingProgress(std::vector<uint32_t> ranks, uint32_t epochs, uint32_t tokens, bool quiet)
    : ranks_(std::move(ranks)), epochs_(epochs), tokens_(tokens), line_(quiet) {}

// A token costs about what the rank says.
double TrainingProgress::share_done(uint32_t layer, uint32_t epoch, uint32_t tokens) const {
  const auto work = [&](uint32_t layers) {
    return std::accumulate(ranks_.begin(), ranks_.begin() + layers, 0.0) * epochs_ * tokens_;
  };
  const double of_layer = ranks_[layer] * (static_cast<double>(epoch) * tokens_ + tokens);
  return (work(layer) + of_layer) / work(static_cast<uint32_t>(ranks_.size()));
}

void TrainingProgress::show(uint32_t layer, uint32_t epoch, uint32_t tokens, double loss) {
  if (!line_.due(tokens == tokens_)) return;
  line_.show(fmt::format("layer {} of 0-{}, rank {}, epoch {} of {}: {:3.0f} %, loss {:.4f}{}", layer,
                         ranks_.size() - 1, ranks_[layer], epoch + 1, epochs_, 100.0 * tokens / tokens_, loss,
                         line_.left(share_done(layer, epoch, tokens))));
}

}  // namespace tierd
