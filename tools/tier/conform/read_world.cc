// The world of an agent that reads: a file with extents and checksums, good and bad.
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/align.h"
#include "core/base/checksum.h"
#include "tools/tier/conform/agent_worlds.h"
#include "tools/tier/conform/placed_world.h"

namespace tierd {
namespace {

// A temporary file of extents, some adjacent, some with gaps between them: whole blocks, or packed.
class ReadWorld final : public PlacedWorld {
 public:
  static Result<std::unique_ptr<AgentWorld>> blocks(const AgentChoice& choice, uint64_t seed) {
    return create(choice, seed, kBlock);
  }
  static Result<std::unique_ptr<AgentWorld>> packed(const AgentChoice& choice, uint64_t seed) {
    return create(choice, seed, kPlaceUnit);
  }
  ~ReadWorld() override {
    end();
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  Request work() override {
    std::vector<uint32_t> extents;
    uint32_t extent = random_.below(kSound);
    for (uint32_t n = random_.below(kMostUnits + 1); n > 0; --n) {
      extents.push_back(extent);
      extent = random_.below(3) != 0 ? (extent + 1) % kSound : random_.below(kSound);
    }
    Request request = read(extents);
    request.message.priority = static_cast<Priority>(random_.below(kPriorities));
    return request;
  }

  std::vector<Bad> bad() override {
    std::vector<Bad> all;
    all.push_back({"a wrong checksum", read({0, 1, kSpoilt, 2}), DoneStatus::corrupt, 2});
    all.push_back({"an extent behind the end of the file", read({3, kBehind}), DoneStatus::io_error, 1});
    all.push_back({"an extent that does not exist", read({kBehind + 7}), DoneStatus::invalid_argument, 0});
    if (unit_ != kBlock) return all;
    Request unaligned = read({0, 1});
    const uint32_t place = unaligned.message.id.slot;
    places_.units(place)[1].place += 1;
    places_.seal(place);
    all.push_back({"a destination that is not aligned", unaligned, DoneStatus::invalid_argument, 1});
    return all;
  }

  // Checks that n_done units are at their destinations, and that no byte beside the destinations was written.
  std::string completed(const Message& message, const Done& done) override {
    const uint32_t place = message.id.slot;
    std::string wrong;
    if (message.op == Op::read && done.status <= DoneStatus::cancelled)
      wrong = look(place, places_.units(place), done);
    places_.release(place);
    return wrong;
  }

 private:
  static constexpr uint64_t kBlock = kDirectIoAlignment;
  static constexpr uint32_t kSound = 64;  // extents that can be read
  static constexpr uint32_t kSpoilt = kSound;
  static constexpr uint32_t kBehind = kSound + 1;
  static constexpr uint32_t kMostUnits = 8;
  static constexpr uint32_t kMostBlocks = 4;  // of an extent
  static constexpr uint64_t kPlaceBytes = kBlock * (1 + kMostUnits * (kMostBlocks + 2));
  static constexpr uint32_t kLandingPlaces = 40;
  static constexpr uint64_t kBounceBytes = 10 * kBlock;  // less than a message

  ReadWorld(uint64_t seed, uint64_t unit) : PlacedWorld(seed, kPlaceBytes), unit_(unit) {}

  // All offsets in the file and in memory are multiples of `unit`.
  static Result<std::unique_ptr<AgentWorld>> create(const AgentChoice& choice, uint64_t seed, uint64_t unit) {
    std::unique_ptr<ReadWorld> world(new ReadWorld(seed, unit));
    TIERD_TRY(world->write_file());
    world->pools_.add_memory(kMemory, world->places_.memory());
    AgentContext context{
        .number = kAgent, .table = "tiers.flash", .pools = world->pools_, .clock = world->clock_};
    // Only some of the destinations: reads also go elsewhere.
    context.read = {.path = world->path_,
                    .extents = world->table_,
                    .landing = world->places_.memory().first(kLandingPlaces * kPlaceBytes),
                    .bounce_bytes = unit == kBlock ? 0 : kBounceBytes};
    TIERD_TRY(world->make(choice, context));
    return std::unique_ptr<AgentWorld>(std::move(world));
  }

  Status write_file() {
    const auto most_units = static_cast<uint32_t>(kMostBlocks * kBlock / unit_);
    for (uint32_t i = 0; i <= kSpoilt; ++i) {
      if (random_.below(4) == 0) content_.resize(content_.size() + unit_);  // a gap
      const uint64_t bytes = unit_ * (1 + random_.below(most_units));
      table_.push_back({content_.size(), bytes, 0});
      content_.resize(content_.size() + bytes);
    }
    content_.resize(align_up(content_.size(), kBlock));
    for (uint64_t at = 0; at < content_.size(); at += sizeof(uint64_t)) {
      const uint64_t word = random_.next();
      std::memcpy(content_.data() + at, &word, sizeof word);
    }
    for (ExtentRef& extent : table_)
      extent.checksum = checksum({content_.data() + extent.offset, extent.bytes});
    table_[kSpoilt].checksum ^= 1;
    table_.push_back({content_.size() + kBlock, kBlock, 0});

    std::string path = (std::filesystem::temp_directory_path() / "tier-conform-XXXXXX").string();
    const int file = ::mkstemp(path.data());
    if (file < 0) return Error{Code::io_error, path, "cannot create a temporary file"};
    ::close(file);
    path_ = path;
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(content_.data()), static_cast<std::streamsize>(content_.size()));
    if (!out.flush()) return Error{Code::io_error, path, "cannot be written"};
    return {};
  }

  Request read(const std::vector<uint32_t>& extents) {
    const uint32_t place = places_.take();
    uint64_t at = kBlock;
    for (const uint32_t extent : extents) {
      if (random_.below(3) == 0) at += unit_ * random_.below(3);
      places_.units(place).push_back(
          {extent, static_cast<uint32_t>((place * kPlaceBytes + at) / kPlaceUnit)});
      at += extent < table_.size() ? table_[extent].bytes : kBlock;
    }
    return request(Op::read, place);
  }

  std::string look(uint32_t place, std::span<const Unit> units, const Done& done) const {
    const std::byte* base = places_.at(place);
    if (done.n_done > units.size()) return fmt::format("n_done is {} of {} units", done.n_done, units.size());
    if (done.status == DoneStatus::ok && done.n_done != units.size()) {
      return fmt::format("ok with {} of {} units", done.n_done, units.size());
    }
    uint64_t checked = 0;
    uint64_t bytes = 0;
    uint32_t landed = 0;
    for (uint32_t i = 0; i < units.size(); ++i) {
      const ExtentRef& extent = table_[units[i].unit];
      const uint64_t begin = units[i].place * kPlaceUnit - place * kPlaceBytes;
      if (!Places::untouched({base + checked, begin - checked}))
        return "a byte beside the destinations was written";
      checked = begin + extent.bytes;
      if (std::memcmp(base + begin, content_.data() + extent.offset, extent.bytes) == 0) {
        bytes += extent.bytes;
        ++landed;
      } else if (done.status == DoneStatus::ok) {
        return fmt::format("unit {} of {} does not have the bytes of its extent", i, units.size());
      }
    }
    if (!Places::untouched({base + checked, kPlaceBytes - checked}))
      return "a byte beside the destinations was written";
    // A cancelled read may have loaded any of its units, and some that it does not count.
    if (landed < done.n_done) return fmt::format("{} units reported, but {} read", done.n_done, landed);
    const bool right = done.status == DoneStatus::ok ? bytes == done.bytes : bytes >= done.bytes;
    return right ? "" : fmt::format("{} B reported, but {} B read", done.bytes, bytes);
  }

  const uint64_t unit_;
  std::string path_;
  std::vector<std::byte> content_;
  std::vector<ExtentRef> table_;
};

}  // namespace

Result<std::unique_ptr<AgentWorld>> blocks_world(const AgentChoice& choice, uint64_t seed) {
  return ReadWorld::blocks(choice, seed);
}

Result<std::unique_ptr<AgentWorld>> packed_world(const AgentChoice& choice, uint64_t seed) {
  return ReadWorld::packed(choice, seed);
}

}  // namespace tierd
