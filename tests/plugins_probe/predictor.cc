// A dense predictor that reports its calls to the test.
#include "tests/plugins_probe/probe.h"

#include "tierd/plugin.hpp"

extern "C" {
TIERD_EXPORT extern tierd::Probe tierd_probe;
tierd::Probe tierd_probe;
}

namespace {

class Telling {
 public:
  explicit Telling(const tierd::Host& host) : host_(host) {}
  ~Telling() {
    if (tierd_probe.destroyed) tierd_probe.destroyed();
  }

  void predict(uint32_t site, const tierd_rows_view& rows, tierd_set_out& out) {
    if (tierd_probe.predict) tierd_probe.predict(site, rows);
    out.all = 1;
  }
  int begin_sequence(uint64_t sequence) { return ask(tierd_probe.begin_sequence, sequence); }
  int end_sequence(uint64_t sequence) { return ask(tierd_probe.end_sequence, sequence); }

 private:
  int ask(const std::function<int(uint64_t)>& question, uint64_t sequence) const {
    const int answer = question ? question(sequence) : TIERD_OK;
    if (answer < 0) host_.log(TIERD_LOG_ERROR, "told so");
    return answer;
  }

  tierd::Host host_;
};

int create(const tierd_host* host, void** self) {
  if (tierd_probe.created) tierd_probe.created(*host);
  return tierd::detail::create<Telling>(host, self);
}

constexpr tierd_plugin probe() {
  tierd_plugin plugin = tierd::predictor<Telling>("probe", "1.0", "tells what it is asked");
  plugin.create = create;
  return plugin;
}

}  // namespace

TIERD_PLUGIN(probe())
