// Neurons that are encoded anew while they are moved: neurons of one edition become those of another one with
// fewer bits, exactly the bits that a store of that edition would have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/agent/program.h"
#include "core/model/layout/cut.h"
#include "tiers/compute/kernels.h"

namespace tierd {

class NeuronRecoding {
 public:
  // The cut must be into dense bundles or experts, all with the same encodings; `from` and `to` have as many
  // parts as the cut. Columns in encodings that have them.
  NeuronRecoding(const Cut& cut, const Encodings& from, const Encodings& to);

  // Bytes of a neuron, without the rest of its slot.
  uint64_t from_bytes() const { return from_bytes_; }
  uint64_t to_bytes() const { return to_bytes_; }

  // The unit of encoding: a row or a column of a bundle, a row group of an expert. In order, the pieces cover
  // the encoded neuron, padding included.
  enum class Form : uint8_t { row, column, group };
  struct Piece {
    uint64_t from, from_bytes;  // from the beginning of the neuron
    uint64_t to, to_bytes;
  };
  size_t pieces() const { return pieces_.size(); }
  Piece piece(size_t i) const { return pieces_[i].bytes; }
  uint64_t largest_piece() const;  // bytes after encoding

  // `in` and `out` are the piece's bytes in both neurons. Padding is set to zero. Any thread.
  void encode(const ComputeKernels& kernels, size_t piece, const std::byte* in, std::byte* out) const;
  // Encodes all pieces of a neuron.
  void encode_neuron(const ComputeKernels& kernels, const std::byte* in, std::byte* out) const;

  // Sums of squares: of the errors of encoded pieces, and of their values before.
  struct Loss {
    double lost = 0, whole = 0;
    double share() const;  // relative error
  };
  void add_loss(size_t piece, const std::byte* in, const std::byte* out, Loss& loss) const;

 private:
  struct Part {
    Form form;
    Encoding from, to;
    uint32_t values;  // of a row
  };
  struct PlacedPiece {
    Piece bytes;
    uint32_t part;
  };
  void add_part(const Part& part, uint32_t pieces, uint64_t from, uint64_t to, uint64_t end);
  static void encode_row(const Part& part, const ComputeKernels& kernels, const std::byte* in,
                         std::byte* out);
  static void encode_column(const Part& part, const ComputeKernels& kernels, const std::byte* in,
                            std::byte* out);
  static void encode_group(const Part& part, const std::byte* in, std::byte* out);

  std::vector<Part> parts_;
  std::vector<PlacedPiece> pieces_;
  uint64_t from_bytes_ = 0;
  uint64_t to_bytes_ = 0;
};

// Returns, by number of the edition, the recodings of moves of a plan's agent.
std::vector<std::optional<NeuronRecoding>> recodings_of(const ComputePlan& plan);

}  // namespace tierd
