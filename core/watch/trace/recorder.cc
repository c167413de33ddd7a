#include "core/watch/trace/recorder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/checksum.h"
#include "core/base/time.h"
#include "core/watch/trace/file_format.h"

namespace tierd {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::create(const std::string& path, const TraceHeader& header,
                                                   const Clock& clock) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return Error{Code::io_error, path, fmt::format("cannot be written: {}", std::strerror(errno))};
  }
  std::unique_ptr<Recorder> recorder(new Recorder(path, file, clock));
  const std::string text = header_json(header);
  TraceFileHead head;
  head.header_bytes = static_cast<uint32_t>(text.size());
  head.header_checksum = checksum(text);
  recorder->write(bytes_of(head));
  recorder->write(std::as_bytes(std::span(text)));
  return recorder;
}

Recorder::Recorder(std::string path, std::FILE* file, const Clock& clock)
    : path_(std::move(path)), file_(file), clock_(clock), start_ns_(clock.now_ns()) {}

Recorder::~Recorder() = default;

void Recorder::write(std::span<const std::byte> bytes) {
  if (errno_ == 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) errno_ = errno;
}

void Recorder::flush() {
  TraceBlockHead head;
  head.bytes = static_cast<uint32_t>(block_.bytes().size());
  head.events = block_.events();
  head.checksum = checksum(block_.bytes());
  write(bytes_of(head));
  write(block_.bytes());
  block_.clear();
}

Status Recorder::finish() {
  looking_ = false;
  if (block_.events() != 0) flush();
  write(bytes_of(TraceBlockHead{}));
  if (std::fflush(file_.get()) != 0 && errno_ == 0) errno_ = errno;
  if (errno_ == 0) return {};
  return Error{Code::io_error, path_,
               fmt::format("the trace could not be written: {}", std::strerror(errno_))};
}

void Recorder::add(Event event) {
  if (!looking_) return;
  event.ns = since_start(clock_.now_ns());
  block_.add(event);
  if (block_.full()) flush();
}

void Recorder::swapped(std::string kind, StrategyConfig strategy, std::string tier) {
  add({0, Swapped{std::move(kind), std::move(strategy), std::move(tier)}});
}
void Recorder::sequence_begins(uint64_t sequence, std::string_view label) {
  add({0, SequenceBegins{sequence, std::string(label)}});
}
void Recorder::sequence_ends(uint64_t sequence) {
  add({0, SequenceEnds{sequence}});
}
void Recorder::fill_begins() {
  add({0, FillBegins{}});
}
void Recorder::pass_begins(SiteId site, const Pass& pass) {
  add({0, pass_event(site, pass)});
}
void Recorder::step_ends(uint32_t step) {
  add({0, StepEnds{step}});
}
void Recorder::rows_kept(uint32_t rows, uint32_t kept) {
  add({0, RowsKept{rows, kept}});
}
void Recorder::drain_begins() {
  add({0, DrainBegins{}});
}
void Recorder::resize_begins(std::span<const std::optional<uint64_t>> parts) {
  add({0, Resized{{parts.begin(), parts.end()}}});
}
void Recorder::interrupted() {
  add({0, Interrupted{}});
  looking_ = false;
}
void Recorder::activated(SiteId site, const ActiveSet& set) {
  add({0, activated_event(site, set)});
}
void Recorder::looked_ahead(SiteId site, const WishList& wishes) {
  add({0, looked_ahead_event(site, wishes)});
}
void Recorder::measured(SiteId site, const MeasuredPass& pass) {
  add({0, measured_event(site, pass.active)});
}
void Recorder::fired(SiteId site, const Fired& fired) {
  add({0, HasFired{site, fired.neurons, fired.counts}});
}
void Recorder::evicted(MemoryId memory, EditionId edition, std::span<const uint32_t> neurons) {
  add({0, Evicted{memory, edition, {neurons.begin(), neurons.end()}}});
}
void Recorder::settled(const std::function<uint64_t()>& residency) {
  add({0, Settled{residency()}});
}
void Recorder::posted(const Message& message, const Payload& payload) {
  add({0, Posted{message,
                 {payload.units.begin(), payload.units.end()},
                 {payload.sites.begin(), payload.sites.end()}}});
}
void Recorder::turn_begins() {
  turn_pending_ = true;
}
void Recorder::tell_turn() {
  if (std::exchange(turn_pending_, false)) add({0, TurnBegins{}});
}
void Recorder::sent(const Message& message) {
  tell_turn();
  add({0, Sent{message.id}});
}
void Recorder::delivered(const Message&, const Done& done, bool withdrawn) {
  tell_turn();
  Delivered delivered{done, withdrawn};
  delivered.done.start_ns = since_start(done.start_ns);
  delivered.done.done_ns = since_start(done.done_ns);
  add({0, std::move(delivered)});
}

}  // namespace tierd
