#include "tools/tierd/serve.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <thread>

#include "core/base/log.h"
#include "core/base/time.h"
#include "core/engine/batcher.h"
#include "core/report/figure_json.h"
#include "core/run/run_energy.h"
#include "tools/command_line/exit_code.h"
#include "tools/tierd/chat_form.h"
#include "tools/tierd/drafters.h"
#include "tools/tierd/plugin_watch.h"
#include "tools/tierd/pressure_relief.h"
#include "tools/tierd/server/api/api.h"
#include "tools/tierd/server/http/http_server.h"
#include "tools/tierd/signals.h"
#include "tools/tierd/work_desk.h"

namespace tierd {
namespace {

constexpr uint64_t kLeastBody = uint64_t{256} << 10;
constexpr uint32_t kBodyOfToken = 32;
constexpr size_t kMostWaiting = 128;  // texts, beside those that are generated
constexpr std::chrono::seconds kGrace{30};
// Interval of the checks of the store's files.
constexpr std::chrono::seconds kLook{2};
// Time to write the answers after the grace period.
constexpr std::chrono::seconds kWriting{5};

// Returns the last part of a path, by which users name their models.
std::string name_of(const std::string& path) {
  const std::filesystem::path file = std::filesystem::path(path).lexically_normal();
  const std::filesystem::path last = file.has_filename() ? file.filename() : file.parent_path().filename();
  return last.string();
}

// Returns the tiers before anything was loaded.
std::vector<ServedTier> served_tiers(const RunPlan& plan) {
  std::vector<ServedTier> tiers;
  for (const Tier& tier : plan.tiers.memories) {
    const TierConfig& config = tier.config;
    tiers.push_back({config.name, config.agent(), config.count, config.over, 0});
  }
  std::error_code unknown;
  const uintmax_t stored = std::filesystem::file_size(plan.store.data_path(), unknown);
  ServedTier& store =
      tiers.emplace_back(ServedTier{plan.tiers.store.config.name, plan.tiers.store.config.agent()});
  store.used_bytes = unknown ? 0 : stored;
  return tiers;
}

Api::Options api_options(const Arguments& arguments, const RunPlan& plan, Result<ChatTemplate> chat) {
  const Manifest& manifest = plan.store.manifest();
  Api::Options options{{}, {}, {}, {}, std::move(chat), {}, arguments.quiet};
  options.tiers = served_tiers(plan);
  for (const Site& site : plan.model.sites) options.sites.push_back({site.name, site.n});
  options.origins = Origins(arguments.host, arguments.allowed_hosts, arguments.cors_origins);
  ServedModel& model = options.model;
  model.name = arguments.alias.empty() ? name_of(arguments.config.model) : arguments.alias;
  model.path = arguments.config.model;
  model.bytes = manifest.tensor_bytes;
  model.context = plan.memory.model.context;
  model.trained_context = manifest.config.context_length;
  model.width = manifest.config.d_model;
  model.sequences = plan.memory.model.sequences;
  model.started = static_cast<uint64_t>(std::time(nullptr));
  options.defaults.generation.sampling = arguments.sampling;
  options.defaults.generation.ignore_eos = arguments.ignore_eos;
  options.defaults.generation.special = arguments.special;
  options.defaults.generation.stops = arguments.stops;
  if (arguments.predict >= 0)
    options.defaults.generation.most_tokens = static_cast<uint64_t>(arguments.predict);
  options.defaults.context = model.context;
  options.keys = arguments.api_keys;
  return options;
}

// Runs the HTTP server on a thread of its own.
class ServerThread {
 public:
  explicit ServerThread(HttpServer& server) : server_(server), thread_([&server] { server.run(); }) {}
  ~ServerThread() { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }
  // Writes the answers that are complete, as far as clients read them, and stops.
  void finish() {
    server_.post([&server = server_] { server.drain(kWriting); });
    thread_.join();
  }

 private:
  HttpServer& server_;
  std::thread thread_;
};

// The state that the signals request.
enum class Going : uint8_t { loading, on, draining, down };

// Notices that the served store is replaced. Open files keep their contents, and files that are overwritten
// fail their checksums, so no data is mixed. A line tells the operator that the server goes on with the old
// store.
class StoreWatch {
 public:
  explicit StoreWatch(const Store& store) : store_(store) {}
  bool changed() const { return changed_; }
  void look() {
    const auto now = std::chrono::steady_clock::now();
    if (changed_ || now < next_) return;
    next_ = now + kLook;
    const Status same = store_.unchanged();
    if (same.ok()) return;
    changed_ = true;
    say(same.error().line() +
        "; this server continues with the opened store; restart it to serve the new one");
  }

 private:
  const Store& store_;
  std::chrono::steady_clock::time_point next_;
  bool changed_ = false;
};

// The two sources of budget changes between steps.
struct BudgetMovers {
  Reload& reload;
  PressureRelief* relief;  // NULL: pressure is not watched

  void look(Runtime& runtime) const {
    reload.look(runtime);
    if (relief != nullptr) relief->look(now_ns());
  }
};

// `tiers`: as they were before loading.
ServiceState state_of(Runtime& runtime, std::vector<ServedTier> tiers, const Batcher& batcher,
                      const StoreWatch& watch, const PressureRelief* relief, const RunEnergy& energy) {
  ServiceState state;
  state.tiers = std::move(tiers);
  state.energy = energy.totals();
  if (relief != nullptr) {
    state.pressure_shrinks = relief->counts().shrinks;
    state.pressure_grows = relief->counts().grows;
  }
  state.texts = batcher.counters();
  state.sequences = batcher.sequences();
  state.waiting = batcher.waiting();
  state.prefill = runtime.engine().prefill_times();
  state.decode = runtime.engine().decode_times();
  state.scheduler = runtime.scheduler().counters();
  state.flash = runtime.flash_counts();
  for (size_t tier = 0; tier < runtime.plan().tiers.memories.size(); ++tier) {
    const Budget& budget = runtime.budget(tier);
    state.tiers[tier].capacity_bytes = budget.capacity();
    state.tiers[tier].used_bytes = budget.used();
    state.tiers[tier].counters = runtime.counters(tier);
  }
  state.links = runtime.links();
  state.use = runtime.scheduler().use();
  state.losses = runtime.engine().losses();
  const Dispatcher::QueueState queue = runtime.flash_queue();
  state.store_changed = watch.changed();
  if (const Status broken = runtime.quarantine(); !broken.ok())
    state.quarantined = broken.error().line() + "; create it again with SIGHUP";
  state.credits = queue.credits;
  state.requests = queue.waiting;
  return state;
}

RunProgress progress_of(Runtime& runtime, const Batcher& batcher) {
  const StepTimes& decode = runtime.engine().decode_times();
  return {decode.wall_ns, decode.tokens, batcher.counters().generated_tokens};
}

// Runs the batcher on the engine's thread until the server ends.
Status run_texts(Runtime& runtime, Batcher& batcher, WorkDesk& desk, Api& api, const BudgetMovers& movers,
                 RunEnergy& energy, const std::atomic<Going>& going) {
  StoreWatch watch(runtime.plan().store);
  const std::vector<ServedTier> tiers = served_tiers(runtime.plan());
  const auto tell = [&] { api.set_state(state_of(runtime, tiers, batcher, watch, movers.relief, energy)); };
  api.set_capacity_by([&](const std::string& tier, const std::string& capacity) -> Result<CapacityChange> {
    auto loss = movers.reload.take_capacity(runtime, tier, capacity);
    tell();
    if (!loss.ok()) return loss.error();
    const Runtime::BudgetChange& change = runtime.budget_changes().back();
    return CapacityChange{change.from, change.to, runtime.budget(change.tier).used(), change.raised_to_least,
                          *loss ? figures_json(**loss) : nlohmann::json()};
  });
  std::optional<std::chrono::steady_clock::time_point> ends;
  tell();
  for (;;) {
    for (const WorkDesk::Work& work : desk.take()) work();
    if (going.load() == Going::down) return {};
    if (going.load() == Going::draining) {
      const auto now = std::chrono::steady_clock::now();
      if (!ends) ends = now + kGrace;
      if (!batcher.busy() || now >= *ends) return {};
    }
    if (batcher.busy()) {
      const Status stepped = batcher.step();
      if (stepped.code() == Code::cancelled) return {};
      TIERD_TRY(stepped);
      energy.look(progress_of(runtime, batcher));
    } else {
      // Prefetched reads and budget changes are completed now instead of at the next request.
      TIERD_TRY(runtime.engine().drain());
      movers.look(runtime);
      energy.look_now(progress_of(runtime, batcher));
      tell();
      desk.wait(kLook);
    }
    watch.look();
    tell();
  }
}

void warn_of_strangers(const Arguments& arguments) {
  const char* const key = std::getenv("LLAMA_API_KEY");
  if (key != nullptr && *key == '\0' && arguments.api_keys.empty())
    say("LLAMA_API_KEY is empty, so clients need no key");
  boost::system::error_code none;
  const auto address = boost::asio::ip::make_address(arguments.host, none);
  if (!none && !address.is_loopback() && arguments.api_keys.empty())
    say(fmt::format(
        "any client that reaches {} can use this server and change its budget; require a key with --api-key",
        arguments.host));
}

}  // namespace

int serve(const Arguments& arguments, Reload& reload, RunPlan plan, RuntimeOptions options,
          const Tokenizer& tokenizer) {
  SignalThread::reserve({SIGINT, SIGTERM, SIGHUP});
  const Vocab& vocab = tokenizer.vocab();
  auto chat = chat_form(arguments, vocab);
  if (!chat.ok() && names_chat_form(arguments)) return fail(chat.error(), kBadInput);
  // The line is printed at the start, and answers each request for a chat. Other requests work.
  if (!chat.ok() && !vocab.chat_template.empty()) say(chat.error().line());
  const uint32_t texts = plan.memory.model.sequences;
  const auto drafters = start_drafters(plan, texts, arguments.quiet);
  if (!drafters.ok()) return fail(drafters.error(), exit_code(drafters.error()));
  WorkDesk desk(kMostWaiting);
  const uint32_t context = plan.memory.model.context;
  Api api(api_options(arguments, plan, std::move(chat)), tokenizer, desk);
  // The longest body: a context of tokens written as numbers or escapes, with the other fields.
  HttpServer::Limits limits;
  limits.body_bytes = kLeastBody + uint64_t{kBodyOfToken} * context;
  limits.all_bodies_bytes = std::max(limits.all_bodies_bytes, limits.body_bytes);
  auto listening = HttpServer::listen(arguments.host, static_cast<uint16_t>(arguments.port), limits, api);
  if (!listening.ok()) return fail(listening.error(), kBadInput);
  if (!arguments.quiet) warn_of_strangers(arguments);
  HttpServer& server = **listening;
  ReadingThread reading(kMostWaiting);
  api.set_server(server, reading);
  ServerThread thread(server);

  PluginCalls calls;
  options.running_plugins = &calls;
  const PluginWatch plugins(calls, uint64_t{arguments.config.plugin_deadline_ms} * 1'000'000, "server",
                            [&api](std::string why) { api.set_stuck(std::move(why)); });
  auto created = Runtime::create(std::move(plan), options);
  if (!created.ok()) return fail(created.error(), exit_code(created.error()));
  Runtime& runtime = **created;
  runtime.go_on_without_lost_agents();
  const auto relief = PressureRelief::create(runtime, arguments.quiet);
  if (!relief.ok()) return fail(relief.error(), kBadInput);
  const BudgetMovers movers{reload, relief->get()};
  std::atomic<Going> going{Going::loading};
  std::atomic<int> ended_by{0};
  std::optional<SignalThread> signals(std::in_place, std::initializer_list<int>{SIGINT, SIGTERM, SIGHUP},
                                      [&](int number) {
                                        Going on = Going::on;
                                        if (number == SIGHUP) {
                                          Reload::ask();
                                        } else if (going.compare_exchange_strong(on, Going::draining)) {
                                          server.post([&server] { server.drain(kGrace + kWriting); });
                                        } else {
                                          ended_by.store(number);
                                          going.store(Going::down);
                                          runtime.waiter().stop();
                                        }
                                        desk.leave([] {});
                                      });
  RunEnergy energy(runtime);
  Status status = runtime.load([&](double share) { api.set_loaded(share); });
  energy.loaded();
  Going loading = Going::loading;
  if (status.ok() && going.compare_exchange_strong(loading, Going::on)) {
    runtime.engine().set_between_steps([&] { movers.look(runtime); });
    Batcher batcher(runtime.engine(),
                    {texts, kMostWaiting, drafters->list(), arguments.config.speculation.most});
    api.set_batcher(&batcher);
    if (!arguments.quiet) say(fmt::format("serving on http://{}:{}", arguments.host, server.port()));
    status = run_texts(runtime, batcher, desk, api, movers, energy, going);
    api.set_batcher(nullptr);
    batcher.cancel_all();
    for (const WorkDesk::Work& work : desk.take()) work();
  }
  signals.reset();
  if (going.load() == Going::draining) thread.finish();
  thread.stop();
  (void)desk.take();  // replies must be destroyed before their server
  const Status drained = runtime.engine().drain();
  const Status recorded = runtime.end_recording();
  if (const int number = ended_by.load(); number != 0) return 128 + number;
  if (!status.ok()) return fail(status.error(), exit_code(status.error()));
  if (!drained.ok()) return fail(drained.error(), kFailed);
  if (!recorded.ok()) return fail(recorded.error(), kFailed);
  return 0;
}

}  // namespace tierd
