#include "tools/lab/train/write_gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/file.h"
#include "core/formats/safetensors.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"
#include "tests/store/memory_source.h"

namespace tierd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr bool kQuiet = true;

std::string bytes_of(const TensorSource& source, const char* tensor) {
  std::string bytes(source.find(tensor)->bytes(), '\0');
  EXPECT_TRUE(source.read(*source.find(tensor), 0, std::as_writable_bytes(std::span(bytes))).ok());
  return bytes;
}

class WriteGates : public testing::Test {
 protected:
  std::string out() const { return folder_.path() + "/gates.safetensors"; }
  std::vector<SafetensorsTensor> written() const {
    const auto file = File::open(out());
    EXPECT_TRUE(file.ok());
    auto tensors = read_safetensors_header(*file);
    EXPECT_TRUE(tensors.ok());
    return *tensors;
  }
  std::string bytes_of_written(const SafetensorsTensor& tensor) const {
    return file_text(out()).substr(tensor.offset, tensor.bytes);
  }

 private:
  TempFolder folder_;
};

TEST_F(WriteGates, AsTheModelHasThem) {
  for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::bf16}) {
    const MemorySource source(small_llama(), encoding);
    ASSERT_TRUE(write_gates(source, out(), kQuiet).ok());
    const auto tensors = written();
    ASSERT_EQ(tensors.size(), 2U);
    EXPECT_EQ(tensors[1].name, "layers.1.ffn.gate");
    EXPECT_EQ(encoding_of_dtype(tensors[1].dtype), encoding);
    EXPECT_THAT(tensors[1].shape, ElementsAre(160, 64));
    EXPECT_EQ(bytes_of_written(tensors[1]), bytes_of(source, "layers.1.gate"));
  }
}

TEST_F(WriteGates, WithTheirBiases) {
  ModelConfig config = small_llama();
  config.ffn_bias = true;
  const MemorySource source(config, Encoding::f16);
  ASSERT_TRUE(write_gates(source, out(), kQuiet).ok());
  const auto tensors = written();
  ASSERT_EQ(tensors.size(), 4U);
  EXPECT_EQ(tensors[1].name, "layers.0.ffn.bias");
  EXPECT_EQ(tensors[1].dtype, "F32");
  EXPECT_THAT(tensors[1].shape, ElementsAre(160));
  EXPECT_EQ(bytes_of_written(tensors[1]), bytes_of(source, "layers.0.gate.bias"));
}

TEST_F(WriteGates, WhatCannotBeWritten) {
  const Status without = write_gates(MemorySource(small_opt(), Encoding::f16), out(), kQuiet);
  EXPECT_EQ(without.code(), Code::unsupported);
  EXPECT_THAT(without.error().line(), HasSubstr("architecture 'opt' has no gates"));
  const Status quantized = write_gates(MemorySource(small_llama(), Encoding::q4_0), out(), kQuiet);
  EXPECT_EQ(quantized.code(), Code::unsupported);
  EXPECT_THAT(quantized.error().line(),
              AllOf(HasSubstr("layers.0.gate is q4_0"), HasSubstr("expected f32, f16 or bf16")));
  MemorySource broken(small_llama(), Encoding::f16);
  broken.broken_tensor = "layers.1.gate";
  EXPECT_EQ(write_gates(broken, out(), kQuiet).code(), Code::io_error);
  EXPECT_FALSE(file_exists(out()));
}

}  // namespace
}  // namespace tierd
