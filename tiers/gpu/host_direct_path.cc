#include "tiers/gpu/host_direct_path.h"

#include <cstring>
#include <utility>

#include "tiers/link/timer.h"

namespace tierd {

Result<std::unique_ptr<HostDirectPath>> HostDirectPath::create(std::span<std::byte> memory,
                                                               EmulatedLink& link, const Clock& clock) {
  TIERD_ASSIGN(Descriptor timer, make_timer());
  return std::unique_ptr<HostDirectPath>(new HostDirectPath(memory, link, clock, std::move(timer)));
}

Result<DirectPath::OwnReads> HostDirectPath::open(const std::string& path) {
  return Error{Code::unsupported, path, "this machine stands for the GPU"};
}

void HostDirectPath::begin(uint64_t token, std::span<const Copy> copies) {
  uint64_t bytes = 0;
  for (const Copy& copy : copies) bytes += copy.bytes;
  UnderWay& read =
      under_way_.emplace_back(UnderWay{.token = token, .copies = {copies.begin(), copies.end()}});
  if (link_.takes_time()) read.over_ns = link_.carry(bytes, clock_.now_ns()).over_ns;
  if (under_way_.size() == 1) ring_at(timer_, read.over_ns);
}

size_t HostDirectPath::poll(std::span<Copied> copied) {
  size_t n = 0;
  for (; n != copied.size() && !under_way_.empty(); ++n) {
    const UnderWay& read = under_way_.front();
    if (read.over_ns > clock_.now_ns()) break;
    for (const Copy& copy : read.copies) std::memcpy(memory_.data() + copy.to, copy.from, copy.bytes);
    copied[n] = {.token = read.token};
    under_way_.pop_front();
  }
  if (n != 0) ring_at(timer_, under_way_.empty() ? 0 : under_way_.front().over_ns);
  return n;
}

}  // namespace tierd
