// Computes the neurons of sites on the CPU, and runs their dense segments, over activation buffers that it
// owns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "core/agent/program.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/team.h"
#include "tiers/dram/segments.h"

namespace tierd {

class Executor {
 public:
  // `team` must outlive the executor and is used only by the calling thread.
  static Result<Executor> create(ComputePlan plan, const ComputeKernels& kernels, Team& team);

  const ComputePlan& plan() const { return plan_; }
  std::span<std::byte> activations() const { return values_->activations.bytes(); }
  // Sets the address of a resident tensor's values, which are not copied.
  void set_tensor(TensorId id, const float* data);

  // Runs the segment before a site, then prepares the input for the site's kernels (int8 blocks).
  void before(uint32_t site, std::span<const RowInfo> rows);
  // Copies columns of the site's input, and of the preceding segment's choice, that other agents computed.
  void take_input(uint32_t site, uint32_t rows, std::span<const Take> takes);
  // Adds other agents' results of the site to those computed here, or stores them at their places.
  void take_results(uint32_t site, std::span<const RowInfo> rows, std::span<const Take> takes);
  // Sets the results of the site to zero for these rows, before neurons add to them.
  void clear(uint32_t site, uint32_t rows);
  // Options of a computation of neurons, beside their results.
  struct Asked {
    // [neurons of the site x mask_words(rows)] which rows use which neuron; NULL: all rows use all. A neuron
    // adds nothing to a row that does not use it.
    const uint64_t* row_masks = nullptr;
    bool measure = false;  // compute SiteWork::contribution
    bool tell = false;     // or only whether a contribution is 0
  };
  // Computes neurons of the site in one of its editions; unit u's bytes are at memory + u.place * 64. Returns
  // the bytes of weights touched, or nothing if a compressed neuron does not match its bits: the results are
  // undefined then. If results are added, neurons must be in the order of their numbers, with all active ones
  // of a run of kPartialNeurons in one call; their results are added to the existing ones.
  std::optional<uint64_t> neurons(uint32_t site, uint32_t edition, std::span<const RowInfo> rows,
                                  std::span<const Unit> units, const std::byte* memory, Asked asked);
  void after(uint32_t site, std::span<const RowInfo> rows);

  const ComputeKernels& kernels() const { return kernels_; }

  // Returns the error of quantizing activations so far: the square root of (sum of squared errors / sum of
  // squares). It is 0 if none were quantized.
  double activation_error() const;

 private:
  Executor(std::unique_ptr<PlannedValues> values, KvCache kv);

  // A run of output rows, and the inputs that it is multiplied by.
  struct Piece {
    const std::byte* weights = nullptr;  // for a compressed neuron the bits of the first group
    Encoding encoding = Encoding::f32;
    uint32_t groups = 0;
    uint32_t first_row = 0;
    uint64_t first_group = 0;  // among all pieces of the call
    uint32_t first_input = 0;  // first line of the inputs, and of the results
    uint32_t inputs = 0;
    BitmapValues values = {};  // of a compressed neuron: of the first group, up to the neuron's end
    bool whole = true;         // the neuron ends with the piece
  };
  // The properties that all pieces of a product share.
  struct Product {
    uint32_t n_in;
    BufferId in;
    BufferId out;
    bool int8;  // multiplies blocks by the quantized input
  };
  // An expert of a call, and its rows' lines of scratch, in the rows' order.
  struct ExpertPart {
    uint32_t number;
    const std::byte* weights;
    uint32_t first_line;
    uint32_t lines;
  };
  // Returns the piece of a neuron at `at`, from `offset` of its dense bytes on: their address, or that of
  // their bits and values.
  Piece piece_of(const SiteWork& site, uint32_t edition, uint32_t neuron, const std::byte* at,
                 uint64_t offset) const;
  // Returns some groups of such a piece.
  static BitmapRows compressed_rows(const Piece& piece, uint64_t skip, uint32_t groups, uint32_t cols);
  // Returns the piece's first `bytes`, expanded, valid until the next call; NULL if it is malformed.
  const std::byte* expand_group(const Piece& piece, const CompressedNeurons& compressed, uint64_t bytes);
  void multiply(const Product& product, const Piece& piece, uint64_t skip, uint32_t groups, uint32_t worker);
  // Computes bundles and columns. Compressed ones are expanded a few runs at a time.
  uint64_t compute_added(const SiteWork& site, uint32_t edition, uint32_t rows, std::span<const Unit> units,
                         const std::byte* memory, Asked asked);
  void quantize_input(const SiteWork& site, uint32_t rows);
  void take_row(const SiteWork& site, const RowInfo& info, const Take& take, const float* results,
                float* out);
  uint64_t gather(const SiteWork& site, uint32_t edition, std::span<const RowInfo> rows,
                  std::span<const Unit> units, const std::byte* memory);
  uint64_t compute(const SiteWork& site, const Rows& cut, uint32_t edition, uint32_t rows,
                   std::span<const Unit> units, const std::byte* memory, Asked asked);
  uint64_t compute(const SiteWork& site, const Bundles& cut, uint32_t edition, uint32_t rows,
                   std::span<const Unit> units, const std::byte* memory, Asked asked);
  uint64_t compute(const SiteWork& site, const Columns& cut, uint32_t edition, uint32_t rows,
                   std::span<const Unit> units, const std::byte* memory, Asked asked);
  uint64_t compute(const SiteWork& site, const Experts& cut, uint32_t edition, uint32_t rows,
                   std::span<const Unit> units, const std::byte* memory, Asked asked);
  // values[i * stride + k] is the factor of column k for row i.
  struct Factors {
    const float* values;
    size_t stride;
    bool as_int8;  // use int8 factors, with the scales of the blocks
  };
  // Adds columns, each times its factor, to the site's output.
  void add_columns(const SiteWork& site, const Column& column, std::span<const Unit> units,
                   std::span<const std::byte* const> columns, const Factors& factors, uint32_t rows);
  // Returns the lengths of the edition's columns, [neurons], NaN for a column that was not measured yet.
  float* column_lengths(const SiteWork& site, uint32_t edition);
  // Writes the contributions of neurons `begin` to `end` of a call to each row i: the length of columns[k]
  // times |factors[i * stride + k]|. Columns of unknown length are decoded, and their entries of `lengths`
  // filled in.
  void measure(const SiteWork& site, const Column& column, std::span<const Unit> units,
               std::span<const std::byte* const> columns, float* lengths, const float* factors, size_t stride,
               uint32_t rows, uint64_t begin, uint64_t end);
  // Writes |factors[i * stride + k]| to the places where `measure` writes that times the column's length.
  void tell(const SiteWork& site, std::span<const Unit> units, const float* factors, size_t stride,
            uint32_t rows);
  void silence(const SiteWork& site, const Rows& cut, uint32_t rows, std::span<const Unit> units,
               const uint64_t* row_masks);
  void compute_experts(const SiteWork& site, const Experts& cut, uint32_t edition);
  void add_experts(const SiteWork& site, const Experts& cut);
  // Adds the line of `biases` that belongs to the expert to its lines of the buffer.
  void add_biases(TensorId biases, const ExpertPart& part, uint32_t width, BufferId buffer, uint32_t column);
  // `groups` and `bytes` are over all pieces; `rows` is the number of inputs that one read of weights serves.
  void multiply(const Product& product, std::span<const Piece> pieces, uint64_t groups, uint64_t bytes,
                uint32_t rows);
  float* row(BufferId buffer, uint32_t i) { return values_->row(buffer, i); }
  bool uses_int8(const SiteWork& site) const {
    return plan_.int8_activations && is_cut_into<Rows>(site.cut) &&
           std::ranges::any_of(site.editions, [&](uint32_t e) { return plan_.editions[e].has_blocks(); });
  }

  struct alignas(64) Worker {
    ExpandedLines dense;     // groups that this worker has expanded
    bool malformed = false;  // found a malformed neuron in the present call
    double squares[2] = {0, 0};
  };

  std::unique_ptr<PlannedValues> values_;
  const ComputePlan& plan_ = values_->plan;
  const ComputeKernels& kernels_ = values_->kernels;
  Team& team_ = values_->team;
  const std::vector<uint32_t>& strides_ = values_->strides;
  const std::vector<const float*>& tensors_ = values_->tensors;
  Segments segments_;
  QuantizedRows quantized_;
  std::vector<Worker> workers_;
  std::vector<const std::byte*> gates_, ups_, downs_;  // of the neurons of one call
  std::vector<float> factors_;                         // [rows x channels of one call]
  std::vector<std::vector<float>> column_lengths_;     // [editions][neurons], empty if never measured
  std::vector<ExpertPart> experts_;                    // computed together
  std::vector<uint32_t> lines_;                        // the row of each line of scratch
  ExpandedLines expanded_;                             // neurons that are computed together
  std::vector<Unit> expanded_units_;                   // their places in `expanded_`
};

}  // namespace tierd
