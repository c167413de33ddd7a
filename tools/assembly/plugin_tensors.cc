#include "tools/assembly/plugin_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "core/base/align.h"
#include "core/layout/codec.h"
#include "core/layout/row_group.h"
#include "core/store/safetensors.h"

namespace tierd {
namespace {

constexpr uint64_t kPackedAlignment = 64;

// Row group by row group: what is in memory beside the packed tensor is one group.
Status pack(const File& file, const SafetensorsTensor& from, PluginTensors::Tensor& to, uint64_t& bytes) {
  const uint64_t rows = to.dims[0];
  const auto cols = static_cast<uint32_t>(to.dims[1]);
  const uint64_t size = align_up(rows, kGroupRows) / kGroupRows * group_bytes(to.encoding, cols);
  to.packed.reset(
      static_cast<std::byte*>(std::aligned_alloc(kPackedAlignment, align_up(size, kPackedAlignment))));
  if (to.packed == nullptr)
    return Error{Code::no_space, file.path(), fmt::format("no memory for {} B", size)};
  const uint64_t row_bytes = encoded_bytes(to.encoding, cols);
  std::vector<std::byte> plain(kGroupRows * row_bytes);
  for (uint64_t row = 0; row < rows; row += kGroupRows) {
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(kGroupRows, rows - row));
    const std::span<std::byte> part = std::span(plain).first(n * row_bytes);
    TIERD_TRY(file.read_exact(from.offset + row * row_bytes, part));
    pack_row_group(to.encoding, n, cols, part,
                   {to.packed.get() + row / kGroupRows * group_bytes(to.encoding, cols),
                    group_bytes(to.encoding, cols)});
  }
  bytes += size;
  return {};
}

}  // namespace

Result<std::shared_ptr<const PluginTensors>> read_plugin_tensors(const std::string& path) {
  TIERD_ASSIGN(const File file, File::open(path));
  TIERD_ASSIGN(const std::vector<SafetensorsTensor> found, read_safetensors_header(file));
  auto all = std::make_shared<PluginTensors>();
  for (const SafetensorsTensor& from : found) {
    const std::optional<Encoding> encoding = encoding_of_dtype(from.dtype);
    if (!encoding) {
      return Error{Code::unsupported, path,
                   fmt::format("tensor '{}' is {}, F32, F16 or BF16 was expected", from.name, from.dtype)};
    }
    PluginTensors::Tensor& to = all->tensors.emplace_back();
    to.name = from.name;
    to.dims = from.shape;
    to.encoding = *encoding;
    if (from.bytes == 0) continue;
    if (to.dims.size() == 2 && to.dims[1] <= UINT32_MAX) {
      TIERD_TRY(pack(file, from, to, all->bytes));
      continue;
    }
    std::vector<std::byte> plain(from.bytes);
    TIERD_TRY(file.read_exact(from.offset, plain));
    to.data.resize(from.bytes / block_bytes(*encoding));
    decode(*encoding, plain, to.data);
    all->bytes += to.data.size() * sizeof(float);
  }
  return std::shared_ptr<const PluginTensors>(std::move(all));
}

}  // namespace tierd
