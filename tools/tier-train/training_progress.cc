#include "tools/tier-train/training_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <numeric>
#include <utility>

#include "core/base/time.h"
#include "core/base/units.h"

namespace tierd {
namespace {
constexpr uint64_t kTerminalPeriodNs = 100'000'000;
constexpr uint64_t kPlainPeriodNs = 30'000'000'000;
constexpr double kLeastShare = 0.01;  // of the work, before anything is said about the rest
}  // namespace

TrainingProgress::TrainingProgress(std::vector<uint32_t> ranks, uint32_t epochs, uint32_t tokens, bool quiet)
    : ranks_(std::move(ranks)),
      epochs_(epochs),
      tokens_(tokens),
      start_ns_(now_ns()),
      drawn_ns_(start_ns_),
      terminal_(isatty(STDERR_FILENO) != 0),
      quiet_(quiet) {}

TrainingProgress::~TrainingProgress() {
  if (open_) std::fputc('\n', stderr);
}

// A token costs about what the rank says.
double TrainingProgress::share_done(uint32_t layer, uint32_t epoch, uint32_t tokens) const {
  const auto work = [&](uint32_t layers) {
    return std::accumulate(ranks_.begin(), ranks_.begin() + layers, 0.0) * epochs_ * tokens_;
  };
  const double of_layer = ranks_[layer] * (static_cast<double>(epoch) * tokens_ + tokens);
  return (work(layer) + of_layer) / work(static_cast<uint32_t>(ranks_.size()));
}

void TrainingProgress::show(uint32_t layer, uint32_t epoch, uint32_t tokens, double loss) {
  const uint64_t now = now_ns();
  const bool due = now - drawn_ns_ >= (terminal_ ? kTerminalPeriodNs : kPlainPeriodNs);
  if (quiet_ || !(due || tokens == tokens_)) return;
  drawn_ns_ = now;
  const double share = share_done(layer, epoch, tokens);
  const double seconds = static_cast<double>(now - start_ns_) * 1e-9;
  std::string text =
      fmt::format("layer {} of 0-{}, rank {}, epoch {} of {}: {:3.0f} %, loss {:.4f}", layer,
                  ranks_.size() - 1, ranks_[layer], epoch + 1, epochs_, 100.0 * tokens / tokens_, loss);
  if (share >= kLeastShare) {
    text += fmt::format(", {} left", format_duration(seconds * (1 - share) / share));
  }
  open_ = terminal_;
  std::fprintf(stderr, terminal_ ? "\r%s\x1b[K" : "%s\n", text.c_str());
  std::fflush(stderr);
}

}  // namespace tierd
