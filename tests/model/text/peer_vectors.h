// llama.cpp's inputs and expected ids for its vocabularies, where the machine has them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/text/tokenizer.h"
#include "tests/model/text/files.h"
#include "tests/model/text/shared_files.h"

namespace tierd {

inline constexpr size_t kPeerVectors = 47;

inline std::string peer_file(const std::string& name) {
  return shared_file("data/tokenizers/llama.cpp-vectors/ggml-vocab-" + name);
}

struct PeerVector {
  std::string text;
  std::vector<uint32_t> ids;
};

// Reads the vectors of a vocabulary such as "gpt-2". Returns none if the files are not on this machine. The
// text after the last separator is empty and has no ids.
inline std::vector<PeerVector> read_peer_vectors(const std::string& name) {
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  const std::string inputs = peer_file(name + ".gguf.inp");
  const std::string outputs = peer_file(name + ".gguf.out");
  std::vector<PeerVector> vectors;
  if (inputs.empty() || outputs.empty()) return vectors;
  const std::string text = read_text(inputs);
  std::istringstream lines(read_text(outputs));
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(kSeparator, at), text.size());
    PeerVector vector{text.substr(at, end - at), {}};
    std::string line;
    std::getline(lines, line);
    std::istringstream numbers(line);
    for (uint32_t id = 0; numbers >> id;) vector.ids.push_back(id);
    vectors.push_back(std::move(vector));
    at = end == text.size() ? end + 1 : end + kSeparator.size();
  }
  return vectors;
}

// Encodes and decodes all vectors.
inline void expect_peer_vectors(const Result<Vocab>& vocab, const std::string& name) {
  const std::vector<PeerVector> vectors = read_peer_vectors(name);
  if (vectors.empty()) GTEST_SKIP() << "no vectors of " << name << " on this machine";
  ASSERT_TRUE(vocab.ok()) << vocab.error().line();
  auto tokenizer = make_tokenizer(*vocab, name);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().line();
  size_t equal = 0;
  for (const PeerVector& vector : vectors) {
    const std::vector<uint32_t> ids = (*tokenizer)->encode(vector.text, false, false);
    EXPECT_EQ(ids, vector.ids) << vector.text;
    EXPECT_EQ((*tokenizer)->decode(ids), vector.text);
    if (ids == vector.ids) ++equal;
  }
  EXPECT_EQ(vectors.size(), kPeerVectors);
  EXPECT_EQ(equal, kPeerVectors);
}

}  // namespace tierd
