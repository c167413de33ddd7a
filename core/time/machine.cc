#include "core/time/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include <toml++/toml.h>

#include "core/time/described_numbers.h"

namespace tierd {
namespace {

constexpr uint32_t kMostDepth = 65536;  // reads in flight
constexpr uint32_t kMostThreads = 65536;
constexpr double kMostLatencyNs = 1e18;

// Uses only the points with the largest measured depth, since the flash agent keeps many reads in flight.
ReadCurve measured_curve(DescribedTable& flash) {
  struct Measured {
    double bytes, depth, rate;
  };
  std::vector<Measured> all;
  for (DescribedTable& point : flash.list("reads"))
    all.push_back({point.read("read_bytes"), point.read("depth"), point.rate("random")});
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

struct DescribedReads {
  ReadCurve reads;
  double latency_ns = 0;
};

DescribedReads measured_reads(DescribedTable& flash) {
  ReadCurve reads = measured_curve(flash);
  return {std::move(reads), flash.read("latency_ns")};
}

// The closed form: a time for each read and one for its bytes, up to a rate that no size exceeds. While
// `depth` reads are in flight each takes t0_ns of the disk's time, so the latency of a single read is t0_ns *
// depth.
DescribedReads reads_by_request(DescribedTable& flash) {
  if (flash.has("reads")) flash.fail("reads", " and 'flash.t0_ns' both describe its reads; one may");
  if (flash.has("latency_ns"))
    flash.fail("latency_ns", " is 'flash.t0_ns' times 'flash.depth', and is not given beside them");
  const double each = flash.time("t0_ns");
  const double rate = flash.rate("bytes_per_second");
  const double cap = flash.rate("cap_bytes_per_second");
  const uint32_t depth = flash.whole("depth", kMostDepth);
  if (cap > rate) flash.fail("cap_bytes_per_second", " is more than 'flash.bytes_per_second'");
  return {ReadCurve::of_requests(each * 1e-9, rate, std::min(cap, rate)),
          std::min(each * depth, kMostLatencyNs)};
}

DiskDescription read_disk(DescribedTable flash) {
  DescribedReads described = flash.has("t0_ns") ? reads_by_request(flash) : measured_reads(flash);
  return {.reads = std::move(described.reads),
          .latency_ns = static_cast<uint64_t>(described.latency_ns),
          .check_rate = flash.rate("check_bytes_per_second"),
          .copy_rate = flash.rate_if_given("copy_bytes_per_second"),
          .thread_ns = flash.has("thread_ns") ? static_cast<uint64_t>(flash.time("thread_ns")) : 0,
          .round = flash.has("round") ? flash.whole("round", kMostDepth) : 1,
          .folder = flash.text("folder")};
}

// Gives all kernels the same rates: memory's for one token, operations' for many.
std::vector<KernelRate> coarse_rates(DescribedTable& compute) {
  const double bytes = compute.rate("bytes_per_second");
  const double flops = compute.rate("flops");
  std::vector<KernelRate> rates;
  for (const Encoding encoding : kAllEncodings) {
    for (const bool int8 : {false, true}) rates.push_back({encoding, int8, bytes, flops / 2});
  }
  return rates;
}

KernelRate read_rate(DescribedTable& table) {
  const std::string encoding = table.word("encoding"), activations = table.word("activations");
  const std::optional<Encoding> known = encoding_by_name(encoding);
  if (!known) table.fail("encoding", fmt::format(": there is no encoding '{}'", encoding));
  if (activations != "int8" && activations != "f32")
    table.fail("activations", fmt::format(": '{}' is neither int8 nor f32", activations));
  return {.encoding = known.value_or(Encoding::f32),
          .int8_activations = activations == "int8",
          .gemv = table.rate("gemv_bytes_per_second"),
          .gemm = table.rate("gemm_multiply_adds_per_second"),
          .columns = table.rate_if_given("columns_bytes_per_second"),
          .gemv_after_wait = table.rate_if_given("gemv_after_wait_bytes_per_second"),
          .columns_after_wait = table.rate_if_given("columns_after_wait_bytes_per_second")};
}

std::vector<KernelRate> read_rates(DescribedTable& compute) {
  const bool coarse = compute.has("bytes_per_second") || compute.has("flops");
  if (coarse && !compute.has("rates")) return coarse_rates(compute);
  if (coarse) compute.fail("rates", " and 'compute.bytes_per_second' both describe the processor; one may");
  std::vector<KernelRate> rates;
  for (DescribedTable& table : compute.list("rates")) rates.push_back(read_rate(table));
  return rates;
}

LinkDescription read_link(DescribedTable table) {
  LinkDescription link{.from = table.text("from"), .to = {}};
  if (table.has("from") && link.from.empty()) table.fail("from", " is none; the name of a tier is expected");
  link.to = table.word("to");
  if (link.to.empty()) table.fail("to", " is missing; the name of a tier is expected");
  link.rate = table.rate("bytes_per_second");
  link.latency_ns = static_cast<uint64_t>(table.time("latency_ns"));
  constexpr const char* kBesideDisk = "beside_disk";
  if (table.has(kBesideDisk) && !table[kBesideDisk].is_boolean())
    table.fail(kBesideDisk, " is no true or false");
  link.beside_disk = table[kBesideDisk].value_or(true);
  return link;
}

// Reads the links; a description may have none.
std::vector<LinkDescription> read_links(DescribedNumbers& numbers, const DescribedTable& description) {
  constexpr const char* kLinks = "links";
  std::vector<LinkDescription> all;
  const toml::array* array = description[kLinks].as_array();
  if (description.has(kLinks) && array == nullptr) numbers.fail("'links' is no list; write [[links]]");
  for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
    LinkDescription link = read_link({numbers, DescribedTable::View((*array)[i]), kLinks});
    const auto same = [&](const LinkDescription& other) {
      return other.from == link.from && other.to == link.to;
    };
    if (std::ranges::any_of(all, same))
      numbers.fail(fmt::format("'links' has two from '{}' to '{}'; one may", link.from, link.to));
    all.push_back(std::move(link));
  }
  return all;
}

ProcessorDescription read_processor(DescribedTable dram, DescribedTable compute) {
  return {.memory_rate = dram.rate("bytes_per_second"), .rates = read_rates(compute)};
}

void read_assumed(DescribedTable compute, ProcessorDescription& processor) {
  if (compute.has("threads")) processor.threads = compute.whole("threads", kMostThreads, 0);
  if (compute.has("floats_per_second")) processor.floats_rate = compute.rate("floats_per_second");
  if (compute.has("after_wait_ns"))
    processor.after_wait_ns = static_cast<uint64_t>(compute.read("after_wait_ns"));
}

}  // namespace

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
    rate.columns *= share;
    rate.gemv_after_wait *= share;
    rate.columns_after_wait *= share;
  }
  return part;
}

std::optional<LinkDescription> MachineDescription::link_to(const std::string& tier) const {
  const auto found = std::ranges::find(links, tier, &LinkDescription::to);
  return found == links.end() ? std::nullopt : std::optional(*found);
}

std::optional<LinkDescription> MachineDescription::link(const std::string& from,
                                                        const std::string& to) const {
  const auto named = [&](const std::string& name) {
    return std::ranges::find_if(
        links, [&](const LinkDescription& link) { return link.to == to && link.from == name; });
  };
  auto found = named(from);
  if (found == links.end()) found = named({});
  return found == links.end() ? std::nullopt : std::optional(*found);
}

const UnitDescription* MachineDescription::unit(const std::string& tier) const {
  const auto found = units.find(tier);
  return found == units.end() ? nullptr : &found->second;
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
  TIERD_ASSIGN(const NamedToml file, read_machine_file(name));
  DescribedNumbers numbers(file.path.string());
  const DescribedTable description(numbers, DescribedTable::View(file.table), "");
  const auto table = [&](const char* key) { return DescribedTable(numbers, description[key], key); };
  MachineDescription machine{.path = file.path.string(),
                             .disk = read_disk(table("flash")),
                             .processor = read_processor(table("dram"), table("compute")),
                             .links = read_links(numbers, description),
                             .units = read_units(numbers, description["units"])};
  read_assumed(table("compute"), machine.processor);
  if (numbers.error()) return *numbers.error();
  return machine;
}

}  // namespace tierd
