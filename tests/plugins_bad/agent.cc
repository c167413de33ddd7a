// An agent that does nothing. A macro of its target adds one fault (CMakeLists.txt).
#include <stdexcept>

#include "core/agent/agent_entry.h"

#ifndef BAD_SIZE
#define BAD_SIZE sizeof(tierd::AgentEntry)
#endif
#ifndef BAD_SERVES
#define BAD_SERVES 0
#endif
#ifndef BAD_BUILD_ID
#define BAD_BUILD_ID TIERD_BUILD_ID
#endif
#ifndef BAD_NAME
#define BAD_NAME NAME
#endif
#ifndef BAD_SUMMARY
#define BAD_SUMMARY "of the tests"
#endif
#ifndef BAD_PARAMS
#define BAD_PARAMS kParams
#endif
#ifndef BAD_STANDARD
#define BAD_STANDARD "8"
#endif
#ifndef BAD_CREDITS
#define BAD_CREDITS 4
#endif
#ifndef BAD_PRODUCTS
#define BAD_PRODUCTS nullptr
#endif
#ifndef BAD_MAKE
#define BAD_MAKE make
#endif

namespace tierd {
namespace {

class NoAgent final : public Agent, public Products {
 public:
  std::string_view name() const override { return "none"; }
  uint32_t credits() const override { return BAD_CREDITS; }
  Submit submit(const Message&, const Payload&) override { return Submit::busy; }
  Drive drive() override { return Drive::idle; }
  size_t poll(std::span<Done>) override { return 0; }
  void linear(const PackedMatrix&, const float*, uint32_t, float*) override {}
};

[[maybe_unused]] Result<MadeAgent> make(const AgentContext& context) {
  if (context.get<int64_t>("size") > 60) return Error{Code::no_space, context.table, "that is too large"};
  auto agent = std::make_unique<NoAgent>();
  MadeAgent made;
  made.products = BAD_PRODUCTS;
  made.agent = std::move(agent);
  return made;
}
[[maybe_unused]] Result<MadeAgent> make_fails(const AgentContext&) {
  return Error{Code::io_error, "/dev/moon", "is full"};
}
[[maybe_unused]] Result<MadeAgent> make_throws(const AgentContext&) {
  throw std::runtime_error("not today");
}
[[maybe_unused]] Result<MadeAgent> make_throws_a_number(const AgentContext&) {
  throw 42;
}
[[maybe_unused]] Result<MadeAgent> make_nothing(const AgentContext&) {
  return MadeAgent{};
}

[[maybe_unused]] constexpr tierd_param kParams[] = {
    {"size", TIERD_PARAM_INTEGER, 0, BAD_STANDARD, 0, 64, nullptr, "a size"},
    {"path", TIERD_PARAM_TEXT, 0, "here", 0, 0, nullptr, "a path"},
};

}  // namespace
}  // namespace tierd

using namespace tierd;  // NOLINT: the macros are written short

#ifdef BAD_NO_SYMBOL
#define tierd_agent_entry another_name
#endif
extern "C" __attribute__((visibility("default"))) const AgentEntry tierd_agent_entry;
extern "C" const AgentEntry tierd_agent_entry = {BAD_SIZE,   BAD_SERVES, BAD_BUILD_ID, BAD_NAME, BAD_SUMMARY,
                                                 BAD_PARAMS, 2,          BAD_MAKE};
