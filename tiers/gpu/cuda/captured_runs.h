// Runs that come again as they were are launched as one CUDA graph: what a resident site's run queues differs
// from token to token in the rows alone, which the device reads from memory that stays where it is.
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
  // A run is captured when it comes for this time: capturing costs some ten launches.
  static constexpr uint32_t kTimes = 3;

  // Queues what `queue` queues on the stream, which must depend on nothing but the message's shape, the
  // places and contents of its site's lists, and the place of its rows. `queue` is not called where that is
  // captured. `message` is about one site. What is taken from others differs each time: such a run is never
  // captured.
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
  // Runs of a site whose lists stay as they are differ in this.
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
  // So many shapes of a site are kept: chunks of prompts, and a few numbers of sequences that are decoded.
  struct OfSite {
    std::array<Captured, 4> shapes;
    uint32_t next = 0;  // that is given up
  };
  static Captured& of_shape(OfSite& site, const Shape& shape);
  void capture(Captured& captured, cudaStream_t stream, Outcome& outcome,
               const std::function<void(Outcome&)>& queue);
  void launch(Captured& captured, cudaStream_t stream, Outcome& outcome);

  std::vector<OfSite> sites_;
  bool refused_ = false;  // the device or its driver does not let it
  RunCounts counts_;
};

}  // namespace tierd::cuda
