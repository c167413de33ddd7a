#include "core/watch/trace/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "core/watch/trace/trace_bytes.h"

namespace tierd {
namespace {

constexpr uint64_t kMostMemories = 16;

// The fields of each struct, for both directions.
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

// Writes a mask of the fields that differ from a default struct, then these fields.
template <class S>
void put(TraceOut& out, const S& value) {
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
S get(TraceIn& in) {
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

void put(TraceOut& out, const std::optional<std::vector<uint32_t>>& neurons) {
  out.number(neurons ? 1 : 0);
  if (neurons) put_numbers(out, *neurons);
}
std::optional<std::vector<uint32_t>> get_optional_neurons(TraceIn& in) {
  if (in.number(1) == 0) return std::nullopt;
  return get_numbers(in);
}

// Writes the bits of each score.
void put(TraceOut& out, const std::vector<float>& scores) {
  out.number(scores.size());
  for (const float score : scores) out.number(std::bit_cast<uint32_t>(score));
}
std::vector<float> get_scores(TraceIn& in) {
  const uint64_t count = in.number(in.most_listed());
  in.listed(count);
  std::vector<float> scores;
  for (uint64_t i = 0; i < count && in.good(); ++i)
    scores.push_back(std::bit_cast<float>(static_cast<uint32_t>(in.number(UINT32_MAX))));
  return scores;
}

void put(TraceOut&, const FillBegins&) {}
void get(TraceIn&, FillBegins&) {}
void put(TraceOut& out, const PassBegins& e) {
  out.number(e.site), out.number(e.step), out.number(e.rows), out.number(e.bypass_caches ? 1 : 0);
  put(out, e.given);
  put_numbers(out, e.sequences);
}
void get(TraceIn& in, PassBegins& e) {
  e.site = static_cast<SiteId>(in.number(UINT32_MAX));
  e.step = static_cast<uint32_t>(in.number(UINT32_MAX));
  e.rows = static_cast<uint16_t>(in.number(UINT16_MAX));
  e.bypass_caches = in.number(1) != 0;
  e.given = get_optional_neurons(in);
  e.sequences = get_numbers(in);
}
void put(TraceOut& out, const SequenceBegins& e) {
  out.number(e.sequence), out.text(e.label);
}
void get(TraceIn& in, SequenceBegins& e) {
  e.sequence = in.number();
  e.label = in.text();
}
void put(TraceOut& out, const SequenceEnds& e) {
  out.number(e.sequence);
}
void get(TraceIn& in, SequenceEnds& e) {
  e.sequence = in.number();
}
void put(TraceOut& out, const StepEnds& e) {
  out.number(e.step);
}
void get(TraceIn& in, StepEnds& e) {
  e.step = static_cast<uint32_t>(in.number(UINT32_MAX));
}
void put(TraceOut& out, const RowsKept& e) {
  out.number(e.rows), out.number(e.kept);
}
void get(TraceIn& in, RowsKept& e) {
  e.rows = static_cast<uint32_t>(in.number(UINT16_MAX));
  e.kept = static_cast<uint32_t>(in.number(e.rows));
}
void put(TraceOut&, const DrainBegins&) {}
void get(TraceIn&, DrainBegins&) {}
void put(TraceOut& out, const Resized& e) {
  out.number(e.parts.size());
  for (const std::optional<uint64_t>& part : e.parts) {
    out.number(part.has_value() ? 1 : 0);
    if (part) out.number(*part);
  }
}
void get(TraceIn& in, Resized& e) {
  for (uint64_t n = in.number(kMostMemories); n > 0 && in.good(); --n) {
    std::optional<uint64_t>& part = e.parts.emplace_back();
    if (in.number(1) != 0) part = in.number();
  }
}
void put(TraceOut& out, const Swapped& e) {
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
void get(TraceIn& in, Swapped& e) {
  e.kind = in.text();
  e.tier = in.text();
  e.strategy.name = in.text();
  e.strategy.tensors = in.text();
  const uint64_t count = in.number(kLongestTraceText);
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
void put(TraceOut&, const Interrupted&) {}
void get(TraceIn&, Interrupted&) {}
void put(TraceOut& out, const Activated& e) {
  out.number(e.site);
  put(out, e.neurons);
  out.number(e.by_row ? 1 : 0);
  put(out, e.scores);
}
void get(TraceIn& in, Activated& e) {
  e.site = static_cast<SiteId>(in.number(UINT32_MAX));
  e.neurons = get_optional_neurons(in);
  e.by_row = in.number(1) != 0;
  e.scores = get_scores(in);
}
void put(TraceOut& out, const LookedAhead& e) {
  out.number(e.site);
  out.number(e.wishes.size());
  for (const LookedAhead::Wish& wish : e.wishes) {
    out.number(wish.site), out.number(wish.distance);
    put(out, wish.neurons);
    out.number(wish.memory), out.number(wish.edition);
    put(out, wish.scores);
  }
}
void get(TraceIn& in, LookedAhead& e) {
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
void put(TraceOut& out, const Measured& e) {
  out.number(e.site);
  put_numbers(out, e.neurons);
}
void get(TraceIn& in, Measured& e) {
  e.site = static_cast<SiteId>(in.number(UINT32_MAX));
  e.neurons = get_numbers(in);
}
void put(TraceOut& out, const HasFired& e) {
  out.number(e.site);
  put_numbers(out, e.neurons);
  for (const uint32_t count : e.counts) out.number(count);
}
void get(TraceIn& in, HasFired& e) {
  e.site = static_cast<SiteId>(in.number(UINT32_MAX));
  e.neurons = get_numbers(in);
  in.listed(e.neurons.size());
  for (size_t i = 0; i < e.neurons.size() && in.good(); ++i)
    e.counts.push_back(static_cast<uint32_t>(in.number(UINT32_MAX)));
}
void put(TraceOut& out, const Evicted& e) {
  out.number(e.memory), out.number(e.edition);
  put_numbers(out, e.neurons);
}
void get(TraceIn& in, Evicted& e) {
  e.memory = static_cast<MemoryId>(in.number(UINT16_MAX));
  e.edition = static_cast<EditionId>(in.number(UINT32_MAX));
  e.neurons = get_numbers(in);
}
void put(TraceOut& out, const Settled& e) {
  out.number(e.residency);
}
void get(TraceIn& in, Settled& e) {
  e.residency = in.number();
}
void put(TraceOut& out, const Posted& e) {
  put(out, e.message);
  put_rows<2>(out, e.units.size(), [&](size_t i) { return Row<2>{e.units[i].unit, e.units[i].place}; });
  put_rows<4>(out, e.sites.size(), [&](size_t i) {
    const SiteRun& run = e.sites[i];
    return Row<4>{run.site, run.edition, run.n_units, run.flags};
  });
}
void get(TraceIn& in, Posted& e) {
  e.message = get<Message>(in);
  get_rows<2>(in, [&](const Row<2>& row) { e.units.push_back({row[0], row[1]}); });
  get_rows<4>(in, [&](const Row<4>& row) {
    if (e.sites.size() == std::numeric_limits<decltype(e.message.n_sites)>::max()) return in.fail();
    e.sites.push_back({row[0], row[1], row[2], row[3]});
  });
}
void put(TraceOut&, const TurnBegins&) {}
void get(TraceIn&, TurnBegins&) {}
void put(TraceOut& out, const Sent& e) {
  out.number(e.id.slot), out.number(e.id.generation);
}
void get(TraceIn& in, Sent& e) {
  e.id.slot = static_cast<uint32_t>(in.number(UINT32_MAX));
  e.id.generation = static_cast<uint32_t>(in.number(UINT32_MAX));
}
void put(TraceOut& out, const Delivered& e) {
  put(out, e.done);
  out.number(e.withdrawn ? 1 : 0);
}
void get(TraceIn& in, Delivered& e) {
  e.done = get<Done>(in);
  e.withdrawn = in.number(1) != 0;
}

// The kind of an event is its index in the variant: new kinds are only added at its end.
template <size_t I = 0>
void get_kind(TraceIn& in, uint64_t kind, Event& event) {
  if constexpr (I < std::variant_size_v<decltype(event.what)>) {
    if (kind != I) return get_kind<I + 1>(in, kind, event);
    get(in, event.what.template emplace<I>());
  } else {
    in.fail();
  }
}

}  // namespace

void EventEncoder::add(const Event& event) {
  TraceOut out(bytes_);
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

Result<std::vector<Event>> decode_events(std::span<const std::byte> block, const std::string& origin,
                                         uint64_t most_listed) {
  std::vector<Event> events;
  TraceIn in(block, most_listed);
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
