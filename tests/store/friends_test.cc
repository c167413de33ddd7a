// Tables of closest friends: what a sound one is, as a file, and where it does not fit.
#include "core/store/friends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/planner.h"
#include "core/store/store.h"
#include "core/store/writer.h"
#include "tests/store/draw_friends.h"
#include "tests/store/files.h"
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

TEST(FriendTable, FitsTheModelAndItsBundling) {
  const MemorySource source(small_llama(), Encoding::f16);
  const auto refused = [&](Layout layout, Bundling bundling, const FriendTables& friends) {
    const auto plan =
        plan_store(source, {.layout = layout, .bundling = bundling, .friends = friends, .quiet = true});
    EXPECT_EQ(plan.code(), Code::invalid_argument);
    return plan.ok() ? "" : plan.error().line();
  };
  const FriendTables sound = draw_friends(small_llama());
  constexpr Bundling kFriends = Bundling::closest_friend;
  EXPECT_TRUE(plan_store(source, {.layout = Layout::neuron, .bundling = kFriends, .friends = sound}).ok());
  EXPECT_THAT(refused(Layout::row, kFriends, sound), HasSubstr("it goes with layout neuron"));
  EXPECT_THAT(refused(Layout::neuron, Bundling::row_column, sound), HasSubstr("bundling closest-friend"));
  EXPECT_THAT(refused(Layout::neuron, kFriends, {}), HasSubstr("needs a table of friends"));
  FriendTables less = sound;
  less.erase("layers.1.ffn");
  EXPECT_THAT(refused(Layout::neuron, kFriends, less), HasSubstr("layers.1.ffn: the table of friends lacks"));
  FriendTables more = sound;
  more["layers.2.ffn"] = more["layers.1.ffn"];
  EXPECT_THAT(refused(Layout::neuron, kFriends, more), HasSubstr("of 3 sites, the model has 2"));
  FriendTables short_of_one = sound;
  short_of_one["layers.1.ffn"].pop_back();
  EXPECT_THAT(refused(Layout::neuron, kFriends, short_of_one), HasSubstr("has 159 friends, expected 160"));
}

TEST(FriendTable, AnotherOneIsAnotherStore) {
  const TempFolder temp;
  const std::string out = temp.path() + "/store";
  const MemorySource source(small_llama(), Encoding::f16);
  WriteOptions options{.layout = Layout::neuron,
                       .bundling = Bundling::closest_friend,
                       .friends = draw_friends(small_llama()),
                       .quiet = true};
  ASSERT_TRUE(write_store(source, out, options).ok());
  EXPECT_TRUE(write_store(source, out, options).ok());
  options.friends = draw_friends(small_llama(), 2);
  EXPECT_THAT(write_store(source, out, options).error().line(), HasSubstr("another layout"));
  const auto store = Store::open(out);
  ASSERT_TRUE(store.ok()) << store.error().line();
  const StoredSite& site = store->manifest().sites[3];
  EXPECT_THAT(store->describe(site.first_extent + 6), HasSubstr("(layers.0.ffn neuron 3, offset"));
  EXPECT_THAT(
      store->describe(site.first_extent + 7),
      HasSubstr("(layers.0.ffn neuron " + std::to_string(site.friends[3]) + ", the copy behind 3, offset"));
}

}  // namespace
}  // namespace tierd
