#include "core/strategy/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tierd {
namespace {

using testing::HasSubstr;

const tierd_param kParams[] = {
    {"window", TIERD_PARAM_INTEGER, 0, "8", 1, 64, nullptr, "tokens"},
    {"share", TIERD_PARAM_NUMBER, 1, "0.5", 0, 1, nullptr, "of all"},
    {"aging", TIERD_PARAM_FLAG, 0, "false", 0, 0, nullptr, "old uses count less"},
    {"order", TIERD_PARAM_TEXT, 0, "recent", 0, 0, "recent|often", "who stays"},
    {"label", TIERD_PARAM_TEXT, 0, "", 0, 0, nullptr, "for reports"},
    {"limit", TIERD_PARAM_INTEGER, 0, "0", -INFINITY, INFINITY, nullptr, "any"},
};

tierd_plugin plugin() {
  tierd_plugin plugin{};
  plugin.kind = "cache";
  plugin.name = "test";
  plugin.params = kParams;
  plugin.n_params = std::size(kParams);
  plugin.param_size = sizeof(tierd_param);
  return plugin;
}

Result<Parameters> read(const std::vector<Setting>& settings) {
  const std::string_view own[] = {"name", "fallback"};
  return Parameters::read(plugin(), settings, own);
}

TEST(Parameters, DefaultsAreThoseOfTheDeclaration) {
  const auto parameters = read({});
  ASSERT_TRUE(parameters.ok());
  EXPECT_EQ(*parameters->get<int64_t>("window"), 8);
  EXPECT_EQ(*parameters->get<double>("share"), 0.5);
  EXPECT_EQ(*parameters->get<bool>("aging"), false);
  EXPECT_EQ(*parameters->get<std::string>("order"), "recent");
  EXPECT_EQ(parameters->get<double>("window"), nullptr);  // of another type
  EXPECT_EQ(parameters->get<int64_t>("windows"), nullptr);
  EXPECT_FALSE(parameters->lossy());
}

// [heat] configures a predictor, and a tier has a cache of its own.
TEST(Parameters, AnErrorNamesTheTableThatHasTheSetting) {
  const std::string_view own[] = {"name"};
  EXPECT_EQ(
      Parameters::read(plugin(), {{"window", int64_t{65}, "--set"}}, own, "tiers.gpu.cache").error().line(),
      "--set: 'tiers.gpu.cache.window' is 65, a whole number within 1 and 64 was expected");
  EXPECT_EQ(Parameters::read(plugin(), {{"window", int64_t{65}, "--set"}}, own).error().line(),
            "--set: 'cache.window' is 65, a whole number within 1 and 64 was expected");
}

TEST(Parameters, SettingsLieOverThem) {
  const auto parameters = read({{"window", int64_t{64}, "a.toml:3"},
                                {"share", int64_t{1}, "a.toml:4"},  // a whole number is a number
                                {"aging", true, "a.toml:5"},
                                {"order", std::string("often"), "a.toml:6"},
                                {"limit", std::numeric_limits<int64_t>::min(), "a.toml:7"}});
  ASSERT_TRUE(parameters.ok()) << parameters.error().line();
  EXPECT_EQ(*parameters->get<int64_t>("window"), 64);
  EXPECT_EQ(*parameters->get<double>("share"), 1);
  EXPECT_EQ(*parameters->get<bool>("aging"), true);
  EXPECT_EQ(*parameters->get<std::string>("order"), "often");
  EXPECT_EQ(*parameters->get<int64_t>("limit"), std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(parameters->lossy());
  EXPECT_FALSE(read({{"share", 0.5, ""}})->lossy());  // set to its default
}

TEST(Parameters, WrongOnesAreToldAllAtOnce) {
  const auto wrong = read({{"windw", int64_t{8}, "a.toml:3"},
                           {"nmae", std::string("x"), "a.toml:4"},
                           {"window", int64_t{65}, "a.toml:5"},
                           {"window", 8.5, "a.toml:6"},
                           {"share", std::numeric_limits<double>::quiet_NaN(), "--set"},
                           {"aging", int64_t{1}, "--set"},
                           {"order", std::string("rare"), "--set"},
                           {"entirely_else", true, "--set"}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.code(), Code::invalid_argument);
  EXPECT_EQ(
      wrong.error().line(),
      "a.toml:3: cache 'test' has no parameter 'windw'; did you mean 'window'?\n"
      "a.toml:4: cache 'test' has no parameter 'nmae'; did you mean 'name'?\n"
      "a.toml:5: 'cache.window' is 65, a whole number within 1 and 64 was expected\n"
      "a.toml:6: 'cache.window' is 8.5, a whole number within 1 and 64 was expected\n"
      "--set: 'cache.share' is nan, a number within 0 and 1 was expected\n"
      "--set: 'cache.aging' is 1, true or false was expected\n"
      "--set: 'cache.order' is \"rare\", one of recent, often was expected\n"
      "--set: cache 'test' has no parameter 'entirely_else'; it has window, share, aging, order, label, "
      "limit");
  tierd_plugin bare = plugin();
  bare.n_params = 0;
  EXPECT_THAT(Parameters::read(bare, {{"x", true, "f:1"}}).error().line(), HasSubstr("it has none"));
}

TEST(Parameters, DeclarationsAreChecked) {
  EXPECT_TRUE(check_declarations(plugin(), "x.so").ok());
  const auto declared = [](tierd_param param) {
    tierd_plugin one = plugin();
    one.params = &param;
    one.n_params = 1;
    return check_declarations(one, "x.so").error().line();
  };
  EXPECT_THAT(declared({"a b", TIERD_PARAM_FLAG, 0, "true", 0, 0, nullptr, "h"}),
              HasSubstr("has an invalid name"));
  EXPECT_THAT(declared({"a", TIERD_PARAM_FLAG, 0, "yes", 0, 0, nullptr, "h"}),
              HasSubstr("has the default 'yes', true or false was expected"));
  EXPECT_THAT(declared({"a", TIERD_PARAM_FLAG, 0, "true", 0, 0, nullptr, nullptr}), HasSubstr("has no help"));
  EXPECT_THAT(declared({"a", TIERD_PARAM_FLAG, 0, nullptr, 0, 0, nullptr, "h"}), HasSubstr("has no default"));
  EXPECT_THAT(declared({"a", TIERD_PARAM_INTEGER, 0, "1.5", 0, 9, nullptr, "h"}), HasSubstr("'1.5'"));
  EXPECT_THAT(declared({"a", TIERD_PARAM_NUMBER, 0, "nan", 0, 9, nullptr, "h"}), HasSubstr("'nan'"));
  EXPECT_THAT(declared({"a", TIERD_PARAM_TEXT, 0, "z", 0, 9, "x|y", "h"}), HasSubstr("one of x, y"));
}

// Declarations of a later minor version are longer, with a stride of param_size.
TEST(Parameters, LongerDeclarationsAreStridden) {
  struct Longer {
    tierd_param known;
    const char* unit;
  };
  const Longer longer[] = {{kParams[0], "tokens"}, {kParams[1], ""}};
  tierd_plugin later = plugin();
  later.params = &longer[0].known;
  later.n_params = 2;
  later.param_size = sizeof(Longer);
  const auto parameters = Parameters::read(later, {{"share", 0.25, ""}});
  ASSERT_TRUE(parameters.ok());
  EXPECT_EQ(*parameters->get<double>("share"), 0.25);
}

}  // namespace
}  // namespace tierd
