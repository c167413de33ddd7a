#include "tools/lab/reproduce/network_time.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

constexpr SiteId kQkv = 0, kUp = 1, kDown = 2;

class Networks : public testing::Test {
 protected:
  Networks() {
    for (const OpGroup group : {OpGroup::qkv, OpGroup::up, OpGroup::down}) {
      Site site;
      site.op_group = static_cast<uint16_t>(group);
      plan_.sites.all.push_back(site);
    }
  }
  void delivers(Op op, SiteId site, uint64_t begin, uint64_t end, Priority priority = Priority::demand) {
    Message message;
    message.op = op;
    message.site = site;
    message.priority = priority;
    time_.delivered(message, {.id = {}, .start_ns = begin, .done_ns = end}, false);
  }
  ModelPlan plan_;
  NetworkTime time_;
};

TEST_F(Networks, CountWhatLiesSideBySideOnce) {
  delivers(Op::run, kUp, 0, 1000);
  EXPECT_EQ(time_.ns(), 0u) << "before it begins";
  time_.begin(plan_);
  delivers(Op::run, kUp, 100, 200);
  delivers(Op::run, kUp, 150, 260);
  delivers(Op::run, kUp, 160, 170);
  delivers(Op::run, kDown, 300, 310);
  EXPECT_EQ(time_.ns(), 170u);
  time_.begin(plan_);
  EXPECT_EQ(time_.ns(), 0u);
}

TEST_F(Networks, CountWhatAStepWaitsForAlone) {
  time_.begin(plan_);
  delivers(Op::run, kQkv, 0, 50);
  delivers(Op::read, kUp, 100, 140);
  delivers(Op::move, kUp, 140, 160);
  delivers(Op::read, kDown, 200, 300, Priority::prefetch);
  delivers(Op::move, kDown, 300, 400, Priority::prefetch);
  EXPECT_EQ(time_.ns(), 60u);
  Message message;
  message.op = Op::run;
  message.site = kUp;
  time_.delivered(message, {.id = {}, .start_ns = 500, .done_ns = 600}, true);
  EXPECT_EQ(time_.ns(), 60u) << "withdrawn before any agent saw it";
}

}  // namespace
}  // namespace tierd
