#include "tools/lab/safetensors/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/formats/safetensors.h"
#include "tests/base/temp_folder.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(SafetensorsWriter, WhatItWritesIsReadBack) {
  const TempFolder folder;
  const std::string path = folder.path() + "/tables.safetensors";
  const std::string data = "aaaaaaaaaaaabbbb12345678";
  {
    // The entries are not in alphabetical order; bytes follow the order of the entries.
    auto writer = SafetensorsWriter::create(
        path, {{"z.a", "F16", {2, 3}}, {"empty", "F32", {0, 7}}, {"b", "BF16", {2}}, {"scalar", "I64", {}}});
    ASSERT_TRUE(writer.ok()) << writer.error().line();
    ASSERT_TRUE(writer->append(bytes_of(data.substr(0, 5))).ok());  // ends inside a tensor
    ASSERT_TRUE(writer->append(bytes_of(data.substr(5))).ok());
    EXPECT_FALSE(std::filesystem::exists(path));
    ASSERT_TRUE(writer->finish().ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));

  const auto file = File::open(path);
  ASSERT_TRUE(file.ok());
  uint64_t header_bytes = 0;
  ASSERT_TRUE(file->read_exact(0, std::as_writable_bytes(std::span(&header_bytes, 1))).ok());
  EXPECT_EQ(header_bytes % 8, 0u);
  const auto tensors = read_safetensors_header(*file);
  ASSERT_TRUE(tensors.ok()) << tensors.error().line();
  ASSERT_EQ(tensors->size(), 4u);
  const auto text_of = [&](const SafetensorsTensor& tensor) {
    std::string text(tensor.bytes, '\0');
    EXPECT_TRUE(file->read_exact(tensor.offset, std::as_writable_bytes(std::span(text))).ok());
    return text;
  };
  EXPECT_EQ((*tensors)[0].name, "z.a");
  EXPECT_EQ((*tensors)[0].dtype, "F16");
  EXPECT_THAT((*tensors)[0].shape, ElementsAre(2u, 3u));
  EXPECT_EQ(text_of((*tensors)[0]), "aaaaaaaaaaaa");
  EXPECT_EQ((*tensors)[1].name, "empty");
  EXPECT_EQ((*tensors)[2].name, "b");
  EXPECT_EQ(text_of((*tensors)[2]), "bbbb");
  EXPECT_EQ((*tensors)[3].name, "scalar");
  EXPECT_EQ(text_of((*tensors)[3]), "12345678");
}

TEST(SafetensorsWriter, AnUnfinishedFileIsNoFile) {
  const TempFolder folder;
  const std::string path = folder.path() + "/tables.safetensors";
  {
    auto writer = SafetensorsWriter::create(path, {{"a", "F32", {2}}});
    ASSERT_TRUE(writer.ok()) << writer.error().line();
    ASSERT_TRUE(writer->append(bytes_of("1234")).ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(SafetensorsWriter, RefusesWhatNoFileCanHold) {
  const TempFolder folder;
  const auto refused = [&](const std::vector<SafetensorsEntry>& entries) {
    const auto writer = SafetensorsWriter::create(folder.path() + "/t.safetensors", entries);
    return writer.ok() ? "accepted" : writer.error().line();
  };
  EXPECT_THAT(refused({{"a", "F4", {2}}}), HasSubstr("t.safetensors: tensor \"a\": dtype \"F4\" is unknown"));
  EXPECT_THAT(refused({{"a", "F32", {2}}, {"a", "F32", {2}}}), HasSubstr("the name is taken"));
  EXPECT_THAT(refused({{"__metadata__", "F32", {2}}}), HasSubstr("the name is taken"));
  EXPECT_THAT(refused({{"a", "F32", {uint64_t{1} << 32, uint64_t{1} << 31}}}), HasSubstr("larger than any"));
  EXPECT_THAT(refused({{"a", "U8", {INT64_MAX}}, {"b", "U8", {1}}}), HasSubstr("larger than any"));
  EXPECT_THAT(refused({{"\xff", "F32", {2}}}), HasSubstr("not UTF-8"));
  EXPECT_THAT(SafetensorsWriter::create("/no/such/t.safetensors", {}).error().line(),
              HasSubstr("/no/such/t.safetensors.partial: opening to write"));
}

TEST(SafetensorsWriter, PartsComeInAnyOrder) {
  const TempFolder folder;
  const std::string path = folder.path() + "/tables.safetensors";
  auto writer = SafetensorsWriter::create(path, {{"a", "U8", {4}}, {"b", "U8", {3}}});
  ASSERT_TRUE(writer.ok()) << writer.error().line();
  ASSERT_TRUE(writer->write(1, 1, bytes_of("yz")).ok());
  ASSERT_TRUE(writer->write(0, 0, bytes_of("ab")).ok());
  ASSERT_TRUE(writer->write(1, 0, bytes_of("x")).ok());
  ASSERT_TRUE(writer->write(0, 2, bytes_of("cd")).ok());
  ASSERT_TRUE(writer->finish().ok());
  const auto file = File::open(path);
  ASSERT_TRUE(file.ok());
  const auto tensors = read_safetensors_header(*file);
  ASSERT_TRUE(tensors.ok()) << tensors.error().line();
  std::string text(7, '\0');
  ASSERT_TRUE(file->read_exact((*tensors)[0].offset, std::as_writable_bytes(std::span(text))).ok());
  EXPECT_EQ(text, "abcdxyz");
}

}  // namespace
}  // namespace tierd
