// Programs print no figure that is not declared (docs/figures.md).
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/watch/trace/reader.h"
#include "tests/e2e/server.h"

namespace tierd {
namespace {

using nlohmann::json;

// The declared names of a section of the page.
class Declared {
 public:
  explicit Declared(const std::string& section) {
    std::istringstream page(run_tierd({"--figures"}).out);
    std::string title;
    for (std::string line; std::getline(page, line);) {
      if (line.starts_with("## ")) title = line.substr(3);
      if (title == section && line.starts_with("| `")) names_.insert(line.substr(3, line.find('`', 3) - 3));
    }
    EXPECT_FALSE(names_.empty()) << section;
  }
  bool has(const std::string& name) const { return names_.contains(name); }
  // Expects that all names in `object` are declared. `of` is shown in errors.
  void expect_all(const json& object, const std::string& of, const std::string& prefix = {}) const {
    const bool by_name = has_below(prefix + "NAME.");
    for (const auto& [key, value] : object.items()) {
      const std::string path = prefix + (object.is_array() ? "N" : by_name ? "NAME" : key);
      EXPECT_TRUE(object.is_array() || by_name || has(path)) << path << " of " << of;
      // Without declared parts the value is a number, a text, or a list or table of these.
      if (value.is_structured() && has_below(path + ".")) expect_all(value, of, path + ".");
    }
  }

 private:
  bool has_below(const std::string& prefix) const {
    const auto next = names_.lower_bound(prefix);
    return next != names_.end() && next->starts_with(prefix);
  }

  std::set<std::string> names_;
};

class FigureNames : public Server {
 protected:
  static json printed(const Ended& run) {
    EXPECT_EQ(run.status, 0) << run.err;
    return json::parse(run.out, nullptr, false);
  }
  std::string trace() const { return folder().path() + "/run.trace"; }
};

TEST_F(FigureNames, AreThoseOfTheDocument) {
  EXPECT_EQ(run_tierd({"--figures"}).out, file_text(TIERD_SOURCE_DIR "/docs/figures.md"))
      << "tierd --figures > docs/figures.md writes it";
}

TEST_F(FigureNames, OfReportsAndTracesAreDeclared) {
  const std::string tables = kDemo + "/predictor-r64.safetensors";
  const std::map<std::string, std::vector<std::string>> runs = {
      {"hybrid", {"--set", "tiers.dram.capacity=6MB", "--timeline", folder().path() + "/timeline"}},
      {"activeflow", {}},
      {"llm-in-a-flash", {"--set", "predictor.tensors=" + tables, "--set", "scheduler.measure_every=2"}},
      {"ablation/m2cache-recode",
       {"--set", "tiers.gpu.backend=host", "--set", "predictor.tensors=" + tables}},
      {"hermes",
       {"--set", "tiers.gpu.backend=host", "--set", "tiers.gpu.capacity=6.4MB", "--set",
        "predictor.name=low-rank", "--set", "predictor.tensors=" + tables}}};
  const Declared report("`report` of `tierd -p TEXT --json`"), check("`tierd --check --json`"),
      header("Header of a trace");
  for (const auto& [config, more] : runs) {
    std::vector<std::string> arguments = {"--config", config_file(config),
                                          "-m",       kDemo,
                                          "--fit",    "-p",
                                          "To be",    "-n",
                                          "20",       "-t",
                                          "1",        "--temp",
                                          "0",        "-q",
                                          "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<std::string> traced = arguments, checked = arguments;
    const bool has_timeline = config == "hybrid";  // a run has a timeline or a trace, not both
    if (!has_timeline) traced.insert(traced.end(), {"--trace", trace()});
    checked.emplace_back("--check");
    report.expect_all(printed(run_tierd(traced))["report"], config);
    check.expect_all(printed(run_tierd(checked)), config);
    if (has_timeline) continue;
    const auto reader = TraceReader::open(trace());
    ASSERT_TRUE(reader.ok()) << reader.error().line();
    header.expect_all(json::parse(header_json(reader->header())), config);
  }
}

TEST_F(FigureNames, OfBenchmarksAreDeclared) {
  Declared("`tier bench -o json`")
      .expect_all(printed(run_program(TIERD_BIN_BENCH, {"-q", "-m", kDemo, "-n", "4", "-p", "4", "-r", "1",
                                                        "-t", "1", "-o", "json"})),
                  "tier-bench");
}

TEST_F(FigureNames, OfTheServerAreDeclared) {
  start({"--config", config_file("hybrid"), "--set", "tiers.dram.capacity=60%", "--fit"});
  complete({{"prompt", "First Citizen:"}, {"max_tokens", 8}});
  Declared("`GET /v1/tiers`").expect_all(json::parse(get("/v1/tiers").body), "/v1/tiers");
  const Declared metrics("`GET /metrics`");
  std::istringstream text(get("/metrics").body);
  size_t series = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#') || line.empty()) continue;
    ++series;
    EXPECT_TRUE(metrics.has(line.substr(0, line.find_first_of("{ ")))) << line;
  }
  EXPECT_GT(series, 40u);
}

}  // namespace
}  // namespace tierd
