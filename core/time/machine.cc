#include "core/time/machine.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierd {
namespace {

constexpr uint32_t kMostDepth = 65536;  // reads in flight
constexpr uint32_t kMostThreads = 65536;

double rate_or_0(TomlFields& table, std::string_view key) {
  return table.has(key) ? rate(table, key) : 0;
}
uint64_t time_ns(TomlFields& table, std::string_view key, double least = 0) {
  return static_cast<uint64_t>(table.number(key, least, kMostDescribed));
}

// Uses only the points with the largest measured depth, since the flash agent keeps many reads in flight.
ReadCurve measured_curve(TomlFields& flash) {
  struct Measured {
    double bytes, depth, rate;
  };
  std::vector<Measured> all;
  for (TomlFields& point : flash.tables("reads")) {
    all.push_back({point.number("read_bytes", 1, kMostDescribed), point.number("depth", 1, kMostDescribed),
                   rate(point, "random")});
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

struct DescribedReads {
  ReadCurve reads;
  double latency_ns = 0;
};

DescribedReads measured_reads(TomlFields& flash) {
  ReadCurve reads = measured_curve(flash);
  return {std::move(reads), flash.number("latency_ns", 1, kMostDescribed)};
}

// The closed form: a time for each read and one for its bytes, up to a rate that no size exceeds. While
// `depth` reads are in flight each takes t0_ns of the disk's time, so the latency of a single read is t0_ns *
// depth.
DescribedReads reads_by_request(TomlFields& flash) {
  if (flash.has("reads")) flash.fail("reads", "and 'flash.t0_ns' are both set, expected one of them");
  if (flash.has("latency_ns"))
    flash.fail("latency_ns",
               "is set together with 'flash.t0_ns' and 'flash.depth', whose product it is; leave it out");
  const double each = flash.number("t0_ns", 0, kMostDescribed);
  const double most = rate(flash, "bytes_per_second");
  const double cap = rate(flash, "cap_bytes_per_second");
  const uint32_t depth = flash.whole("depth", 1, kMostDepth);
  if (cap > most)
    flash.fail("cap_bytes_per_second", "is more than 'flash.bytes_per_second', expected at most that");
  return {ReadCurve::of_requests(each * 1e-9, most, std::min(cap, most)),
          std::min(each * depth, kMostDescribed)};
}

DiskDescription read_disk(TomlFields flash) {
  DescribedReads described = flash.has("t0_ns") ? reads_by_request(flash) : measured_reads(flash);
  DiskDescription disk{.reads = std::move(described.reads),
                       .latency_ns = static_cast<uint64_t>(described.latency_ns),
                       .check_rate = rate(flash, "check_bytes_per_second"),
                       .copy_rate = rate_or_0(flash, "copy_bytes_per_second"),
                       .thread_ns = flash.has("thread_ns") ? time_ns(flash, "thread_ns") : 0};
  flash.read("round", disk.round, 1, kMostDepth);
  flash.read("folder", disk.folder);
  return disk;
}

// Gives all kernels the same rates: memory's for one token, operations' for many.
std::vector<KernelRate> coarse_rates(TomlFields& compute) {
  const double bytes = rate(compute, "bytes_per_second");
  const double flops = rate(compute, "flops");
  std::vector<KernelRate> rates;
  for (const Encoding encoding : kAllEncodings) {
    for (const bool int8 : {false, true}) rates.push_back({encoding, int8, bytes, flops / 2});
  }
  return rates;
}

std::vector<KernelRate> read_rates(TomlFields& compute) {
  const bool coarse = compute.has("bytes_per_second") || compute.has("flops");
  if (coarse && !compute.has("rates")) return coarse_rates(compute);
  if (coarse) compute.fail("rates", "and 'compute.bytes_per_second' are both set, expected one of them");
  std::vector<KernelRate> rates;
  for (TomlFields& table : compute.tables("rates")) {
    const auto encoding = table.one_of<Encoding>("encoding");
    const std::string activations = table.text("activations");
    if (activations != "int8" && activations != "f32")
      table.fail("activations", fmt::format("is '{}'; int8 or f32 is expected", activations));
    rates.push_back({.encoding = encoding,
                     .int8_activations = activations == "int8",
                     .gemv = rate(table, "gemv_bytes_per_second"),
                     .gemm = rate(table, "gemm_multiply_adds_per_second"),
                     .columns = rate_or_0(table, "columns_bytes_per_second"),
                     .gemv_after_wait = rate_or_0(table, "gemv_after_wait_bytes_per_second"),
                     .columns_after_wait = rate_or_0(table, "columns_after_wait_bytes_per_second")});
  }
  return rates;
}

// Reads the links; a description may have none.
std::vector<LinkDescription> read_links(TomlFields& machine) {
  std::vector<LinkDescription> all;
  if (!machine.has("links")) return all;
  for (TomlFields& table : machine.tables("links")) {
    LinkDescription link;
    table.read("from", link.from);
    if (table.has("from") && link.from.empty())
      table.fail("from", "is empty; the name of a tier is expected");
    link.to = table.text("to");
    if (link.to.empty()) table.fail("to", "is empty; the name of a tier is expected");
    link.rate = rate(table, "bytes_per_second");
    link.latency_ns = time_ns(table, "latency_ns");
    if (table.has("beside_disk")) link.beside_disk = table.flag("beside_disk");
    const auto same = [&](const LinkDescription& other) {
      return other.from == link.from && other.to == link.to;
    };
    if (std::ranges::any_of(all, same))
      machine.fail("links",
                   fmt::format("has two from '{}' to '{}', expected at most one", link.from, link.to));
    all.push_back(std::move(link));
  }
  return all;
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
  TomlFields top(file.table, file.path.string());
  TomlFields compute = top.table("compute");
  TomlFields dram = top.table("dram");
  MachineDescription machine{
      .path = file.path.string(),
      .disk = read_disk(top.table("flash")),
      .processor = {.memory_rate = rate(dram, "bytes_per_second"), .rates = read_rates(compute)},
      .links = read_links(top),
      .units = {}};
  if (top.has("units")) machine.units = read_units(top.table("units"));
  compute.read("threads", machine.processor.threads, 0, kMostThreads);
  if (compute.has("floats_per_second")) machine.processor.floats_rate = rate(compute, "floats_per_second");
  if (compute.has("after_wait_ns")) machine.processor.after_wait_ns = time_ns(compute, "after_wait_ns", 1);
  TIERD_TRY(top.status());
  return machine;
}

}  // namespace tierd
