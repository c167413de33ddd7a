#include "tools/lab/reproduce/network_time.h"

#include <algorithm>

namespace tierd {

bool is_network(OpGroup group) {
  switch (group) {
    case OpGroup::up:
    case OpGroup::down:
    case OpGroup::ffn:
    case OpGroup::experts:
    case OpGroup::expert_up:
    case OpGroup::expert_down:
      return true;
    case OpGroup::embed:
    case OpGroup::qkv:
    case OpGroup::o:
    case OpGroup::head:
      break;
  }
  return false;
}

void NetworkTime::begin(const ModelPlan& plan) {
  plan_ = &plan;
  under_way_.clear();
}

void NetworkTime::delivered(const Message& message, const Done& done, bool withdrawn) {
  if (plan_ == nullptr || withdrawn) return;
  const bool carries = message.op == Op::read || message.op == Op::move;
  if (message.op != Op::run && !(carries && message.priority == Priority::demand)) return;
  if (!is_network(static_cast<OpGroup>(plan_->sites[message.site].op_group))) return;
  under_way_.emplace_back(done.start_ns, done.done_ns);
}

uint64_t NetworkTime::ns() const {
  std::vector<std::pair<uint64_t, uint64_t>> spans = under_way_;
  std::ranges::sort(spans);
  uint64_t total = 0, end = 0;
  for (const auto& [from, to] : spans) {
    if (to > end) total += to - std::max(from, end);
    end = std::max(end, to);
  }
  return total;
}

}  // namespace tierd
