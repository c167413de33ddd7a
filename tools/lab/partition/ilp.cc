#include "tools/lab/partition/ilp.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tools/lab/partition/even_out.h"

namespace tierd {
namespace {

// The most variables of a program by neurons: equal DIMMs can be exchanged, and each exchange costs time.
constexpr size_t kMostForHomes = 100;
// Bins of single neurons on either side of the end of the relaxation's solution.
constexpr uint32_t kSingle = 8;
// A program over bins is solved when it is this close to its bound: even_out improves more than that.
constexpr double kGap = 5e-4;
// The tolerance with which a solver's value counts as a whole number.
constexpr double kWhole = 1e-4;
// The share by which a solver's best cost may be too high.
constexpr double kBoundRounding = 1e-6;

using Is = IntegerProgram::Is;
using Sum = std::vector<IntegerProgram::Term>;

// Neurons order[begin] to order[end - 1] of a site.
struct Bin {
  uint32_t begin = 0;
  uint32_t end = 0;
  double frequency = 0;  // the mean

  uint32_t size() const { return end - begin; }
};
using Bins = std::vector<std::vector<Bin>>;  // [sites]

Bin make_bin(const PartitionSite& site, const std::vector<uint32_t>& order, uint32_t begin, uint32_t end) {
  double sum = 0;
  for (uint32_t place = begin; place < end; ++place) sum += static_cast<double>(site.frequency[order[place]]);
  return {begin, end, sum / (end - begin)};
}

// A bin for each frequency that occurs.
Bins exact_bins(const PartitionProblem& problem, const FrequencyOrder& order) {
  Bins bins(order.size());
  for (size_t s = 0; s < order.size(); ++s) {
    const auto n = static_cast<uint32_t>(order[s].size());
    const std::vector<float>& frequency = problem.sites[s].frequency;
    for (uint32_t begin = 0, end = 1; begin < n; begin = end++) {
      while (end < n && frequency[order[s][end]] == frequency[order[s][begin]]) ++end;
      bins[s].push_back(make_bin(problem.sites[s], order[s], begin, end));
    }
  }
  return bins;
}

Bins bins_around(const PartitionProblem& problem, const FrequencyOrder& order, const Relaxation& relaxed) {
  Bins bins(order.size());
  for (size_t s = 0; s < order.size(); ++s) {
    const auto n = static_cast<uint32_t>(order[s].size());
    const auto centre = std::min(n, static_cast<uint32_t>(relaxed.hot[s]));
    std::vector<uint32_t> ends = {0, centre, n};
    for (uint32_t away = 0, width = 1; away < n; width = away < kSingle ? 1 : 2 * width) {
      away += width;
      if (away < centre) ends.push_back(centre - away);
      if (away < n - centre) ends.push_back(centre + away);
    }
    std::ranges::sort(ends);
    for (size_t i = 1; i < ends.size(); ++i) {
      if (ends[i] != ends[i - 1])
        bins[s].push_back(make_bin(problem.sites[s], order[s], ends[i - 1], ends[i]));
    }
  }
  return bins;
}

size_t count(const Bins& bins) {
  size_t all = 0;
  for (const auto& of : bins) all += of.size();
  return all;
}

// The program and its variables. Bytes are in units of their greatest common divisor, so that sums are exact;
// times in `unit` seconds, so that they are about 1.
class MappingProgram {
 public:
  MappingProgram(const PartitionProblem& problem, const Bins& bins, double unit, bool homes)
      : problem_(problem), bins_(bins), unit_(unit), homes_(homes) {
    for (const PartitionSite& site : problem.sites) block_ = std::gcd(block_, site.neuron_bytes);
    dimm_bytes_.resize(problem.machine.dimms);
    for (size_t s = 0; s < bins.size(); ++s) add_site(s);
    program_.require(gpu_bytes_, Is::at_most, blocks(problem.machine.gpu_bytes));
    for (const Sum& bytes : dimm_bytes_) {
      if (homes) program_.require(bytes, Is::at_most, blocks(problem.machine.dimm_bytes));
    }
  }

  // Starts with the hottest neurons of each site, as many as are whole in the relaxation.
  void begin_with(const Relaxation& relaxed) {
    Sum start;
    for (size_t s = 0; s < bins_.size(); ++s) {
      for (size_t b = 0; b < bins_[s].size(); ++b) {
        const bool hot = bins_[s][b].end <= relaxed.hot[s];
        start.push_back({hot_[s][b], hot ? static_cast<double>(bins_[s][b].size()) : 0.0});
      }
    }
    program_.begin_with(start);
  }

  Result<IntegerProgram::Solution> solve(const SolverLimit& limit, const std::function<void()>& waiting) {
    return program_.solve(homes_ ? 0 : kGap, limit, waiting);
  }

  // Empty if a value is not a whole number of neurons.
  std::optional<HotNeurons> hot(const std::vector<double>& values, const FrequencyOrder& order) const {
    HotNeurons all;
    for (size_t s = 0; s < bins_.size(); ++s) {
      std::vector<uint8_t>& of = all.emplace_back(order[s].size(), uint8_t{0});
      for (size_t b = 0; b < bins_[s].size(); ++b) {
        const std::optional<uint32_t> n = whole(values[hot_[s][b]], bins_[s][b].size());
        if (!n) return std::nullopt;
        for (uint32_t i = 0; i < *n; ++i) of[order[s][bins_[s][b].begin + i]] = 1;
      }
    }
    return all;
  }

  // Returns the homes that the program chose, if it has such variables; `hot` as above.
  std::optional<Partition> partition(const std::vector<double>& values, const FrequencyOrder& order,
                                     const HotNeurons& hot) const {
    Partition all;
    for (size_t s = 0; s < bins_.size(); ++s) {
      SitePartition& site = all.emplace_back();
      site.hot = hot[s];
      site.home.resize(order[s].size());
      std::vector<uint32_t> hot_neurons;
      for (size_t b = 0; b < bins_[s].size(); ++b) {
        std::vector<uint32_t> cold;
        for (uint32_t place = bins_[s][b].begin; place < bins_[s][b].end; ++place) {
          const uint32_t neuron = order[s][place];
          (hot[s][neuron] != 0 ? hot_neurons : cold).push_back(neuron);
        }
        if (!give(values, cold_[s][b], cold, site.home)) return std::nullopt;
      }
      if (!give(values, hot_homes_[s], hot_neurons, site.home)) return std::nullopt;
    }
    return all;
  }

 private:
  // Whole blocks only: the rest of a capacity holds no neuron.
  double blocks(uint64_t bytes) const {
    const uint64_t whole_blocks = bytes / block_;
    return static_cast<double>(whole_blocks);
  }

  static std::optional<uint32_t> whole(double value, size_t most) {
    const double rounded = std::round(value);
    if (std::abs(value - rounded) > kWhole || rounded < 0 || rounded > static_cast<double>(most))
      return std::nullopt;
    return static_cast<uint32_t>(rounded);
  }

  // Gives each DIMM as many of the neurons as its column says.
  static bool give(const std::vector<double>& values, const std::vector<int>& columns,
                   const std::vector<uint32_t>& neurons, std::vector<uint32_t>& home) {
    size_t given = 0;
    for (uint32_t dimm = 0; dimm < columns.size(); ++dimm) {
      const std::optional<uint32_t> n = whole(values[columns[dimm]], neurons.size() - given);
      if (!n) return false;
      for (uint32_t i = 0; i < *n; ++i) home[neurons[given++]] = dimm;
    }
    return given == neurons.size();
  }

  void add_site(size_t s) {
    const PartitionMachine& machine = problem_.machine;
    const auto bytes = static_cast<double>(problem_.sites[s].neuron_bytes);
    const double size = blocks(problem_.sites[s].neuron_bytes);
    const int time = program_.number(1);
    Sum gpu = {{time, 1}}, hot;
    double all = 0;
    std::vector<int>& columns = hot_.emplace_back();
    for (const Bin& bin : bins_[s]) {
      const int column = program_.whole_number(0, bin.size());
      columns.push_back(column);
      hot.push_back({column, 1});
      gpu_bytes_.push_back({column, size});
      gpu.push_back({column, -bin.frequency * bytes / machine.gpu_rate / unit_});
      all += bin.frequency * bin.size();
    }
    program_.require(gpu, Is::at_least, 2 * machine.sync_seconds / unit_);
    if (homes_) return add_homes(s, time, hot);
    // Every DIMM has the same share of the neurons that are not hot.
    const double share = bytes / machine.dimm_rate / machine.dimms / unit_;
    Sum dimms = {{time, 1}};
    for (size_t b = 0; b < bins_[s].size(); ++b) dimms.push_back({columns[b], bins_[s][b].frequency * share});
    program_.require(dimms, Is::at_least, all * share);
  }

  // `hot`: all hot neurons of the site.
  void add_homes(size_t s, int time, Sum hot) {
    const PartitionMachine& machine = problem_.machine;
    const double second = static_cast<double>(problem_.sites[s].neuron_bytes) / machine.dimm_rate / unit_;
    const double size = blocks(problem_.sites[s].neuron_bytes);
    std::vector<Sum> work(machine.dimms, Sum{{time, 1}});
    for (size_t b = 0; b < bins_[s].size(); ++b) {
      Sum bin = {{hot_[s][b], 1}};
      cold_.resize(s + 1);
      std::vector<int>& columns = cold_[s].emplace_back();
      for (uint32_t dimm = 0; dimm < machine.dimms; ++dimm) {
        const int column = program_.whole_number(0, bins_[s][b].size());
        columns.push_back(column);
        bin.push_back({column, 1});
        work[dimm].push_back({column, -bins_[s][b].frequency * second});
        dimm_bytes_[dimm].push_back({column, size});
      }
      program_.require(bin, Is::equal, bins_[s][b].size());
    }
    std::vector<int>& columns = hot_homes_.emplace_back();
    for (uint32_t dimm = 0; dimm < machine.dimms; ++dimm) {
      const auto n = static_cast<double>(problem_.sites[s].frequency.size());
      columns.push_back(program_.whole_number(0, n));
      hot.push_back({columns.back(), -1});
      dimm_bytes_[dimm].push_back({columns.back(), size});
      program_.require(work[dimm], Is::at_least, 0);
    }
    program_.require(hot, Is::equal, 0);
  }

  const PartitionProblem& problem_;
  const Bins& bins_;
  double unit_;
  bool homes_;
  uint64_t block_ = 0;
  IntegerProgram program_;
  Sum gpu_bytes_;
  std::vector<Sum> dimm_bytes_;                      // [DIMMs]
  std::vector<std::vector<int>> hot_;                // [sites][bins]
  std::vector<std::vector<std::vector<int>>> cold_;  // [sites][bins][DIMMs] with homes
  std::vector<std::vector<int>> hot_homes_;          // [sites][DIMMs] with homes
};

}  // namespace

Result<IlpPartition> partition_by_ilp(const PartitionProblem& problem, const FrequencyOrder& order,
                                      const Relaxation& relaxed, const SolverLimit& limit,
                                      const std::function<void()>& waiting) {
  IlpPartition made;
  made.bound = relaxed.seconds;
  Bins bins = exact_bins(problem, order);
  made.homes = count(bins) * (problem.machine.dimms + size_t{1}) <= kMostForHomes;
  if (!made.homes) bins = bins_around(problem, order, relaxed);
  made.bins = static_cast<uint32_t>(count(bins));
  const double mean = relaxed.seconds / static_cast<double>(problem.sites.size());
  const double unit = mean > 0 ? mean : 1;
  MappingProgram program(problem, bins, unit, made.homes);
  if (!made.homes) program.begin_with(relaxed);
  TIERD_ASSIGN(const IntegerProgram::Solution solution, program.solve(limit, waiting));
  if (solution.impossible) return made;
  // A bin's mean hides the differences of its neurons, so CBC's bound holds only if bins have none.
  if (made.homes) made.bound = std::max(made.bound, solution.bound * unit * (1 - kBoundRounding));
  if (solution.values.empty()) return made;
  std::optional<HotNeurons> hot = program.hot(solution.values, order);
  if (!hot) return made;
  if (made.homes) {
    made.partition = program.partition(solution.values, order, *hot);
  } else {
    even_out(problem, order, *hot);
    made.partition = deal(problem, order, *hot);
  }
  // A solver uses floating point, so a partition that violates a constraint exactly is dropped.
  if (made.partition && !is_partition_of(problem, *made.partition)) made.partition.reset();
  return made;
}

}  // namespace tierd
