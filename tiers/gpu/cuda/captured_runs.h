// Repeated runs are launched as one CUDA graph: the launches of a resident site's run differ from token to
// token only in the rows, which the device reads from memory at a fixed address.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/agent/counts.h"
#include "core/agent/message.h"
#include "tiers/gpu/cuda/message_lists.h"
#include "tiers/gpu/cuda/outcome.h"

namespace tierd::cuda {

class CapturedRuns {
 public:
  // A run is captured the third time: capturing costs about ten launches.
  static constexpr uint32_t kTimes = 3;

  // Queues on the stream the calls that `queue` makes; these must depend only on the message's shape, the
  // places and contents of its site's lists, and the place of its rows. If they were captured, launches the
  // graph instead. `message` must be about one site. Runs with takes are never captured, because what they
  // take differs each time.
  void run(const Message& message, const Payload& payload, const RunLists& lists, cudaStream_t stream,
           Outcome& outcome, const std::function<void(Outcome&)>& queue);
  RunCounts counts() const { return counts_; }

 private:
  struct Destroy {
    void operator()(cudaGraph_t graph) const { (void)cudaGraphDestroy(graph); }
    void operator()(cudaGraphExec_t graph) const { (void)cudaGraphExecDestroy(graph); }
  };
  using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, Destroy>;
  using Executable = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy>;
  // The properties in which runs of a site with unchanged lists differ.
  struct Shape {
    uint32_t edition = 0;
    size_t units = 0;
    uint16_t rows = 0;
    uint8_t flags = 0;
    const RowInfo* at = nullptr;
    bool operator==(const Shape&) const = default;
  };
  struct Captured {
    Shape shape;
    uint32_t seen = 0;
    Executable graph;
  };
  // Graphs kept for a site: chunks of prompts, and a few numbers of decoded sequences.
  struct OfSite {
    std::array<Captured, 4> shapes;
    uint32_t next = 0;  // the entry to replace
  };
  static Captured& of_shape(OfSite& site, const Shape& shape);
  void capture(Captured& captured, cudaStream_t stream, Outcome& outcome,
               const std::function<void(Outcome&)>& queue);
  void launch(Captured& captured, cudaStream_t stream, Outcome& outcome);

  std::vector<OfSite> sites_;
  bool refused_ = false;  // the device or its driver does not support capturing
  RunCounts counts_;
};

}  // namespace tierd::cuda
