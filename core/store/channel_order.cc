#include "core/store/channel_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/base/checksum.h"
#include "core/base/file.h"
#include "core/formats/safetensors.h"

namespace tierd {
namespace {

constexpr std::string_view kOrder = ".order";
constexpr std::string_view kRates = ".rates";

class OrderedSource final : public TensorSource {
 public:
  OrderedSource(std::shared_ptr<const TensorSource> of, bool experts,
                std::map<std::string, std::vector<float>> orders)
      : of_(std::move(of)), config_(of_->config()), tensors_(of_->tensors()), orders_(std::move(orders)) {
    config_.channel_order = true;
    config_.expert_order = experts;
    for (const auto& [name, order] : orders_)
      tensors_.push_back({.name = name, .encoding = Encoding::f32, .rows = 1, .cols = order.size()});
  }

  const ModelConfig& config() const override { return config_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Vocab* vocab() const override { return of_->vocab(); }
  std::string fingerprint() const override {
    uint64_t sum = 0;
    for (const auto& [name, order] : orders_) sum = sum * 31 + checksum(std::as_bytes(std::span(order)));
    return fmt::format("{}, channels in order {}", of_->fingerprint(), checksum_text(sum));
  }
  std::string path() const override { return of_->path(); }
  std::optional<uint32_t> assumed_zeros_percent() const override { return of_->assumed_zeros_percent(); }
  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
    const auto order = orders_.find(tensor.name);
    if (order == orders_.end()) return of_->read(tensor, offset, out);
    std::memcpy(out.data(), std::as_bytes(std::span(order->second)).data() + offset, out.size());
    return {};
  }

 private:
  const std::shared_ptr<const TensorSource> of_;
  ModelConfig config_;
  std::vector<TensorInfo> tensors_;
  const std::map<std::string, std::vector<float>> orders_;
};

// The rates of a file, by the name of their site.
class RatesFile {
 public:
  static Result<RatesFile> open(const std::string& path, const ModelConfig& config) {
    TIERD_ASSIGN(File file, File::open(path));
    TIERD_ASSIGN(std::vector<SafetensorsTensor> tensors, read_safetensors_header(file));
    TIERD_ASSIGN(const SafetensorsMetadata about, read_safetensors_metadata(file));
    if (const auto made_for = about.find(kMadeFor);
        made_for != about.end() && made_for->second != shape_text(config)) {
      return Error{Code::invalid_argument, path,
                   fmt::format("its rates were measured on another model ({}), expected {}", made_for->second,
                               shape_text(config))};
    }
    return RatesFile(path, std::move(file), std::move(tensors));
  }

  Result<std::vector<float>> of(const std::string& site, uint64_t channels) const {
    const std::string name = site + std::string(kRates);
    const auto tensor = std::ranges::find(tensors_, name, &SafetensorsTensor::name);
    if (tensor == tensors_.end()) {
      return Error{Code::not_found, path_,
                   fmt::format("has no tensor {}; write the file with tier profile --thresholds", name)};
    }
    if (tensor->dtype != "F32" || tensor->shape != std::vector{channels}) {
      return Error{Code::invalid_argument, path_,
                   fmt::format("{}: expected F32 [{}], a rate for each input", name, channels)};
    }
    std::vector<float> rates(channels);
    TIERD_TRY(file_.read_exact(tensor->offset, std::as_writable_bytes(std::span(rates))));
    if (!std::ranges::all_of(rates, [](float rate) { return rate >= 0 && rate <= 1; })) {
      return Error{Code::invalid_argument, path_, fmt::format("{} has a rate outside 0 to 1", name)};
    }
    return rates;
  }

 private:
  RatesFile(std::string path, File file, std::vector<SafetensorsTensor> tensors)
      : path_(std::move(path)), file_(std::move(file)), tensors_(std::move(tensors)) {}

  std::string path_;
  File file_;
  std::vector<SafetensorsTensor> tensors_;
};

// Returns the channel numbers, the most used first.
std::vector<float> order_by(const std::vector<float>& rates) {
  std::vector<uint32_t> order(rates.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::greater(), [&](uint32_t channel) { return rates[channel]; });
  return {order.begin(), order.end()};
}

// Returns whether the site belongs to one expert. Experts of neighbouring layers have nothing in common, so
// they take no order from a layer group.
bool is_of_expert(const std::string& site) {
  return site.find(".experts.") != std::string::npos;
}

}  // namespace

bool is_order(std::span<const float> values) {
  std::vector<uint8_t> seen(values.size());
  return std::ranges::all_of(values, [&](float value) {
    if (!(value >= 0) || !(value < static_cast<float>(values.size())) || value != std::floor(value))
      return false;
    return std::exchange(seen[static_cast<size_t>(value)], 1) == 0;
  });
}

Result<std::unique_ptr<TensorSource>> in_order_of_use(std::shared_ptr<const TensorSource> of,
                                                      const ChannelOrderOptions& options) {
  ModelConfig config = of->config();
  TIERD_ASSIGN(const RatesFile rates, RatesFile::open(options.file, config));
  config.channel_order = true;
  config.expert_order = options.experts;
  std::map<std::string, std::vector<float>> orders;
  std::map<std::string, std::vector<float>> of_all_layers;  // by operator: the sum of rates
  for (const TensorSpec& spec : required_tensors(config)) {
    if (!spec.name.ends_with(kOrder)) continue;
    const std::string site = spec.name.substr(0, spec.name.size() - kOrder.size());
    TIERD_ASSIGN(std::vector<float> of_site, rates.of(site, spec.cols));
    orders[spec.name] = order_by(of_site);
    if (is_of_expert(site)) continue;
    std::vector<float>& all = of_all_layers[site.substr(site.rfind('.') + 1)];
    all.resize(spec.cols);
    for (size_t i = 0; i < all.size(); ++i) all[i] += of_site[i];
  }
  if (options.layer_group > 1) {
    for (auto& [name, order] : orders) {
      const std::string site = name.substr(0, name.size() - kOrder.size());
      if (is_of_expert(site)) continue;
      order = order_by(of_all_layers[site.substr(site.rfind('.') + 1)]);
    }
  }
  return std::unique_ptr<TensorSource>(
      std::make_unique<OrderedSource>(std::move(of), options.experts, std::move(orders)));
}

std::optional<std::vector<uint32_t>> channel_order(const TensorSource& source, std::string_view site) {
  const TensorInfo* const tensor = source.find(fmt::format("{}{}", site, kOrder));
  if (tensor == nullptr) return std::nullopt;
  const auto order = source.read_f32(*tensor);
  TIERD_CHECK_MSG(order.ok(), tensor->name);
  return std::vector<uint32_t>(order->begin(), order->end());
}

}  // namespace tierd
