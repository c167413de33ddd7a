#include "tests/fuzz/recorded_trace.h"

#include <filesystem>

#include "core/base/check.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/golden_model.h"
#include "tests/formats/files.h"

namespace tierd {
namespace {

// A prompt of four tokens and two more: few events, so that mutations reach them.
std::string recorded_trace(Config config, const std::string& path) {
  config.model = golden_path("llama2");
  config.threads = 1;
  config.bind = false;
  config.context = 8;
  config.tier("dram").capacity = "75%";
  config.tier("dram").staging = "48 KiB";
  config.trace = path;
  RuntimeOptions options;
  options.quiet = true;
  options.fit = true;
  options.logit_rows = 4;
  const auto made = make_runtime(config, options);
  TIERD_CHECK_MSG(made.ok(), made.error().line());
  Runtime& runtime = **made;
  TIERD_CHECK(runtime.load().ok());
  const std::vector<uint32_t> tokens = {1, 17, 25, 33, 4, 40};
  std::vector<float> logits;
  TIERD_CHECK(feed(runtime.engine(), tokens, 0, 4, logits).ok());
  for (const uint32_t at : {4u, 5u}) TIERD_CHECK(feed(runtime.engine(), tokens, at, 1, logits).ok());
  TIERD_CHECK(runtime.engine().drain().ok() && runtime.end_recording().ok());
  return file_text(path);
}

}  // namespace

std::vector<std::string> recorded_traces() {
  const TempFolder folder;
  setenv("TIERD_CACHE", (folder.path() + "/cache").c_str(), 1);
  const std::string path = folder.path() + "/run.trace";
  std::vector<std::string> traces;
  Config lru;
  lru.cache.name = "lru";
  traces.push_back(recorded_trace(lru, path));
  Config lossy;
  lossy.cache.name = "pinned";
  lossy.predictor.name = "random";
  lossy.predictor.settings = {{"p", 0.6, "seeds"}};
  traces.push_back(recorded_trace(lossy, path));
  return traces;
}

}  // namespace tierd
