#include "tools/lab/activity/packed_lists.h"

#include "core/base/check.h"
#include "core/watch/trace/trace_bytes.h"

namespace tierd {

void PackedLists::push_back(std::span<const uint32_t> numbers) {
  TraceOut out(bytes_);
  put_numbers(out, numbers);
  ends_.push_back(bytes_.size());
}

void PackedLists::pop_back() {
  ends_.pop_back();
  bytes_.resize(ends_.empty() ? 0 : ends_.back());
}

std::vector<uint32_t> PackedLists::operator[](size_t i) const {
  const uint64_t begin = i == 0 ? 0 : ends_[i - 1];
  const std::span<const std::byte> bytes = bytes_;
  TraceIn in(bytes.subspan(begin, ends_[i] - begin), UINT64_MAX);
  std::vector<uint32_t> numbers = get_numbers(in);
  TIERD_CHECK(in.good());
  return numbers;
}

}  // namespace tierd
