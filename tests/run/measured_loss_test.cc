#include "core/run/measured_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"

namespace tierd {
namespace {

using testing::HasSubstr;

MeasuredLoss some_loss(double divergence = 0.295) {
  MeasuredLoss loss;
  loss.divergence = divergence;
  loss.reference_perplexity = 13.07;
  loss.perplexity = 17.4;
  loss.tokens = 510;
  loss.text = "wiki.txt";
  loss.text_checksum = "0123456789abcdef";
  loss.used_neurons = 0.74;
  loss.used_bytes = 0.86;
  loss.date = "2026-11-30";
  return loss;
}

class MeasuredLosses : public testing::Test {
 protected:
  const std::string& store() const { return store_; }
  std::string keep(const LossSettings& settings, const MeasuredLoss& loss) const {
    const auto path = keep_loss(store(), settings, loss);
    EXPECT_TRUE(path.ok()) << path.error().line();
    return path.ok() ? *path : "";
  }
  // Returns the divergence of the verdict, or no value where there is none.
  std::optional<double> found(const LossSettings& settings) const {
    const auto loss = find_loss(store(), settings);
    EXPECT_TRUE(loss.ok()) << loss.error().line();
    return loss.ok() && *loss ? std::optional((*loss)->divergence) : std::nullopt;
  }

 private:
  TempFolder folder_;
  std::string store_ = folder_.path();
};

TEST_F(MeasuredLosses, AreFoundAsTheyWereKept) {
  const LossSettings settings{"predictor top-k 1.0\n", {}};
  EXPECT_EQ(found(settings), std::nullopt);
  keep(settings, some_loss());
  const auto loss = find_loss(store(), settings);
  ASSERT_TRUE(loss.ok() && *loss);
  EXPECT_EQ((*loss)->divergence, 0.295);
  EXPECT_NEAR((*loss)->perplexity_change(), 17.4 / 13.07 - 1, 1e-12);
  EXPECT_EQ((*loss)->tokens, 510u);
  EXPECT_EQ((*loss)->text, "wiki.txt");
  EXPECT_EQ((*loss)->text_checksum, "0123456789abcdef");
  EXPECT_EQ((*loss)->used_neurons, 0.74);
  EXPECT_EQ((*loss)->used_bytes, 0.86);
  EXPECT_EQ((*loss)->date, "2026-11-30");
  EXPECT_FALSE((*loss)->against_store);
}

TEST_F(MeasuredLosses, OfOtherSettingsAreOthers) {
  const LossSettings a{"predictor top-k 1.0 sparsity=0.5\n", {}}, b{"predictor top-k 1.0 sparsity=0.6\n", {}};
  keep(a, some_loss(0.1));
  EXPECT_EQ(found(b), std::nullopt);
  keep(b, some_loss(0.2));
  EXPECT_EQ(found(a), 0.1);
  EXPECT_EQ(found(b), 0.2);
  keep(a, some_loss(0.3));
  EXPECT_EQ(found(a), 0.3) << "the later verdict takes the place of the earlier one";
  for (const auto& file : std::filesystem::directory_iterator(store() + "/losses"))
    EXPECT_EQ(file.path().extension(), ".json") << "nothing half-written stays";
}

TEST_F(MeasuredLosses, AreFoundWithSimilarMemories) {
  const auto with = [](double dram, double gpu) {
    return LossSettings{"same", {{"dram", dram}, {"gpu", gpu}}};
  };
  keep(with(0.5, 0.2), some_loss(0.1));
  keep(with(0.56, 0.2), some_loss(0.2));
  EXPECT_EQ(found(with(0.51, 0.22)), 0.1);
  EXPECT_EQ(found(with(0.54, 0.2)), 0.2) << "the nearest";
  EXPECT_EQ(found(with(0.62, 0.2)), std::nullopt);
  EXPECT_EQ(found(with(0.5, 0.3)), std::nullopt);
  EXPECT_EQ(found({"same", {}}), std::nullopt);
  EXPECT_EQ(found({"same", {{"dram", 0.5}, {"ndp", 0.2}}}), std::nullopt);
}

// A verdict's file, named by 16 digits, may be damaged or belong to other settings.
TEST_F(MeasuredLosses, ThatAreDamagedAreNamed) {
  const LossSettings settings{"a", {}};
  const std::string path = keep(settings, some_loss());
  const std::string whole = file_text(path);
  const auto refused = [&](const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
    const auto loss = find_loss(store(), settings);
    EXPECT_FALSE(loss.ok()) << text;
    return loss.ok() ? "found" : loss.error().line();
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"), std::string(100'000, '['),
        std::string(1 << 20, ' '), whole.substr(0, whole.size() / 2), std::string("\0\0\0", 3)})
    EXPECT_THAT(refused(text), HasSubstr(path));
  EXPECT_THAT(refused(with("0.295", "\"0.295\"")), HasSubstr(".json: divergence"));
  EXPECT_THAT(refused(with("0.295", "-1")), HasSubstr(".json: divergence"));
  EXPECT_THAT(refused(with("0.295", "1e999")), HasSubstr(path));
  EXPECT_THAT(refused(with("0.295", "null")), HasSubstr(".json: divergence"));
  EXPECT_THAT(refused(with("17.4", "0")), HasSubstr(".json: perplexity"));
  EXPECT_THAT(refused(with("510", "0")), HasSubstr(".json: tokens"));
  EXPECT_THAT(refused(with("wiki.txt", "\\u001b[2Jwiki")), HasSubstr(".json: text"));
  EXPECT_THAT(refused(with("0.86", "1.5")), HasSubstr(".json: used_bytes"));
  EXPECT_THAT(refused(with("0.86", "null")), HasSubstr(".json: used_bytes"));
  EXPECT_THAT(refused(with("\"resident\": {}", "\"resident\": {\"dram\": \"much\"}")),
              HasSubstr(".json: resident"));
  EXPECT_THAT(refused(with("false", "0")), HasSubstr(".json: against_store"));
  EXPECT_THAT(refused(with("2026-11-30", "2026\\n11")), HasSubstr(".json: date"));
  // tier-compare replaces the file.
  keep(settings, some_loss(0.5));
  EXPECT_EQ(found(settings), 0.5);
  std::ofstream(path, std::ios::trunc) << with("\"a\"", "\"b\"");
  EXPECT_EQ(found(settings), std::nullopt) << "the verdict of other settings with the same key";
}

TEST_F(MeasuredLosses, KeepTextsOfAnyName) {
  const LossSettings settings{"a", {}};
  MeasuredLoss loss = some_loss();
  loss.text = "\x1b[2J\xff\xfe.txt\n";
  keep(settings, loss);
  const auto kept = find_loss(store(), settings);
  ASSERT_TRUE(kept.ok() && *kept) << kept.error().line();
  EXPECT_THAT((*kept)->text, testing::StartsWith("?[2J"));
}

TEST_F(MeasuredLosses, ThatCannotBeWrittenAreAnError) {
  std::ofstream(store() + "/losses") << "a file in the place of the folder";
  const auto kept = keep_loss(store(), {"a", {}}, some_loss());
  ASSERT_FALSE(kept.ok());
  EXPECT_THAT(kept.error().line(), HasSubstr(store() + "/losses"));
  EXPECT_FALSE(find_loss(store(), {"a", {}}).ok());
  EXPECT_FALSE(keep_loss(store() + "/absent", {"a", {}}, some_loss()).ok());
}

TEST_F(MeasuredLosses, AreNotWrittenWhereALinkLeads) {
  const TempFolder elsewhere;
  std::filesystem::create_directory_symlink(elsewhere.path(), store() + "/losses");
  EXPECT_FALSE(keep_loss(store(), {"a", {}}, some_loss()).ok());
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path()));
}

}  // namespace
}  // namespace tierd
