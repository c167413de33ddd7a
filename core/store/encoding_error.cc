#include "core/store/encoding_error.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "core/layout/codec.h"
#include "core/store/column_source.h"

namespace tierd {
namespace {

constexpr uint32_t kColumnsAtOnce = 256;

}  // namespace

Result<std::optional<float>> encoding_error(const TensorSource& source, const StoredSite& site) {
  if (!site.encoded_anew()) return std::optional<float>();
  const std::span<const SitePart> parts = site.column_parts();
  // Bundles have nothing but down's rows in a column, which are whole blocks; channels are filled up with
  // zeros.
  const uint64_t apart = site.column().values();
  double lost = 0;
  double whole = 0;
  std::vector<float> values;
  std::vector<float> stored(apart);
  std::vector<std::byte> encoded(encoded_bytes(site.encoding, apart));
  for (uint32_t first = 0; first < site.neurons; first += kColumnsAtOnce) {
    std::vector<uint32_t> columns(std::min(kColumnsAtOnce, site.neurons - first));
    std::iota(columns.begin(), columns.end(), first);
    values.assign(columns.size() * apart, 0.0f);
    uint64_t row = 0;
    for (const SitePart& part : parts) {
      const TensorInfo& tensor = tensor_of(source, part);
      TIERD_TRY(read_columns(source, tensor, columns, apart, std::span(values).subspan(row)));
      row += tensor.rows;
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::span<const float> column = std::span(values).subspan(i * apart, apart);
      encode(site.encoding, column, encoded);
      decode(site.encoding, encoded, stored);
      for (uint64_t r = 0; r < apart; ++r) {
        const double error = stored[r] - column[r];
        lost += error * error;
        whole += double{column[r]} * column[r];
      }
    }
  }
  return std::optional(whole == 0 ? 0.0f : static_cast<float>(std::sqrt(lost / whole)));
}

}  // namespace tierd
