#include "core/watch/trace/reader.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/checksum.h"
#include "core/watch/trace/codec.h"
#include "core/watch/trace/file_format.h"

namespace tierd {
namespace {

constexpr uint32_t kLargestHeader = 64u << 20;
constexpr uint32_t kLargestBlock = 1u << 30;

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

Result<TraceReader> TraceReader::open(const std::string& path) {
  TIERD_ASSIGN(File file, File::open(path));
  TraceFileHead head;
  const bool room = file.size_bytes() >= sizeof head;
  if (room) TIERD_TRY(file.read_exact(0, bytes_of(head)));
  if (!room || head.magic != kTraceMagic) {
    return Error{Code::invalid_argument, path, "is no trace; tierd --trace FILE writes one"};
  }
  if (head.version != kTraceVersion) {
    return Error{
        Code::unsupported, path,
        fmt::format("is a trace of version {}, this program reads version {}", head.version, kTraceVersion)};
  }
  if (head.header_bytes > kLargestHeader) {
    return Error{Code::corrupt, file.at(8), fmt::format("a header of {} B is too long", head.header_bytes)};
  }
  if (head.header_bytes > file.size_bytes() - sizeof head) {
    return Error{Code::corrupt, path, "ends within its header: its run was killed before it had begun"};
  }
  std::string text(head.header_bytes, '\0');
  TIERD_TRY(file.read_exact(sizeof head, std::as_writable_bytes(std::span(text))));
  if (checksum(text) != head.header_checksum) {
    return Error{Code::corrupt, file.at(sizeof head), "the header's checksum does not match"};
  }
  TIERD_ASSIGN(TraceHeader header, parse_header(text, path));
  return TraceReader(std::move(file), std::move(header), sizeof head + head.header_bytes);
}

const Event* TraceReader::peek() {
  while (at_ == block_.size()) {
    if (ended_ || !read_block()) return nullptr;
  }
  return &block_[at_];
}

void TraceReader::rewind() {
  offset_ = first_block_;
  block_.clear();
  at_ = 0;
  before_block_ = 0;
  ended_ = whole_ = false;
  status_ = {};
}

bool TraceReader::read_block() {
  before_block_ += block_.size();
  block_.clear();
  at_ = 0;
  ended_ = true;  // reset if a block follows
  const uint64_t left = file_.size_bytes() - offset_;
  TraceBlockHead head;
  if (left < sizeof head) return false;
  const auto read = [&](uint64_t offset, std::span<std::byte> bytes) {
    status_ = file_.read_exact(offset, bytes);
    return status_.ok();
  };
  if (!read(offset_, bytes_of(head))) return false;
  if (head.bytes == 0) {
    whole_ = left == sizeof head && head.events == 0 && head.checksum == 0;
    if (!whole_) status_ = Error{Code::corrupt, file_.at(offset_), "is not how a trace ends"};
    return false;
  }
  if (head.bytes > left - sizeof head) return false;  // cut off
  const std::string origin = file_.at(offset_);
  if (head.bytes > kLargestBlock) {
    status_ = Error{Code::corrupt, origin, fmt::format("a block of {} B", head.bytes)};
    return false;
  }
  std::vector<std::byte> bytes(head.bytes);
  if (!read(offset_ + sizeof head, bytes)) return false;
  if (checksum(bytes) != head.checksum) {
    status_ = Error{Code::corrupt, origin, "the block's checksum does not match"};
    return false;
  }
  auto events = decode_events(bytes, origin);
  if (!events.ok()) {
    status_ = events.error();
    return false;
  }
  if (events->size() != head.events || events->empty()) {
    status_ = Error{Code::corrupt, origin,
                    fmt::format("{} events where {} were announced", events->size(), head.events)};
    return false;
  }
  block_ = std::move(*events);
  offset_ += sizeof head + head.bytes;
  ended_ = false;
  return true;
}

}  // namespace tierd
