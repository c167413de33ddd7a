// LLM in a flash. Sites that every step uses whole (attention, embeddings) stay for good (3.1, selective
// persistence). The neurons of a feed-forward network that the last k tokens used stay (3.1.2, sliding
// window), so that a token fetches only neurons that none of the k before it used. A neuron that the last k
// tokens did not use leaves at once, whether or not the room is needed. If the budget is smaller than the
// window, the oldest neurons leave first: k shrinks by itself.
//
// Networks need different room for the same k: in upper layers more neurons are active. The paper gives each
// layer the most that it needed on a sample of text (3.3, Req_i). This window counts the need of each network
// as the text goes on, and requests another split of the same bytes when the present one does not fit any
// more.
//
// A pass of one row is a token. A pass of several rows may be a token and guesses of the tokens after it
// (speculative decoding, 5.2): no neuron leaves before the number of right guesses is known, and the window
// then ends at the last right one. Without such a report the pass is one token, of many texts. The cost is
// proportional to the changes: neurons that arrived, left or were used.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tierd/policy/whole_and_part.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::integer("k", "4", 1, 1024,
                   "number of last tokens whose neurons are kept (the paper: 4 to 5; 2 for Llama-2)"),
    tierd::number("most", "1", 0, 1,
                  "maximum share of a network's neurons that is kept (the paper: 0.25 for Persimmon)"),
    tierd::flag("unused", "false",
                "keep neurons that were prefetched and not used, like those that were used"),
};

// The weight of a token in the mean of a network's need.
constexpr double kNewest = 1.0 / 16;

// Remembers when each neuron of one network was used.
class Window {
 public:
  // `unused`: a prefetched neuron that no pass has used yet stays as if the token of that time had used it.
  Window(uint32_t n, uint32_t k, bool unused)
      : k_(k), unused_(unused), last_(n, 0), here_(n, 0), used_in_(k + 1), listed_(n, 0) {}

  void landed(uint32_t neuron) {
    here_[neuron] = 1;
    arrived_.push_back(neuron);
  }
  void dropped(uint32_t neuron) { here_[neuron] = 0; }

  void touch(const tierd_set_view& used) {
    if (undecided_) decide(1, 1);
    rows_ = used.rows;
    words_ = (used.rows + 63) / 64;
    used_.clear();
    for (uint32_t i = 0; i < used.n; ++i) used_.push_back(used.idx == nullptr ? i : used.idx[i]);
    masks_.clear();
    if (used.row_mask != nullptr) masks_.assign(used.row_mask, used.row_mask + uint64_t{used.n} * words_);
    came_for_.swap(arrived_);
    arrived_.clear();
    undecided_ = true;
    if (rows_ == 1) decide(1, 1);
  }
  // `kept` of the `rows` rows of the last touch were right.
  void decide(uint32_t rows, uint32_t kept) {
    if (!undecided_) return;
    undecided_ = false;
    // Without masks, and if rows are not guesses, all rows belong to one token.
    const bool by_row = rows == rows_ && !masks_.empty();
    if (rows_ > 1 && !by_row) text_in_window_until_ = now_ + k_ + 1;
    const uint32_t tokens = rows == rows_ ? kept : 1;
    for (uint32_t token = 0; token < tokens; ++token) {
      for (size_t i = 0; i < used_.size(); ++i) {
        if (!by_row || (masks_[i * words_ + token / 64] >> (token % 64) & 1) != 0) use(used_[i]);
      }
      for (size_t i = 0; unused_ && token + 1 == tokens && i < came_for_.size(); ++i) {
        if (here_[came_for_[i]] != 0 && over(came_for_[i])) use(came_for_[i]);
      }
      measure_need();
      next_token();
    }
    // Prefetched neurons that were not used, or only by a wrong guess, leave like expired ones.
    for (const uint32_t neuron : came_for_) {
      if (over(neuron)) let_go(neuron);
    }
    came_for_.clear();
  }
  // Calls `each` for neurons that none of the last k tokens used; a neuron for which it returns false is
  // offered again later.
  template <class Each>
  void each_expired(Each each) {
    size_t stay = 0;
    for (const uint32_t neuron : leaving_) {
      listed_[neuron] = here_[neuron] != 0 && over(neuron) && !each(neuron) ? 1 : 0;
      if (listed_[neuron] != 0) leaving_[stay++] = neuron;
    }
    leaving_.resize(stay);
  }
  // Calls `each` for resident neurons, the least recently used first, until it returns false.
  template <class Each>
  void each_by_age(Each each) const {
    for (const uint32_t neuron : leaving_) {
      if (here_[neuron] != 0 && over(neuron) && !each(neuron)) return;
    }
    for (uint64_t token = now_ > k_ ? now_ - k_ : kFirst; token <= now_; ++token) {
      for (const uint32_t neuron : in(token)) {
        if (here_[neuron] != 0 && last_[neuron] == token && !each(neuron)) return;
      }
    }
    const auto leaves = [&](uint32_t neuron) {
      return here_[neuron] != 0 && over(neuron) && listed_[neuron] == 0;
    };
    for (const uint32_t neuron : came_for_) {
      if (leaves(neuron) && !each(neuron)) return;
    }
    for (const uint32_t neuron : arrived_) {
      const bool again = std::find(came_for_.begin(), came_for_.end(), neuron) != came_for_.end();
      if (leaves(neuron) && !again && !each(neuron)) return;
    }
  }
  std::vector<uint32_t> leaving_order() const {
    std::vector<uint32_t> oldest_first;
    each_by_age([&](uint32_t neuron) {
      oldest_first.push_back(neuron);
      return true;
    });
    return oldest_first;
  }
  // Return whether a token used the neuron, and for how many later tokens it stayed: k, unless it left early.
  bool was_used(uint32_t neuron) const { return last_[neuron] != 0; }
  uint64_t stayed(uint32_t neuron) const { return std::min(k_, now_ - last_[neuron] - 1); }
  // Returns the neurons used by a token and the k before it, on the mean of the latest; negative: not known
  // yet.
  double need() const { return need_; }

 private:
  static constexpr uint64_t kFirst = 1;
  std::vector<uint32_t>& in(uint64_t token) { return used_in_[token % used_in_.size()]; }
  const std::vector<uint32_t>& in(uint64_t token) const { return used_in_[token % used_in_.size()]; }

  // Returns whether none of the last k tokens has used the neuron.
  bool over(uint32_t neuron) const { return last_[neuron] == 0 || last_[neuron] + k_ < now_; }
  void let_go(uint32_t neuron) {
    if (listed_[neuron] == 0) leaving_.push_back(neuron);
    listed_[neuron] = 1;
  }
  void use(uint32_t neuron) {
    if (last_[neuron] == now_) return;
    in_window_ += over(neuron) ? 1 : 0;
    last_[neuron] = now_;
    in(now_).push_back(neuron);
  }
  // Measures only while the window holds single tokens, not a whole text that passed at once.
  void measure_need() {
    if (now_ < text_in_window_until_ || now_ - kFirst < k_) return;
    const double now = in_window_;
    need_ = need_ < 0 ? now : need_ + (now - need_) * kNewest;
  }
  // Ends the present token: neurons last used k + 1 tokens ago leave.
  void next_token() {
    ++now_;
    for (const uint32_t neuron : in(now_)) {
      if (!over(neuron)) continue;
      --in_window_;
      if (here_[neuron] != 0) let_go(neuron);
    }
    in(now_).clear();
  }

  uint64_t k_;
  bool unused_;
  uint64_t now_ = kFirst;                       // the token that is being computed
  std::vector<uint64_t> last_;                  // [n] the token that used it last; 0: none
  std::vector<uint8_t> here_;                   // [n] whether it is resident
  std::vector<std::vector<uint32_t>> used_in_;  // by the last k tokens and the present one
  std::vector<uint32_t> arrived_;               // since the last touch
  std::vector<uint32_t> leaving_;               // neurons that had expired when they were listed
  std::vector<uint8_t> listed_;                 // [n] whether it is in leaving_
  uint32_t in_window_ = 0;                      // neurons used by the last k tokens and the present one
  uint64_t text_in_window_until_ = 0;           // token
  double need_ = -1;
  // The last touch.
  bool undecided_ = false;
  std::vector<uint32_t> came_for_;  // neurons that arrived before it
  uint32_t rows_ = 0;
  uint32_t words_ = 0;
  std::vector<uint32_t> used_;
  std::vector<uint64_t> masks_;
};

class ResidencyWindow : public tierd::WholeAndPart<Window> {
 public:
  explicit ResidencyWindow(const tierd::Host& host)
      : WholeAndPart(host, false,
                     [&](uint32_t n) {
                       return Window(n, static_cast<uint32_t>(host.integer("k")), host.flag("unused"));
                     }),
        most_(host.number("most")) {}

  // Serves the sites that every step uses whole first.
  void share(uint64_t bytes, uint32_t* max_slots) {
    limit(max_slots);
    WholeAndPart::share(bytes, max_slots);
  }
  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    limit(max_slots);
    WholeAndPart::resize(bytes, max_slots, victims);
  }

  void admit(const tierd_set_view& missing, int priority, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    if (!in_part(missing.edition)) return FixedSet::admit(missing, priority, free_slots, verdict, victims);
    victims.n = 0;
    const uint32_t too_many = lacking(missing, free_slots);
    if (too_many != 0) make_room(missing.edition, std::min(too_many, victims.cap), victims);
    keep_first(missing, free_slots + victims.n, verdict);
  }

  void touch(const tierd_set_view& used) {
    if (in_part(used.edition)) parts()[used.edition].touch(used);
  }
  void rows_kept(uint32_t rows, uint32_t kept) {
    for (Window& window : parts()) window.decide(rows, kept);
  }

  void expire(uint32_t edition, tierd_victims_out& victims) {
    victims.n = 0;
    if (!in_part(edition)) return;
    Window& window = parts()[edition];
    window.each_expired([&](uint32_t neuron) {
      if (!host().evictable(edition, neuron)) return false;
      leaves(edition, neuron, victims);
      return true;
    });
    if (left_ != 0) host().metric("k", static_cast<double>(stayed_) / static_cast<double>(left_));
  }

 private:
  void limit(uint32_t* max_slots) const {
    for (uint32_t e = 0; e < host().n_editions(); ++e) {
      if (in_part(e))
        max_slots[e] = std::min(max_slots[e], static_cast<uint32_t>(most_ * host().edition(e).n));
    }
  }

  void leaves(uint32_t edition, uint32_t neuron, tierd_victims_out& victims) {
    victims.item[victims.n++] = {edition, neuron};
    if (!parts()[edition].was_used(neuron)) return;
    ++left_;
    stayed_ += parts()[edition].stayed(neuron);
  }

  // Evicts the oldest first: expired neurons, then those that leave the window next, and so on.
  void make_room(uint32_t edition, uint32_t wanted, tierd_victims_out& victims) {
    parts()[edition].each_by_age([&](uint32_t neuron) {
      if (victims.n == wanted) return false;
      if (host().evictable(edition, neuron)) leaves(edition, neuron, victims);
      return true;
    });
    falls_short();
  }

  double most_;
  uint64_t left_ = 0;    // evicted neurons that a token had used
  uint64_t stayed_ = 0;  // sum of the tokens that they stayed after their last use
};

}  // namespace

TIERD_PLUGIN(tierd::with_params(
    tierd::cache<ResidencyWindow>("residency-window", "1.0",
                                  "keeps dense weights, and the neurons of the last k tokens"),
    kParams))
