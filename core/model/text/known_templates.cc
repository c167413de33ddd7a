#include "core/model/text/known_templates.h"

#include <algorithm>
#include <array>

#include "core/base/checksum.h"
#include "core/model/text/jinja_text.h"

namespace tierd {
namespace {

constexpr const char* kSmolLm = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
constexpr const char* kMath = "Please reason step by step, and put your final answer within \\boxed{}.";

constexpr std::array kKnown = {
    KnownTemplate{0x25b5a15fd3118d09, "chatml"},  // OpenHermes 2.5, and most templates called ChatML
    KnownTemplate{0xb0b5cd24385e03d3, "chatml"},  // the same, with add_generation_prompt optional
    KnownTemplate{0xf706351bba95b88c, "chatml"},  // the same behind BOS
    KnownTemplate{.checksum = 0x61e2a15da1f33787, .family = "chatml", .ends_with_user = true},
    KnownTemplate{0x282e20face4f3ffd, "chatml"},  // Qwen3-Coder
    KnownTemplate{
        .checksum = 0xfa2bf612131caafb, .family = "chatml", .empty_system = EmptySystem::goes_first},  // LFM2
    KnownTemplate{.checksum = 0x0787475078f84b2d, .family = "chatml", .silent = kSmolLm},  // SmolLM2
    KnownTemplate{.checksum = 0xb05dfd012d954f33, .family = "chatml", .silent = kMath},    // Qwen2.5-Math
    KnownTemplate{.checksum = 0xcb20ebd6614f897b, .family = "chatml", .silent = kMath},
    KnownTemplate{0x67d54853900105b1, "qwen1.5"},
    KnownTemplate{0x4ddb19b468f4db4c, "qwen2"},
    KnownTemplate{0x1a06ff13ddd02c41, "qwen2"},    // Qwen2.5's, with Qwen2's default system message
    KnownTemplate{0xa65d371209af7092, "qwen2"},    // Qwen2.5-Coder's, with Qwen2's default system message
    KnownTemplate{0x06e07656cf680de4, "qwen2.5"},  // Qwen2.5, Qwen2.5-Coder 0.5B
    KnownTemplate{0x7caa8daaea23fc33, "qwen2.5"},  // Qwen2.5-Coder 1.5B
    KnownTemplate{0xf1e56ce076c5ddec, "qwen2.5"},  // without tools
    KnownTemplate{.checksum = 0x9e563dd7ddaa747c, .family = "qwen3", .ends_with_user = true},
    KnownTemplate{0xa6a59eb431cf6f92, "llama3"},
    KnownTemplate{0x2d11e87fb29ec55c, "llama3"},    // the same, with add_generation_prompt
    KnownTemplate{0x6f3a6a70ebc36369, "llama3.1"},  // Llama 3.1 and 3.3
    KnownTemplate{0xa425ad077622544a, "llama3.1"},  // Llama 3.2
    KnownTemplate{.checksum = 0xccf9643cea542c8a, .family = "llama2", .takes_turns = true},
    KnownTemplate{.checksum = 0x7d7ae6531438b0ee, .family = "mistral", .takes_turns = true},
    KnownTemplate{.checksum = 0x529cb18e5dd48d5b, .family = "mistral-v1", .takes_turns = true},
    KnownTemplate{.checksum = 0x149cbb4b4c840ea9,
                  .family = "mistral-v3",
                  .takes_turns = true,
                  .ends_with_user = true},  // Mistral Large 2407
    KnownTemplate{.checksum = 0x1490a7bb7e102a8a,
                  .family = "mistral-v3-tekken",
                  .takes_turns = true,
                  .ends_with_user = true},            // Mistral Nemo
    KnownTemplate{0x2bc97dec269f6bf0, "mistral-v7"},  // Mistral Large 2411
    KnownTemplate{0xff0b2fde912c15c6, "deepseek2"},   // DeepSeek V2
    KnownTemplate{.checksum = 0x9b1e0deea8f12bcd, .family = "deepseek", .system_first = true},  // Coder
    KnownTemplate{.checksum = 0x910b1fab9a18d5ee, .family = "deepseek-r1", .system_first = true},
    KnownTemplate{
        .checksum = 0x811ae39b23422452, .family = "phi3", .empty_system = EmptySystem::goes},  // Phi 3.5
    KnownTemplate{0xa098b37dd86a332d, "phi3"},                                                 // Phi 3 small
    KnownTemplate{.checksum = 0x28c93458c632b233, .family = "phi3", .ends_with_user = true},   // Phi 3 vision
    KnownTemplate{
        .checksum = 0xf9a1eebc57c01ac2, .family = "phi4", .takes_turns = true, .ends_with_user = true},
    KnownTemplate{0x90a0e467f83bee1a, "zephyr"},  // Zephyr, TinyLlama
};

}  // namespace

const KnownTemplate* find_known_template(std::string_view chat_template) {
  const uint64_t sought = checksum(canonical_jinja(chat_template));
  const auto found = std::ranges::find(kKnown, sought, &KnownTemplate::checksum);
  return found == kKnown.end() ? nullptr : &*found;
}

}  // namespace tierd
