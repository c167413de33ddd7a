#include "core/run/plugin_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/row_group.h"

namespace tierd {
namespace {

constexpr uint64_t kPackedAlignment = 64;
constexpr uint64_t kValuesAtOnce = 1u << 16;
constexpr size_t kMostDims = std::size(decltype(tierd_tensor_view::dims){});

// Matrices are for `linear`; plugins read all other tensors themselves.
bool is_matrix(const SafetensorsTensor& tensor) {
  return tensor.shape.size() == 2;
}

uint64_t packed_bytes(Encoding encoding, uint64_t rows, uint64_t cols) {
  const uint64_t groups = align_up(rows, kGroupRows) / kGroupRows;
  return align_up(groups * group_bytes(encoding, static_cast<uint32_t>(cols)), kPackedAlignment);
}

uint64_t bytes_in_memory(const SafetensorsTensor& tensor, Encoding encoding) {
  if (tensor.bytes == 0) return 0;
  if (!is_matrix(tensor)) return tensor.bytes / block_bytes(encoding) * sizeof(float);
  return packed_bytes(encoding, tensor.shape[0], tensor.shape[1]);
}

// Packs a tensor one row group at a time, to save memory. `read` fills a span with rows from a given one.
using ReadRows = std::function<Status(uint64_t row, std::span<std::byte>)>;
Status pack(const ReadRows& read, PluginTensors::Tensor& to) {
  const uint64_t rows = to.dims[0];
  const auto cols = static_cast<uint32_t>(to.dims[1]);
  const uint64_t size = packed_bytes(to.encoding, rows, cols);
  to.packed.reset(static_cast<std::byte*>(std::aligned_alloc(kPackedAlignment, size)));
  if (to.packed == nullptr) throw std::bad_alloc();
  const uint64_t row_bytes = encoded_bytes(to.encoding, cols);
  std::vector<std::byte> plain(kGroupRows * row_bytes);
  for (uint64_t row = 0; row < rows; row += kGroupRows) {
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(kGroupRows, rows - row));
    const std::span<std::byte> part = std::span(plain).first(n * row_bytes);
    TIERD_TRY(read(row, part));
    pack_row_group(to.encoding, n, cols, part,
                   {to.packed.get() + row / kGroupRows * group_bytes(to.encoding, cols),
                    group_bytes(to.encoding, cols)});
  }
  return {};
}

Status decode_values(const File& file, const SafetensorsTensor& from, PluginTensors::Tensor& to) {
  const uint64_t value_bytes = block_bytes(to.encoding);
  to.data.resize(from.bytes / value_bytes);
  std::vector<std::byte> plain(std::min<uint64_t>(kValuesAtOnce, to.data.size()) * value_bytes);
  for (uint64_t done = 0; done < to.data.size();) {
    const uint64_t n = std::min<uint64_t>(kValuesAtOnce, to.data.size() - done);
    const std::span<std::byte> part = std::span(plain).first(n * value_bytes);
    TIERD_TRY(file.read_exact(from.offset + done * value_bytes, part));
    decode(to.encoding, part, std::span(to.data).subspan(done, n));
    done += n;
  }
  return {};
}

}  // namespace

Result<PluginTensorFile> PluginTensorFile::open(const std::string& path) {
  TIERD_ASSIGN(File file, File::open(path));
  TIERD_ASSIGN(std::vector<SafetensorsTensor> tensors, read_safetensors_header(file));
  TIERD_ASSIGN(SafetensorsMetadata metadata, read_safetensors_metadata(file));
  PluginTensorFile opened(std::move(file), std::move(tensors));
  opened.made_for_ = std::move(metadata[kMadeFor]);
  for (const SafetensorsTensor& tensor : opened.tensors_) {
    const auto unsupported = [&](const std::string& why) {
      return Error{Code::unsupported, path, fmt::format("tensor '{}' {}", tensor.name, why)};
    };
    const std::optional<Encoding> encoding = encoding_of_dtype(tensor.dtype);
    if (!encoding) return unsupported(fmt::format("is {}, expected F32, F16 or BF16", tensor.dtype));
    if (tensor.shape.size() > kMostDims) {
      return unsupported(
          fmt::format("has {} dimensions, expected at most {}", tensor.shape.size(), kMostDims));
    }
    if (is_matrix(tensor) && std::max(tensor.shape[0], tensor.shape[1]) > UINT32_MAX) {
      return unsupported(fmt::format("is a matrix of {} x {}, expected at most {} rows and columns",
                                     tensor.shape[0], tensor.shape[1], UINT32_MAX));
    }
    opened.bytes_ += bytes_in_memory(tensor, *encoding);
  }
  return opened;
}

Status PluginTensorFile::check_model(const ModelConfig& config) const {
  const std::string shape = shape_text(config);
  if (made_for_.empty() || made_for_ == shape) return {};
  return Error{Code::invalid_argument, path(),
               fmt::format("its tensors were made for another model ({}), expected {}", made_for_, shape)};
}

Result<std::shared_ptr<const PluginTensors>> PluginTensorFile::read() const {
  auto all = std::make_shared<PluginTensors>();
  all->bytes = bytes_;
  try {
    for (const SafetensorsTensor& from : tensors_) {
      PluginTensors::Tensor& to = all->tensors.emplace_back();
      to.name = from.name;
      to.dims = from.shape;
      to.encoding = *encoding_of_dtype(from.dtype);
      if (from.bytes == 0) continue;
      if (!is_matrix(from)) {
        TIERD_TRY(decode_values(file_, from, to));
        continue;
      }
      const uint64_t row_bytes = encoded_bytes(to.encoding, to.dims[1]);
      TIERD_TRY(pack(
          [&](uint64_t row, std::span<std::byte> part) {
            return file_.read_exact(from.offset + row * row_bytes, part);
          },
          to));
    }
    file_.forget();
  } catch (const std::bad_alloc&) {
    return Error{Code::no_space, path(), fmt::format("cannot allocate {} bytes for tensors", bytes_)};
  }
  return std::shared_ptr<const PluginTensors>(std::move(all));
}

uint64_t ModelTensors::bytes() const {
  const ModelConfig& config = store_->manifest().config;
  const uint64_t routers = config.is_mixture() ? config.n_layers - config.dense_layers.size() : 0;
  return routers * packed_bytes(Encoding::f32, config.n_experts, config.d_model);
}

Result<std::vector<float>> ModelTensors::router(const std::string& name) const {
  if (source_ != nullptr) return source_->read_f32(*source_->find(name));
  const Manifest& manifest = store_->manifest();
  const auto found = std::ranges::find(manifest.resident, name, &ResidentTensor::name);
  TIERD_CHECK(found != manifest.resident.end());  // a checked manifest has every tensor that its model needs
  const Extent& extent = manifest.extents[found->extent];
  TIERD_ASSIGN(const File file, File::open(store_->data_path()));
  std::vector<std::byte> stored(extent.bytes);
  TIERD_TRY(file.read_exact(extent.offset, stored));
  TIERD_TRY(store_->verify(found->extent, stored));
  std::vector<float> values(found->rows * found->cols);
  std::memcpy(values.data(), stored.data(), values.size() * sizeof(float));
  return values;
}

Result<std::shared_ptr<const PluginTensors>> ModelTensors::read() const {
  const ModelConfig& config = store_->manifest().config;
  auto all = std::make_shared<PluginTensors>();
  all->bytes = bytes();
  for (uint32_t n = 0; n < config.n_layers; ++n) {
    if (!config.has_experts(n)) continue;
    TIERD_ASSIGN(const std::vector<float> values, router(fmt::format("layers.{}.router", n)));
    PluginTensors::Tensor& to = all->tensors.emplace_back();
    to.name = fmt::format("layers.{}.experts.router", n);
    to.dims = {config.n_experts, config.d_model};
    TIERD_TRY(pack(
        [&](uint64_t row, std::span<std::byte> part) {
          std::memcpy(part.data(), values.data() + row * config.d_model, part.size());
          return Status();
        },
        to));
  }
  return std::shared_ptr<const PluginTensors>(std::move(all));
}

}  // namespace tierd
