// Tables of closest friends: what a sound one is, and as a file.
#include "core/store/friends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/store/draw_friends.h"
#include "tests/store/memory_source.h"
#include "tests/store/temp_folder.h"

namespace tierd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(FriendTable, NamesAnotherNeuronForEach) {
  EXPECT_EQ(fault_of_friends(std::vector<uint32_t>{1, 0, 0}, 3), "");
  EXPECT_THAT(fault_of_friends(std::vector<uint32_t>{1, 0, 2}, 3), HasSubstr("neuron 2 as its own friend"));
  EXPECT_THAT(fault_of_friends(std::vector<uint32_t>{1, 3, 0}, 3), HasSubstr("neuron 3 of 3"));
  EXPECT_THAT(fault_of_friends(std::vector<uint32_t>{1, 0}, 3), HasSubstr("2 friends, expected 3"));
  EXPECT_THAT(fault_of_friends({}, 3), HasSubstr("0 friends, expected 3"));
  EXPECT_THAT(fault_of_friends(std::vector<uint32_t>{0}, 1), HasSubstr("its own friend"));
}

TEST(FriendTable, TextAndBack) {
  const TempFolder temp;
  const FriendTables tables = draw_friends(small_opt());
  const auto again = read_friends(temp.write("friends.json", friends_text(tables)));
  ASSERT_TRUE(again.ok()) << again.error().line();
  EXPECT_EQ(*again, tables);
}

TEST(FriendTable, FilesAreNotTrusted) {
  const TempFolder temp;
  for (const auto& [text, what] : std::vector<std::pair<const char*, const char*>>{
           {"", "JSON"},
           {"[1, 2]", "friends.json"},
           {"{}", "no site"},
           {R"({"layers.0.ffn": 7})", "layers.0.ffn"},
           {R"({"layers.0.ffn": [1, -1]})", "layers.0.ffn"},
           {R"({"layers.0.ffn": [1, 0.5]})", "layers.0.ffn"},
           {R"({"layers.0.ffn": [1, 4294967296]})", "layers.0.ffn"},
           {R"({"layers.0.ffn": ["1"]})", "layers.0.ffn"},
           {R"({"layers.0.ffn": [1], "layers.0.ffn": [1]})", "layers.0.ffn"}}) {
    SCOPED_TRACE(text);
    const auto read = read_friends(temp.write("friends.json", text));
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(read.error().line(), AllOf(HasSubstr("friends.json"), HasSubstr(what), Not(HasSubstr("\n"))));
  }
  EXPECT_EQ(read_friends(temp.path() + "/none.json").code(), Code::not_found);
}

}  // namespace
}  // namespace tierd
