#include "tools/lab/prune/pruned_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "core/base/checksum.h"
#include "core/base/file.h"
#include "core/model/layout/codec.h"

namespace tierd {
namespace {

constexpr float kLargestF16 = 65504;

Encoding written_encoding(const TensorInfo& tensor) {
  if (tensor.rows == 1) return Encoding::f32;
  return is_quantized(tensor.encoding) ? Encoding::f16 : tensor.encoding;
}

}  // namespace

Result<std::unique_ptr<PrunedSource>> PrunedSource::create(const TensorSource& base,
                                                           const std::vector<std::string>& replaced,
                                                           const std::string& path) {
  const std::string name = path + ".pruned";
  if (file_exists(name))
    return Error{Code::invalid_argument, name, "exists and is not overwritten; move it away"};
  Disk disk;
  TIERD_ASSIGN(OpenFile file, disk.open(name, true));
  TIERD_TRY(disk.remove(name));
  std::unique_ptr<PrunedSource> source(new PrunedSource(base, std::move(file)));
  source->tensors_ = base.tensors();
  uint64_t bytes = 0;
  for (const std::string& tensor_name : replaced) {
    const auto found = std::ranges::find(source->tensors_, tensor_name, &TensorInfo::name);
    TIERD_CHECK_MSG(found != source->tensors_.end(), tensor_name);
    found->encoding = written_encoding(*found);
    source->offsets_[tensor_name] = bytes;
    bytes += found->bytes();
  }
  TIERD_TRY(disk.reserve(source->file_, bytes));
  return source;
}

Status PrunedSource::put(const std::string& name, std::span<const float> values) {
  const TensorInfo& tensor = *find(name);
  const float most = tensor.encoding == Encoding::f16 ? kLargestF16 : std::numeric_limits<float>::max();
  for (const float value : values) {
    if (std::fabs(value) <= most) continue;
    return Error{Code::invalid_argument, path(),
                 fmt::format("{} would have a weight of {}, which {} cannot represent", name, value,
                             tierd::name(tensor.encoding))};
  }
  if (tensor.rows != 1) {
    weights_ += values.size();
    zeros_ += static_cast<uint64_t>(std::ranges::count(values, 0.0f));
  }
  std::vector<std::byte> bytes(tensor.bytes());
  encode(tensor.encoding, values, bytes);
  checksums_ += checksum_text(checksum(bytes));
  return disk_.write(file_, offsets_.at(name), bytes);
}

std::string PrunedSource::fingerprint() const {
  return checksum_text(checksum(base_.fingerprint() + checksums_));
}

Status PrunedSource::read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
  const auto found = offsets_.find(tensor.name);
  if (found == offsets_.end()) return base_.read(tensor, offset, out);
  return file_.read(found->second + offset, out);
}

}  // namespace tierd
