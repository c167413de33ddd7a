#include "core/trace/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <type_traits>

namespace tierd {
namespace {

constexpr uint64_t kLongestText = 1u << 16;  // a longer one is not believed

class Out {
 public:
  explicit Out(std::vector<std::byte>& bytes) : bytes_(bytes) {}
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::byte>(value | 0x80));
    bytes_.push_back(static_cast<std::byte>(value));
  }
  void text(std::string_view value) {
    number(value.size());
    const auto* data = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), data, data + value.size());
  }

 private:
  std::vector<std::byte>& bytes_;
};

// Once something was wrong, everything that follows is zero.
class In {
 public:
  explicit In(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool good() const { return good_; }
  // Entries of lists that may still be believed: a run of them costs a damaged file two bytes, us its length.
  uint64_t most_listed() const { return most_listed_; }
  void listed(uint64_t count) { most_listed_ -= count; }
  bool at_end() const { return at_ == bytes_.size(); }
  void fail() { good_ = false; }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && good_; shift += 7) {
      if (at_ == bytes_.size()) break;
      const auto byte = static_cast<uint64_t>(bytes_[at_++]);
      if (shift == 63 && byte > 1) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    good_ = false;
    return 0;
  }
  // Within 0 and `most`.
  uint64_t number(uint64_t most) {
    const uint64_t value = number();
    if (value > most) good_ = false;
    return good_ ? value : 0;
  }
  std::string text() {
    const uint64_t size = number(kLongestText);
    if (size > bytes_.size() - at_) good_ = false;  // what is left behind the number itself
    if (!good_) return {};
    std::string value(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  uint64_t most_listed_ = kMostListedInBlock;
  bool good_ = true;
};

constexpr uint64_t kMostMemories = 16;

uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
int64_t unzigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// The fields of each struct, once for both directions.
template <class M, class F>
void each_field(M& m, F&& f) requires std::is_same_v<std::remove_const_t<M>, Message> {
  f(m.id.slot), f(m.id.generation), f(m.op), f(m.priority), f(m.lane), f(m.flags), f(m.agent);
  f(m.step), f(m.expires_step), f(m.site), f(m.edition), f(m.rows), f(m.memory), f(m.from);
  f(m.about.slot), f(m.about.generation), f(m.n_units), f(m.unit_bytes), f(m.n_takes), f(m.n_gives);
  f(m.n_sites);
}
template <class D, class F>
void each_field(D& d, F&& f) requires std::is_same_v<std::remove_const_t<D>, Done> {
  f(d.id.slot), f(d.id.generation), f(d.status), f(d.lane), f(d.error), f(d.n_done), f(d.first_bad),
      f(d.bad_extent);
  f(d.reads), f(d.bytes), f(d.start_ns), f(d.done_ns);
}

constexpr uint64_t most_of(Op) {
  return static_cast<uint64_t>(Op::cancel);
}
constexpr uint64_t most_of(Priority) {
  return kPriorities - 1;
}
constexpr uint64_t most_of(DoneStatus) {
  return static_cast<uint64_t>(DoneStatus::lost);
}

// A mask of the fields that differ from those of a fresh struct, then these.
template <class S>
void put(Out& out, const S& value) {
  static const S fresh{};
  std::vector<uint64_t> standard;
  each_field(fresh, [&](const auto& field) { standard.push_back(static_cast<uint64_t>(field)); });
  uint64_t mask = 0;
  size_t i = 0;
  each_field(value, [&](const auto& field) {
    mask |= uint64_t{static_cast<uint64_t>(field) != standard[i]} << i;
    ++i;
  });
  out.number(mask);
  i = 0;
  each_field(value, [&](const auto& field) {
    if ((mask >> i++ & 1) != 0) out.number(static_cast<uint64_t>(field));
  });
}
template <class S>
S get(In& in) {
  S value{};
  const uint64_t mask = in.number();
  size_t i = 0;
  each_field(value, [&](auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    if ((mask >> i++ & 1) == 0) return;
    if constexpr (std::is_enum_v<Field>) {
      field = static_cast<Field>(in.number(most_of(Field{})));
    } else {
      field = static_cast<Field>(in.number(std::numeric_limits<Field>::max()));
    }
  });
  if (mask >> i != 0) in.fail();
  return value;
}

// (value, value, …) of K numbers each, as runs: how many more, the step of each number.
template <size_t K>
using Row = std::array<uint32_t, K>;

template <size_t K, class At>
void put_rows(Out& out, size_t count, At at) {
  out.number(count);
  Row<K> last{};
  for (size_t i = 0; i < count;) {
    std::array<int64_t, K> step{};
    const auto step_to = [&](const Row<K>& from, const Row<K>& to) {
      std::array<int64_t, K> d{};
      for (size_t k = 0; k < K; ++k) d[k] = int64_t{to[k]} - int64_t{from[k]};
      return d;
    };
    step = step_to(last, at(i));
    size_t run = 0;
    for (last = at(i++); i < count && step_to(last, at(i)) == step; ++run) last = at(i++);
    out.number(run);
    for (const int64_t d : step) out.number(zigzag(d));
  }
}
template <size_t K, class Add>
void get_rows(In& in, Add add) {
  const uint64_t count = in.number(in.most_listed());
  in.listed(count);
  Row<K> last{};
  for (uint64_t i = 0; i < count && in.good();) {
    const uint64_t run = in.number(count - i - 1);
    std::array<int64_t, K> step{};
    for (int64_t& d : step) d = unzigzag(in.number(uint64_t{UINT32_MAX} * 2 + 1));
    for (uint64_t r = 0; r <= run && in.good(); ++r, ++i) {
      for (size_t k = 0; k < K; ++k) {
        const int64_t next = int64_t{last[k]} + step[k];
        if (next < 0 || next > UINT32_MAX) in.fail();
        last[k] = static_cast<uint32_t>(next);
      }
      if (in.good()) add(last);
    }
  }
}

void put(Out& out, const std::vector<uint32_t>& numbers) {
  put_rows<1>(out, numbers.size(), [&](size_t i) { return Row<1>{numbers[i]}; });
}
std::vector<uint32_t> get_numbers(In& in) {
  std::vector<uint32_t> numbers;
  get_rows<1>(in, [&](const Row<1>& row) { numbers.push_back(row[0]); });
  return numbers;
}
void put(Out& out, const std::optional<std::vector<uint32_t>>& neurons) {
  out.number(neurons ? 1 : 0);
  if (neurons) put(out, *neurons);
}
std::optional<std::vector<uint32_t>> get_optional_neurons(In& in) {
  if (in.number(1) == 0) return std::nullopt;
  return get_numbers(in);
}

// The bits of each score.
void put(Out& out, const std::vector<float>& scores) {
  out.number(scores.size());
  for (const float score : scores) out.number(std::bit_cast<uint32_t>(score));
}
std::vector<float> get_scores(In& in) {
  const uint64_t count = in.number(in.most_listed());
  in.listed(count);
  std::vector<float> scores;
  for (uint64_t i = 0; i < count && in.good(); ++i)
    scores.push_back(std::bit_cast<float>(static_cast<uint32_t>(in.number(UINT32_MAX))));
  return scores;
}

void put(Out&, const FillBegins&) {}
void get(In&, FillBegins&) {}
void put(Out& out, const PassBegins& e) {
  out.number(e.site), out.number(e.step), out.number(e.rows), out.number(e.bypass_caches ? 1 : 0);
  put(out, e.given);
  put(out, e.sequences);
}
void get(In& in, PassBegins& e) {
  e.site = static_cast<SiteId>(in.number(UINT32_MAX));
  e.step = static_cast<uint32_t>(in.number(UINT32_MAX));
  e.rows = static_cast<uint16_t>(in.number(UINT16_MAX));
  e.bypass_caches = in.number(1) != 0;
  e.given = get_optional_neurons(in);
  e.sequences = get_numbers(in);
}
void put(Out& out, const SequenceBegins& e) {
  out.number(e.sequence), out.text(e.label);
}
void get(In& in, SequenceBegins& e) {
  e.sequence = in.number();
  e.label = in.text();
}
void put(Out& out, const SequenceEnds& e) {
  out.number(e.sequence);
}
void get(In& in, SequenceEnds& e) {
  e.sequence = in.number();
}
void put(Out& out, const StepEnds& e) {
  out.number(e.step);
}
void get(In& in, StepEnds& e) {
  e.step = static_cast<uint32_t>(in.number(UINT32_MAX));
}
void put(Out& out, const RowsKept& e) {
  out.number(e.rows), out.number(e.kept);
}
void get(In& in, RowsKept& e) {
  e.rows = static_cast<uint32_t>(in.number(UINT16_MAX));
  e.kept = static_cast<uint32_t>(in.number(e.rows));
}
void put(Out&, const DrainBegins&) {}
void get(In&, DrainBegins&) {}
void put(Out& out, const Resized& e) {
  out.number(e.parts.size());
  for (const std::optional<uint64_t>& part : e.parts) {
    out.number(part.has_value() ? 1 : 0);
    if (part) out.number(*part);
  }
}
void get(In& in, Resized& e) {
  for (uint64_t n = in.number(kMostMemories); n > 0 && in.good(); --n) {
    std::optional<uint64_t>& part = e.parts.emplace_back();
    if (in.number(1) != 0) part = in.number();
  }
}
void put(Out& out, const Swapped& e) {
  out.text(e.kind), out.text(e.tier), out.text(e.strategy.name), out.text(e.strategy.tensors);
  out.number(e.strategy.settings.size());
  for (const Setting& setting : e.strategy.settings) {
    out.text(setting.key);
    out.number(setting.value.index());
    if (const auto* integer = std::get_if<int64_t>(&setting.value)) out.number(zigzag(*integer));
    if (const auto* number = std::get_if<double>(&setting.value))
      out.number(std::bit_cast<uint64_t>(*number));
    if (const auto* flag = std::get_if<bool>(&setting.value)) out.number(*flag ? 1 : 0);
    if (const auto* text = std::get_if<std::string>(&setting.value)) out.text(*text);
  }
}
void get(In& in, Swapped& e) {
  e.kind = in.text();
  e.tier = in.text();
  e.strategy.name = in.text();
  e.strategy.tensors = in.text();
  const uint64_t count = in.number(kLongestText);
  for (uint64_t i = 0; i < count && in.good(); ++i) {
    Setting& setting = e.strategy.settings.emplace_back();
    setting.key = in.text();
    setting.origin = "trace";
    switch (in.number(3)) {
      case 0:
        setting.value = unzigzag(in.number());
        break;
      case 1:
        setting.value = std::bit_cast<double>(in.number());
        break;
      case 2:
        setting.value = in.number(1) != 0;
        break;
      default:
        setting.value = in.text();
    }
  }
}
void put(Out&, const Interrupted&) {}
void get(In&, Interrupted&) {}
void put(Out& out, const Activated& e) {
  out.number(e.site);
  put(out, e.neurons);
  out.number(e.by_row ? 1 : 0);
  put(out, e.scores);
}
void get(In& in, Activated& e) {
  e.site = static_cast<SiteId>(in.number(UINT32_MAX));
  e.neurons = get_optional_neurons(in);
  e.by_row = in.number(1) != 0;
  e.scores = get_scores(in);
}
void put(Out& out, const LookedAhead& e) {
  out.number(e.site);
  out.number(e.wishes.size());
  for (const LookedAhead::Wish& wish : e.wishes) {
    out.number(wish.site), out.number(wish.distance);
    put(out, wish.neurons);
    out.number(wish.memory), out.number(wish.edition);
    put(out, wish.scores);
  }
}
void get(In& in, LookedAhead& e) {
  e.site = static_cast<SiteId>(in.number(UINT32_MAX));
  const uint64_t count = in.number(in.most_listed());
  in.listed(count);
  for (uint64_t i = 0; i < count && in.good(); ++i) {
    LookedAhead::Wish& wish = e.wishes.emplace_back();
    wish.site = static_cast<SiteId>(in.number(UINT32_MAX));
    wish.distance = static_cast<uint32_t>(in.number(UINT32_MAX));
    wish.neurons = get_optional_neurons(in);
    wish.memory = static_cast<uint32_t>(in.number(UINT32_MAX));
    wish.edition = static_cast<uint32_t>(in.number(UINT32_MAX));
    wish.scores = get_scores(in);
  }
}
void put(Out& out, const Measured& e) {
  out.number(e.site);
  put(out, e.neurons);
}
void get(In& in, Measured& e) {
  e.site = static_cast<SiteId>(in.number(UINT32_MAX));
  e.neurons = get_numbers(in);
}
void put(Out& out, const HasFired& e) {
  out.number(e.site);
  put(out, e.neurons);
  for (const uint32_t count : e.counts) out.number(count);
}
void get(In& in, HasFired& e) {
  e.site = static_cast<SiteId>(in.number(UINT32_MAX));
  e.neurons = get_numbers(in);
  in.listed(e.neurons.size());
  for (size_t i = 0; i < e.neurons.size() && in.good(); ++i)
    e.counts.push_back(static_cast<uint32_t>(in.number(UINT32_MAX)));
}
void put(Out& out, const Evicted& e) {
  out.number(e.memory), out.number(e.edition);
  put(out, e.neurons);
}
void get(In& in, Evicted& e) {
  e.memory = static_cast<MemoryId>(in.number(UINT16_MAX));
  e.edition = static_cast<EditionId>(in.number(UINT32_MAX));
  e.neurons = get_numbers(in);
}
void put(Out& out, const Settled& e) {
  out.number(e.residency);
}
void get(In& in, Settled& e) {
  e.residency = in.number();
}
void put(Out& out, const Posted& e) {
  put(out, e.message);
  put_rows<2>(out, e.units.size(), [&](size_t i) { return Row<2>{e.units[i].unit, e.units[i].place}; });
  put_rows<4>(out, e.sites.size(), [&](size_t i) {
    const SiteRun& run = e.sites[i];
    return Row<4>{run.site, run.edition, run.n_units, run.flags};
  });
}
void get(In& in, Posted& e) {
  e.message = get<Message>(in);
  get_rows<2>(in, [&](const Row<2>& row) { e.units.push_back({row[0], row[1]}); });
  get_rows<4>(in, [&](const Row<4>& row) { e.sites.push_back({row[0], row[1], row[2], row[3]}); });
}
void put(Out&, const TurnBegins&) {}
void get(In&, TurnBegins&) {}
void put(Out& out, const Sent& e) {
  out.number(e.id.slot), out.number(e.id.generation);
}
void get(In& in, Sent& e) {
  e.id.slot = static_cast<uint32_t>(in.number(UINT32_MAX));
  e.id.generation = static_cast<uint32_t>(in.number(UINT32_MAX));
}
void put(Out& out, const Delivered& e) {
  put(out, e.done);
  out.number(e.withdrawn ? 1 : 0);
}
void get(In& in, Delivered& e) {
  e.done = get<Done>(in);
  e.withdrawn = in.number(1) != 0;
}

// The kind of an event is its place in the variant: kinds are only ever added at its end.
template <size_t I = 0>
void get_kind(In& in, uint64_t kind, Event& event) {
  if constexpr (I < std::variant_size_v<decltype(event.what)>) {
    if (kind != I) return get_kind<I + 1>(in, kind, event);
    get(in, event.what.template emplace<I>());
  } else {
    in.fail();
  }
}

}  // namespace

void EventEncoder::add(const Event& event) {
  Out out(bytes_);
  out.number(event.what.index());
  out.number(event.ns - last_ns_);
  last_ns_ = event.ns;
  std::visit([&](const auto& what) { put(out, what); }, event.what);
  if (const auto* posted = event.as<Posted>()) listed_ += posted->units.size() + posted->sites.size();
  if (const auto* activated = event.as<Activated>()) {
    listed_ += activated->scores.size() + (activated->neurons ? activated->neurons->size() : 0);
  }
  if (const auto* evicted = event.as<Evicted>()) listed_ += evicted->neurons.size();
  if (const auto* measured = event.as<Measured>()) listed_ += measured->neurons.size();
  if (const auto* fired = event.as<HasFired>()) listed_ += 2 * fired->neurons.size();
  if (const auto* ahead = event.as<LookedAhead>()) {
    listed_ += ahead->wishes.size();
    for (const auto& wish : ahead->wishes)
      listed_ += wish.scores.size() + (wish.neurons ? wish.neurons->size() : 0);
  }
  if (const auto* pass = event.as<PassBegins>()) {
    listed_ += pass->sequences.size() + (pass->given ? pass->given->size() : 0);
  }
  ++events_;
}

void EventEncoder::clear() {
  bytes_.clear();
  last_ns_ = 0;
  listed_ = 0;
  events_ = 0;
}

Result<std::vector<Event>> decode_events(std::span<const std::byte> block, const std::string& origin) {
  std::vector<Event> events;
  In in(block);
  uint64_t ns = 0;
  while (!in.at_end()) {
    if (events.size() == kMostEventsInBlock)
      return Error{Code::corrupt, origin, fmt::format("more than {} events in a block", kMostEventsInBlock)};
    Event& event = events.emplace_back();
    const uint64_t kind = in.number();
    ns += in.number();
    event.ns = ns;
    get_kind(in, kind, event);
    if (!in.good()) {
      return Error{Code::corrupt, origin,
                   fmt::format("event {} of the block makes no sense", events.size() - 1)};
    }
  }
  return events;
}

}  // namespace tierd
