#include "tools/tier/compare/comparison.h"

#include <algorithm>
#include <span>

#include "core/engine/session.h"

namespace tierd {
namespace {

// Tokens of a window whose logits are held at once.
constexpr size_t kChunkTokens = 64;

// A run, its session, and the logits of the current chunk.
class Reader {
 public:
  explicit Reader(const Contestant& contestant)
      : engine_(*contestant.engine),
        step_tokens_(std::min({contestant.step_tokens, engine_.max_rows(), engine_.logit_rows()})),
        session_(engine_, 0),
        logits_(kChunkTokens * vocab()) {}

  void begin_window() { session_.clear(); }

  Status read(std::span<const uint32_t> chunk) {
    for (size_t at = 0; at < chunk.size(); at += step_tokens_) {
      const auto step = chunk.subspan(at, std::min<size_t>(step_tokens_, chunk.size() - at));
      TIERD_TRY(session_.append_with_logits(step, [&](size_t i, std::span<const float> logits) {
        std::ranges::copy(logits, logits_.begin() + static_cast<std::ptrdiff_t>((at + i) * vocab()));
      }));
    }
    return {};
  }

  std::span<const float> logits(size_t token) const {
    return std::span(logits_).subspan(token * vocab(), vocab());
  }

 private:
  size_t vocab() const { return engine_.vocab_size(); }

  Engine& engine_;
  size_t step_tokens_;
  Session session_;
  std::vector<float> logits_;  // [kChunkTokens x vocab]
};

}  // namespace

Result<Verdict> compare_on(const Contest& contest, ReferenceThread& thread,
                           const std::vector<std::vector<uint32_t>>& windows,
                           const std::function<void(uint64_t)>& progress) {
  Verdict verdict;
  Reader subject(contest.subject), store(contest.store);
  std::optional<Reader> published;
  if (contest.published) {
    published.emplace(*contest.published);
    verdict.published.emplace();
    verdict.store_itself.emplace();
  }
  for (const std::vector<uint32_t>& window : windows) {
    subject.begin_window();
    store.begin_window();
    if (published) published->begin_window();
    const std::span tokens(window);
    // The last token is only predicted, never an input.
    for (size_t at = 0; at + 1 < tokens.size();) {
      const auto chunk = tokens.subspan(at, std::min(kChunkTokens, tokens.size() - 1 - at));
      // The references compute while the subject waits for its devices.
      auto references = thread.run([&]() -> Status {
        TIERD_TRY(store.read(chunk));
        return published ? published->read(chunk) : Status();
      });
      const Status judged = subject.read(chunk);
      const Status compared_with = references.get();
      TIERD_TRY(judged);
      TIERD_TRY(compared_with);
      for (size_t i = 0; i < chunk.size(); ++i) {
        const uint32_t next = tokens[at + i + 1];
        verdict.subject.add(store.logits(i), subject.logits(i), next);
        if (!published) continue;
        verdict.published->add(published->logits(i), subject.logits(i), next);
        verdict.store_itself->add(published->logits(i), store.logits(i), next);
      }
      at += chunk.size();
      progress(chunk.size());
    }
  }
  return verdict;
}

}  // namespace tierd
