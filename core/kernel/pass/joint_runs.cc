#include "core/kernel/pass/joint_runs.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/kernel/pass/run_error.h"

namespace tierd {

JointRuns::JointRuns(Dispatcher& dispatcher, const SiteTable& sites, const Topology& topology,
                     Notice& changed)
    : dispatcher_(dispatcher), sites_(sites), topology_(topology), changed_(changed) {}

JointRuns::~JointRuns() = default;

// Excludes the last site, because its output is given to the caller, and prompts, because each of their sites
// takes so long to compute that posting it alone costs little.
bool JointRuns::may_take(SiteId s, const Pass& pass) const {
  const Site& site = sites_[s];
  const bool one_unit = topology_.units.size() == 1 && topology_.units.front().joint_runs;
  return one_unit && s + 1 < sites_.size() && !pass.bypass_caches && site.set == Site::Set::predicted &&
         site.editions.size() == 1;
}

bool JointRuns::goes_on_with(const Pass& pass) const {
  return empty() || (next_.sites.size() < kMostSites && pass.step == pass_.step && pass.rows == pass_.rows &&
                     pass.row_info.data() == pass_.row_info.data());
}

void JointRuns::add(SiteId site, const Pass& pass, Supply& supply, Gathering& gathering) {
  TIERD_CHECK(goes_on_with(pass));
  if (empty()) pass_ = pass;
  list_.clear();
  (void)gathering.arrivals().hand_out(list_);
  TIERD_CHECK(gathering.handed_out());
  units_.insert(units_.end(), list_.begin(), list_.end());
  SiteRun run{.site = site, .edition = gathering.edition(), .n_units = static_cast<uint32_t>(list_.size())};
  run.flags = kRunBefore | kRunAfter;
  if (sites_[site].added) run.flags |= kPartial;
  next_.sites.push_back(run);
  next_.gathered.push_back({&supply, &gathering});
}

void JointRuns::post() {
  TIERD_CHECK(!empty());
  const ComputeUnit& unit = topology_.units.front();
  Message message;
  message.op = Op::run;
  message.agent = unit.agent;
  message.lane = unit.lane;
  message.memory = unit.memory;
  message.step = pass_.step;
  message.site = next_.sites.front().site;
  message.edition = next_.sites.front().edition;
  message.rows = pass_.rows;
  Payload payload;
  payload.units = units_;
  payload.rows = pass_.row_info;
  payload.sites = next_.sites;
  next_.message = dispatcher_.post(message, payload, *this);
  running_.push_back(std::move(next_));
  next_ = {};
  units_.clear();
}

void JointRuns::forget() {
  close(next_);
  next_ = {};
  units_.clear();
}

void JointRuns::close(const Run& run) {
  for (const auto& [supply, gathering] : run.gathered) supply->close(*gathering);
}

// Returns the name of the failed site, or, if that is not known, of the first and the last site of the run.
std::string JointRuns::name_of(const Run& run, size_t failed) const {
  const auto name = [&](const SiteRun& of) { return sites_[of.site].name; };
  if (failed < run.sites.size()) return name(run.sites[failed]);
  return "one of " + name(run.sites.front()) + " to " + name(run.sites.back());
}

void JointRuns::on_done(const Message& message, const Done& done) {
  busy_.add(done.start_ns, done.done_ns);
  const auto of = std::ranges::find(running_, message.id, &Run::message);
  const Run run = std::move(*of);
  running_.erase(of);
  close(run);
  if (done.status != DoneStatus::ok && status_.ok()) {
    status_ = run_error(dispatcher_, message, done, name_of(run, done.first_bad));
  }
  dispatcher_.wake(changed_);
}

}  // namespace tierd
