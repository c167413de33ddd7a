// Writes the events of the kernel to a file, while they happen.
//
// The file: "tierdtrc", the version, the header's size, its checksum, the header (JSON); then blocks of some
// 64 KiB of events, each with its size, the number of its events and its checksum; then an empty block, which
// distinguishes a complete trace from one that was cut off. All numbers little-endian.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/kernel/observer.h"
#include "core/kernel/post/clocks.h"
#include "core/watch/trace/codec.h"
#include "core/watch/trace/header.h"

namespace tierd {

class Recorder final : public KernelObserver {
 public:
  // Replaces a file of that name. Error: io_error.
  static Result<std::unique_ptr<Recorder>> create(const std::string& path, const TraceHeader& header,
                                                  const Clock& clock);
  ~Recorder() override;

  // Records that a strategy was replaced. `tier`: of a cache that a tier has of its own. Between two steps.
  void swapped(std::string kind, StrategyConfig strategy, std::string tier = {});
  // Ends the trace. Error: io_error, of any write since `create`.
  Status finish();

  void sequence_begins(uint64_t sequence, std::string_view label) override;
  void sequence_ends(uint64_t sequence) override;
  void fill_begins() override;
  void pass_begins(SiteId site, const Pass& pass) override;
  void step_ends(uint32_t step) override;
  void rows_kept(uint32_t rows, uint32_t kept) override;
  void drain_begins() override;
  void resize_begins(std::span<const std::optional<uint64_t>> parts) override;
  void interrupted() override;
  void activated(SiteId site, const ActiveSet& set) override;
  void looked_ahead(SiteId site, const WishList& wishes) override;
  void measured(SiteId site, const MeasuredPass& pass) override;
  void fired(SiteId site, const Fired& fired) override;
  void evicted(MemoryId memory, EditionId edition, std::span<const uint32_t> neurons) override;
  void settled(const std::function<uint64_t()>& residency) override;
  void posted(const Message& message, const Payload& payload) override;
  void turn_begins() override;
  void sent(const Message& message) override;
  void delivered(const Message& message, const Done& done, bool withdrawn) override;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Recorder(std::string path, std::FILE* file, const Clock& clock);
  void add(Event event);
  void tell_turn();
  void flush();
  void write(std::span<const std::byte> bytes);
  uint64_t since_start(uint64_t ns) const { return ns > start_ns_ ? ns - start_ns_ : 0; }

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  const Clock& clock_;
  uint64_t start_ns_;
  EventEncoder block_;
  bool turn_pending_ = false;  // turns without events are not recorded
  bool looking_ = true;
  int errno_ = 0;
};

}  // namespace tierd
