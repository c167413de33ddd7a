// Runs the dense segments and the neurons of sites on the CPU, over the activation buffers that it owns.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "core/agent/program.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/team.h"
#include "tiers/dram/kv_cache.h"
#include "tiers/dram/reserved_memory.h"

namespace tierd {

class Executor {
 public:
  // `team` outlives the executor and is used by the calling thread alone.
  static Result<Executor> create(ComputePlan plan, const ComputeKernels& kernels, Team& team);

  const ComputePlan& plan() const { return plan_; }
  std::span<std::byte> activations() const { return activations_.bytes(); }
  // The values of a resident tensor; they stay where they are.
  void set_tensor(TensorId id, const float* data);

  // The segment before a site, then what its kernels need of the input (int8 blocks).
  void before(uint32_t site, std::span<const RowInfo> rows);
  // Copies what others have made of the site's input, and of what the segment before has chosen.
  void take_input(uint32_t site, uint32_t rows, std::span<const Take> takes);
  // Adds to what this one has computed of the site, or puts in its places, what others have.
  void take_results(uint32_t site, std::span<const RowInfo> rows, std::span<const Take> takes);
  // The results of the site are zero for these rows, until neurons give them.
  void clear(uint32_t site, uint32_t rows);
  // What is asked of neurons beside their results.
  struct Asked {
    // [neurons of the site x mask_words(rows)] which rows use which neuron; NULL: all use all. To a row that
    // does not use it a neuron gives nothing.
    const uint64_t* row_masks = nullptr;
    bool measure = false;  // SiteWork::contribution is wanted
    bool tell = false;     // or of it only whether it is 0
  };
  // Neurons of the site in one edition of it; unit u's bytes are at memory + u.place * 64. Returns the bytes
  // of weights touched, or nothing where a compressed neuron is not what its bits say: results mean nothing
  // then. Where results are added, neurons follow in the order of their numbers, all active ones of a run of
  // kPartialNeurons in one call; their results are added to what is there.
  std::optional<uint64_t> neurons(uint32_t site, uint32_t edition, std::span<const RowInfo> rows,
                                  std::span<const Unit> units, const std::byte* memory, Asked asked);
  void after(uint32_t site, std::span<const RowInfo> rows);

  const ComputeKernels& kernels() const { return *kernels_; }

  // Returns the error of quantizing activations so far: the square root of (sum of squared errors / sum of
  // squares). It is 0 if none were quantized.
  double activation_error() const;

 private:
  Executor(ComputePlan plan, const ComputeKernels& kernels, Team& team, ReservedMemory activations,
           KvCache kv);

  // A run of output rows, of so many rows of the batch.
  struct Piece {
    const std::byte* weights = nullptr;  // or, of a compressed neuron, the bits of the first group
    Encoding encoding = Encoding::f32;
    uint32_t groups = 0;
    uint32_t first_row = 0;
    uint64_t first_group = 0;  // among all pieces of the call
    uint32_t first_input = 0;  // lines of what is multiplied, and of the result
    uint32_t inputs = 0;
    BitmapValues values = {};  // of a compressed neuron those of the first group, and where the neuron ends
    bool whole = true;         // the neuron ends with the piece
  };
  // What pieces have in common.
  struct Product {
    uint32_t n_in;
    BufferId in;
    BufferId out;
    bool int8;  // of blocks, with the quantized input
  };
  // An expert of a call, and the lines of scratch that its rows have, in their order.
  struct ExpertPart {
    uint32_t number;
    const std::byte* weights;
    uint32_t first_line;
    uint32_t lines;
  };
  // A neuron, which is at `at`, from `offset` of its dense bytes on: where they are, or their bits and
  // values.
  Piece piece_of(const SiteWork& site, uint32_t edition, uint32_t neuron, const std::byte* at,
                 uint64_t offset) const;
  // Some groups of such a piece.
  static BitmapRows compressed_rows(const Piece& piece, uint64_t skip, uint32_t groups, uint32_t cols);
  // Its first bytes, expanded until the next call; NULL where it is malformed.
  const std::byte* expand_group(const Piece& piece, const CompressedNeurons& compressed, uint64_t bytes);
  void multiply(const Product& product, const Piece& piece, uint64_t skip, uint32_t groups, uint32_t worker);
  // Bundles and columns. Those that are compressed are expanded some runs at a time.
  uint64_t compute_added(const SiteWork& site, uint32_t edition, uint32_t rows, std::span<const Unit> units,
                         const std::byte* memory, Asked asked);
  void run(const Program& program, std::span<const RowInfo> rows);
  void quantize_input(const SiteWork& site, uint32_t rows);
  void take_row(const SiteWork& site, const RowInfo& info, const Take& take, const float* results,
                float* out);
  void run_step(const Step& step, std::span<const RowInfo> rows);
  void run_row(const Step& step, const RowInfo& info, uint32_t i);
  void attend(const Step& step, std::span<const RowInfo> rows);
  void rotate(const Step& step, uint32_t i);
  void prepare_rotation(std::span<const RowInfo> rows);
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
  // values[i * stride + k] is what column k is multiplied with for row i.
  struct Factors {
    const float* values;
    size_t stride;
    bool as_int8;  // with the scales of the blocks
  };
  // Adds columns, each times its factor, to the site's output.
  void add_columns(const SiteWork& site, const Column& column, std::span<const Unit> units,
                   std::span<const std::byte* const> columns, const Factors& factors, uint32_t rows);
  // Returns the lengths of the edition's columns, [neurons], NaN where a column was not measured yet.
  float* column_lengths(const SiteWork& site, uint32_t edition);
  // Puts how much the neurons from `begin` to `end` of a call give to row i, columns[k] times
  // factors[i * stride + k]. Columns whose length is unknown are decoded, and `lengths` filled in.
  void measure(const SiteWork& site, const Column& column, std::span<const Unit> units,
               std::span<const std::byte* const> columns, float* lengths, const float* factors, size_t stride,
               uint32_t rows, uint64_t begin, uint64_t end);
  // Puts |factors[i * stride + k]|, what the results of row i get of column k, where `measure` puts its
  // length times that.
  void tell(const SiteWork& site, std::span<const Unit> units, const float* factors, size_t stride,
            uint32_t rows);
  void silence(const SiteWork& site, const Rows& cut, uint32_t rows, std::span<const Unit> units,
               const uint64_t* row_masks);
  void compute_experts(const SiteWork& site, const Experts& cut, uint32_t edition);
  void add_experts(const SiteWork& site, const Experts& cut);
  void route(const Step& step, uint32_t rows);
  void pick(const Step& step, const RowInfo& info, float* out);
  void add_chosen(const Step& step, const RowInfo& info, const float* given);
  // `groups`, `bytes`: of all pieces; `rows`: inputs that a read of the weights serves.
  void multiply(const Product& product, std::span<const Piece> pieces, uint64_t groups, uint64_t bytes,
                uint32_t rows);
  float* row(BufferId buffer, uint32_t i) {
    return reinterpret_cast<float*>(activations_.data() + offsets_[buffer]) + uint64_t{i} * strides_[buffer];
  }
  bool uses_int8(const SiteWork& site) const {
    return plan_.int8_activations && is_cut_into<Rows>(site.cut) &&
           std::ranges::any_of(site.editions, [&](uint32_t e) { return plan_.editions[e].has_blocks(); });
  }

  struct alignas(64) Worker {
    std::vector<float> scores;  // of one attention head
    ExpandedLines dense;        // groups that it has expanded
    bool malformed = false;     // a neuron of the present call
    double squares[2] = {0, 0};
  };

  ComputePlan plan_;
  const ComputeKernels* kernels_;
  Team* team_;
  ReservedMemory activations_;
  KvCache kv_;
  std::vector<uint64_t> offsets_;
  std::vector<uint32_t> strides_;
  std::vector<const float*> tensors_;
  QuantizedRows quantized_;
  std::vector<uint32_t> rotation_positions_;  // what `rotation_` was made for
  std::vector<float> rotation_;               // [rows][pairs that turn][cos, sin]
  std::vector<Worker> workers_;
  std::vector<const std::byte*> gates_, ups_, downs_;  // of the neurons of one call
  std::vector<float> factors_;                         // [rows x channels of one call]
  std::vector<std::vector<float>> column_lengths_;     // [editions][neurons], empty if never measured
  std::vector<ExpertPart> experts_;                    // computed together
  std::vector<uint32_t> lines_;                        // of them: whose row each line is
  ExpandedLines expanded_;                             // neurons that are computed together
  std::vector<Unit> expanded_units_;                   // and where they are in it
};

}  // namespace tierd
