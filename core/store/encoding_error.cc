#include "core/store/encoding_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "core/base/align.h"
#include "core/model/layout/codec.h"
#include "core/store/column_source.h"

namespace tierd {
namespace {

// Encoding all of a large model once more would take as long as writing it, so the loss of a tensor with more
// than 2 * kLeast rows or columns is measured on every n-th of them: at least kLeast, and n at most
// kMostStep.
constexpr uint64_t kLeast = 512;
constexpr uint64_t kMostStep = 16;
constexpr uint32_t kColumnsAtOnce = 64;  // columns that one read of each row decodes
constexpr uint64_t kSampledRows = 64;
constexpr uint64_t kSampledColumns = 256;
constexpr uint64_t kSampledRowsOfColumns = 256;

bool encoded_anew(const TensorSource& source, const StoredSite& site, size_t part) {
  const Encoding stored = site.encodings[part];
  if (site.is_column(part) && is_quantized(stored)) return true;
  return stored != Encoding::f32 &&
         std::ranges::any_of(tensors_of(source, site, site.parts[part]),
                             [&](const TensorInfo* tensor) { return tensor->encoding != stored; });
}

// Accumulates the loss over values that are stored together, as whole blocks.
class Loss {
 public:
  void add(Encoding encoding, std::span<const float> values) {
    encoded_.resize(encoded_bytes(encoding, values.size()));
    stored_.resize(values.size());
    encode(encoding, values, encoded_);
    decode(encoding, encoded_, stored_);
    for (size_t i = 0; i < values.size(); ++i) {
      const double error = stored_[i] - values[i];
      lost_ += error * error;
      whole_ += double{values[i]} * values[i];
    }
  }
  // Error: corrupt if a value is not finite or overflows the encoding.
  Result<float> share(const TensorSource& source, const StoredSite& site) const {
    const double share = whole_ == 0 ? 0.0 : std::sqrt(lost_ / whole_);
    if (std::isfinite(share)) return static_cast<float>(share);
    return Error{Code::corrupt, source.path(),
                 fmt::format("weights of {} are not finite, or too large for {}", site.name,
                             name(site.encodings.front()))};
  }

 private:
  double lost_ = 0;
  double whole_ = 0;
  std::vector<std::byte> encoded_;
  std::vector<float> stored_;
};

uint64_t step_of(uint64_t n) {
  return std::clamp<uint64_t>(n / kLeast, 1, kMostStep);
}

// Adds every `step`-th row.
Status add_rows(const TensorSource& source, const TensorInfo& tensor, Encoding stored, uint64_t step,
                Loss& loss) {
  std::vector<std::byte> encoded(encoded_bytes(tensor.encoding, tensor.cols));
  std::vector<float> values(tensor.cols);
  for (uint64_t row = 0; row < tensor.rows; row += step) {
    TIERD_TRY(source.read(tensor, row * encoded.size(), encoded));
    decode(tensor.encoding, encoded, values);
    loss.add(stored, values);
  }
  return {};
}

// A column of all the parts is stored together. In bundles it is down's rows alone, a whole number of blocks;
// columns of channels are padded with zeros.
Status add_columns(const TensorSource& source, const StoredSite& site, Loss& loss) {
  const uint64_t apart = site.column().values();
  const auto step = static_cast<uint32_t>(step_of(site.neurons()));
  std::vector<float> values;
  for (uint32_t first = 0; first < site.neurons(); first += step * kColumnsAtOnce) {
    std::vector<uint32_t> columns(std::min(kColumnsAtOnce, site.neurons() - first));
    std::iota(columns.begin(), columns.end(), first);
    values.assign(columns.size() * apart, 0.0f);
    uint64_t row = 0;
    for (const SitePart& part : site.column_parts()) {
      const TensorInfo& tensor = tensor_of(source, part);
      TIERD_TRY(read_columns(source, tensor, columns, apart, std::span(values).subspan(row)));
      row += tensor.rows;
    }
    for (size_t i = 0; i < columns.size(); ++i)
      loss.add(site.encodings.front(), std::span(values).subspan(i * apart, apart));
  }
  return {};
}

}  // namespace

bool encoded_anew(const TensorSource& source, const StoredSite& site) {
  for (size_t part = 0; part < site.parts.size(); ++part) {
    if (encoded_anew(source, site, part)) return true;
  }
  return false;
}

Result<float> encoding_error(const TensorSource& source, const StoredSite& site) {
  Loss loss;
  bool columns = false;
  for (size_t part = 0; part < site.parts.size(); ++part) {
    if (!encoded_anew(source, site, part)) continue;
    if (site.is_column(part)) {
      columns = true;
    } else {
      for (const TensorInfo* tensor : tensors_of(source, site, site.parts[part]))
        TIERD_TRY(add_rows(source, *tensor, site.encodings[part], step_of(tensor->rows), loss));
    }
  }
  if (columns) TIERD_TRY(add_columns(source, site, loss));
  return loss.share(source, site);
}

Result<float> sampled_encoding_error(const TensorSource& source, const StoredSite& site) {
  Loss loss;
  for (size_t part = 0; part < site.parts.size(); ++part) {
    if (!encoded_anew(source, site, part)) continue;
    const TensorInfo& tensor = *tensors_of(source, site, site.parts[part]).front();
    if (!site.is_column(part)) {
      const uint64_t step = std::max<uint64_t>(1, tensor.rows / kSampledRows);
      TIERD_TRY(add_rows(source, tensor, site.encodings[part], step, loss));
      continue;
    }
    // Blocks of a column are padded where the rows end.
    const uint64_t rows = std::min<uint64_t>(kSampledRowsOfColumns, tensor.rows);
    const uint64_t apart = align_up(rows, block_values(site.encodings.front()));
    std::vector<uint32_t> columns(std::min(kSampledColumns, tensor.cols));
    std::iota(columns.begin(), columns.end(), 0U);
    std::vector<float> values(columns.size() * apart);
    TIERD_TRY(read_columns(source, tensor, 0, rows, columns, apart, values));
    loss.add(site.encodings.front(), values);
  }
  return loss.share(source, site);
}

}  // namespace tierd
