#include "core/device/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include <toml++/toml.h>

#include "core/model/named_toml.h"

namespace tierd {
namespace {

// Rates and times of a description: numbers within bounds, so that no virtual time made of them overflows.
// Remembers the first that is not.
class Numbers {
 public:
  explicit Numbers(std::string path) : path_(std::move(path)) {}

  double read(const toml::node_view<const toml::node>& node, const std::string& key, double least = 1) {
    const std::optional<double> number = node.value<double>();
    if (number && *number >= least && *number <= kMost) return *number;
    if (!error_) {
      error_ = {Code::invalid_argument, path_,
                fmt::format("'{}' is {}; a number from {} to {} is expected", key,
                            number ? fmt::format("{}", *number)
                            : node ? "none"
                                   : "missing",
                            least, kMost)};
    }
    return least;
  }
  // Reads a number of bytes or operations a second.
  double rate(const toml::node_view<const toml::node>& node, const std::string& key) {
    return read(node, key, kLeastRate);
  }
  const toml::array& list(const toml::node_view<const toml::node>& node, const std::string& key) {
    static const toml::array kNone;
    const toml::array* array = node.as_array();
    if (array != nullptr && !array->empty()) return *array;
    if (!error_)
      error_ = {Code::invalid_argument, path_, fmt::format("'{}' is missing; tier-calibrate writes it", key)};
    return kNone;
  }
  void fail(const std::string& what) {
    if (!error_) error_ = {Code::invalid_argument, path_, what};
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  static constexpr double kMost = 1e18;
  static constexpr double kLeastRate = 1e3;
  std::string path_;
  std::optional<Error> error_;
};

using View = toml::node_view<const toml::node>;

// Takes the points with the largest of the measured depths, since the flash agent keeps many reads in flight.
ReadCurve read_curve(Numbers& numbers, const View& flash) {
  struct Measured {
    double bytes, depth, rate;
  };
  std::vector<Measured> all;
  for (const toml::node& point : numbers.list(flash["reads"], "flash.reads")) {
    const View view(point);
    all.push_back({numbers.read(view["read_bytes"], "flash.reads.read_bytes"),
                   numbers.read(view["depth"], "flash.reads.depth"),
                   numbers.rate(view["random"], "flash.reads.random")});
  }
  double deepest = 0;
  for (const Measured& point : all) deepest = std::max(deepest, point.depth);
  std::vector<ReadCurve::Point> points;
  for (const Measured& point : all) {
    if (point.depth == deepest) points.push_back({static_cast<uint64_t>(point.bytes), point.rate});
  }
  std::ranges::sort(points, {}, &ReadCurve::Point::bytes);
  if (points.empty()) points.push_back({1, 1});
  return ReadCurve(std::move(points));
}

std::vector<KernelRate> read_rates(Numbers& numbers, const View& compute) {
  std::vector<KernelRate> rates;
  for (const toml::node& node : numbers.list(compute["rates"], "compute.rates")) {
    const View view(node);
    const std::string encoding = view["encoding"].value_or(std::string());
    const std::string activations = view["activations"].value_or(std::string());
    const std::optional<Encoding> known = encoding_by_name(encoding);
    if (!known) numbers.fail(fmt::format("'compute.rates.encoding': there is no encoding '{}'", encoding));
    if (activations != "int8" && activations != "f32")
      numbers.fail(fmt::format("'compute.rates.activations': '{}' is neither int8 nor f32", activations));
    rates.push_back(
        {.encoding = known.value_or(Encoding::f32),
         .int8_activations = activations == "int8",
         .gemv = numbers.rate(view["gemv_bytes_per_second"], "compute.rates.gemv_bytes_per_second"),
         .gemm = numbers.rate(view["gemm_multiply_adds_per_second"],
                              "compute.rates.gemm_multiply_adds_per_second")});
  }
  return rates;
}

// A description may have none.
std::vector<LinkDescription> read_links(Numbers& numbers, const View& links) {
  std::vector<LinkDescription> all;
  const toml::array* array = links.as_array();
  if (links && array == nullptr) numbers.fail("'links' is no list; write [[links]]");
  for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
    const View view((*array)[i]);
    LinkDescription link;
    link.to = view["to"].value_or(std::string());
    if (link.to.empty()) numbers.fail("'links.to' is missing; the name of a tier is expected");
    link.rate = numbers.rate(view["bytes_per_second"], "links.bytes_per_second");
    link.latency_ns = static_cast<uint64_t>(numbers.read(view["latency_ns"], "links.latency_ns", 0));
    all.push_back(std::move(link));
  }
  return all;
}

}  // namespace

std::filesystem::path machines_folder() {
  const char* configs = std::getenv("TIERD_CONFIGS");
  return std::filesystem::path(configs != nullptr && *configs != '\0' ? configs : TIERD_CONFIGS_DIR) /
         "hardware";
}

std::optional<KernelRate> ProcessorDescription::rate(Encoding encoding, bool int8_activations) const {
  const auto found = std::ranges::find_if(rates, [&](const KernelRate& rate) {
    return rate.encoding == encoding && rate.int8_activations == int8_activations;
  });
  return found == rates.end() ? std::nullopt : std::optional(*found);
}

ProcessorDescription ProcessorDescription::share(double share) const {
  ProcessorDescription part = *this;
  part.memory_rate *= share;
  for (KernelRate& rate : part.rates) {
    rate.gemv *= share;
    rate.gemm *= share;
  }
  return part;
}

std::optional<LinkDescription> MachineDescription::link_to(const std::string& tier) const {
  const auto found = std::ranges::find(links, tier, &LinkDescription::to);
  return found == links.end() ? std::nullopt : std::optional(*found);
}

MachineDescription any_machine() {
  constexpr double kRate = 1e9;
  MachineDescription machine{.path = "any machine",
                             .disk = {.reads = ReadCurve({{1, kRate}}), .latency_ns = 1, .check_rate = kRate},
                             .processor = {.memory_rate = kRate, .rates = {}}};
  for (const Encoding encoding : kAllEncodings) {
    for (const bool int8 : {false, true})
      machine.processor.rates.push_back(
          {.encoding = encoding, .int8_activations = int8, .gemv = kRate, .gemm = kRate});
  }
  return machine;
}

Result<MachineDescription> read_machine(const std::string& name) {
  TIERD_ASSIGN(const NamedToml file, read_named_toml(machines_folder(), name, "machine"));
  const View table(file.table);
  Numbers numbers(file.path.string());
  MachineDescription machine{
      .path = file.path.string(),
      .disk = {.reads = read_curve(numbers, table["flash"]),
               .latency_ns =
                   static_cast<uint64_t>(numbers.read(table["flash"]["latency_ns"], "flash.latency_ns")),
               .check_rate =
                   numbers.rate(table["flash"]["check_bytes_per_second"], "flash.check_bytes_per_second"),
               .folder = table["flash"]["folder"].value_or(std::string())},
      .processor = {.memory_rate = numbers.rate(table["dram"]["bytes_per_second"], "dram.bytes_per_second"),
                    .rates = read_rates(numbers, table["compute"]),
                    .threads = table["compute"]["threads"].value_or(0U)},
      .links = read_links(numbers, table["links"])};
  if (numbers.error()) return *numbers.error();
  return machine;
}

}  // namespace tierd
