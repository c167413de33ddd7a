#include "tiers/gpu/cuda/captured_runs.h"

#include <algorithm>

namespace tierd::cuda {

void CapturedRuns::run(const Message& message, const Payload& payload, const RunLists& lists,
                       cudaStream_t stream, Outcome& outcome, const std::function<void(Outcome&)>& queue) {
  if (!outcome.ok()) return;
  ++counts_.runs;
  if (message.site >= sites_.size()) sites_.resize(message.site + 1u);
  OfSite& site = sites_[message.site];
  if (!lists.as_before) site = {};
  if (refused_ || !payload.takes.empty()) return queue(outcome);
  Captured& captured =
      of_shape(site, {message.edition, payload.units.size(), message.rows, message.flags, lists.rows});
  if (captured.graph) return launch(captured, stream, outcome);
  if (++captured.seen < kTimes) return queue(outcome);
  capture(captured, stream, outcome, queue);
}

CapturedRuns::Captured& CapturedRuns::of_shape(OfSite& site, const Shape& shape) {
  const auto found =
      std::ranges::find_if(site.shapes, [&](const Captured& c) { return c.seen != 0 && c.shape == shape; });
  if (found != site.shapes.end()) return *found;
  Captured& given_up = site.shapes[site.next];
  site.next = (site.next + 1) % static_cast<uint32_t>(site.shapes.size());
  given_up = {};
  given_up.shape = shape;
  return given_up;
}

// An error of the queued calls while capturing is the run's own error; an error of the graph is not: the run
// is then queued without a graph.
void CapturedRuns::capture(Captured& captured, cudaStream_t stream, Outcome& outcome,
                           const std::function<void(Outcome&)>& queue) {
  refused_ = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess;
  if (!refused_) {
    queue(outcome);
    cudaGraph_t made = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream, &made);
    const Graph graph(made);
    if (!outcome.ok()) {
      captured.seen = 1;
      return;
    }
    cudaGraphExec_t executable = nullptr;
    refused_ = ended != cudaSuccess || cudaGraphInstantiate(&executable, made, 0) != cudaSuccess;
    captured.graph.reset(executable);
  }
  if (!refused_) return launch(captured, stream, outcome);
  (void)cudaGetLastError();
  queue(outcome);
}

void CapturedRuns::launch(Captured& captured, cudaStream_t stream, Outcome& outcome) {
  outcome.then([&] { return cudaGraphLaunch(captured.graph.get(), stream); });
  counts_.captured += outcome.ok() ? 1 : 0;
}

}  // namespace tierd::cuda
