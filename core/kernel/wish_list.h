// The wishes of one plugin call, copied by tierd_host::wish, so that the plugin's memory may go.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "core/kernel/site.h"
#include "tierd/status.h"
#include "tierd/views.h"

namespace tierd {

class WishList {
 public:
  struct Wish {
    uint32_t memory = TIERD_NO_MEMORY;
    uint32_t site = TIERD_NO_SITE;
    uint32_t distance = 0;
    uint32_t edition = TIERD_NO_EDITION;
    bool all = false;    // all neurons of the site, or of the edition; else the list:
    uint32_t first = 0;  // index of its first neuron in neurons_
    uint32_t n = 0;
    bool scored = false;
  };
  // A longer list than any site has neurons is not copied; the check of the wish sees its length.
  explicit WishList(uint32_t most_neurons = 0) : most_neurons_(most_neurons) {}

  // Wishes are accepted between open and close.
  void open() {
    wishes_.clear();
    neurons_.clear();
    scores_.clear();
    open_ = true;
  }
  void close() { open_ = false; }

  // Copies a wish. TIERD_E_INVALID: called outside open and close, or the wish has a size that this host does
  // not know. TIERD_E_NO_SPACE: too many wishes.
  int add(const tierd_wish& wish) {
    if (!open_ || wish.size < offsetof(tierd_wish, score)) return TIERD_E_INVALID;
    if (wishes_.size() == kMostWishes) return TIERD_E_NO_SPACE;
    Wish& own = wishes_.emplace_back(
        Wish{wish.memory, wish.site, wish.distance, wish.edition, wish.idx == nullptr, 0, wish.n, false});
    own.first = static_cast<uint32_t>(neurons_.size());
    if (own.all || wish.n > most_neurons_) return TIERD_OK;
    neurons_.insert(neurons_.end(), wish.idx, wish.idx + wish.n);
    own.scored = wish.size >= sizeof(tierd_wish) && wish.score != nullptr;
    scores_.resize(neurons_.size(), 0);
    if (own.scored) std::copy_n(wish.score, wish.n, scores_.begin() + own.first);
    return TIERD_OK;
  }

  std::span<const Wish> all() const { return wishes_; }
  bool empty() const { return wishes_.empty(); }
  // Returns the neurons that a checked wish lists; the wish is not for all.
  std::span<const uint32_t> neurons(const Wish& wish) const {
    return std::span(neurons_).subspan(wish.first, wish.n);
  }
  // Returns their scores; empty: it has none.
  std::span<const float> scores(const Wish& wish) const {
    return std::span(scores_).subspan(wish.first, wish.scored ? wish.n : 0);
  }

 private:
  static constexpr size_t kMostWishes = 4096;

  uint32_t most_neurons_;
  bool open_ = false;
  std::vector<Wish> wishes_;
  std::vector<uint32_t> neurons_;
  std::vector<float> scores_;  // of neurons_
};

}  // namespace tierd
