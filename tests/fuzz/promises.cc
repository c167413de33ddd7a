#include "tests/fuzz/promises.h"

#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/model/text/tokenizer.h"
#include "core/store/manifest_check.h"
#include "core/store/planner.h"

namespace tierd {

void expect_one_line(const Error& error, std::string_view path) {
  const std::string line = error.line();
  TIERD_CHECK_MSG(line.find('\n') == std::string::npos, line);
  TIERD_CHECK_MSG(line.starts_with(path), line);
  TIERD_CHECK_MSG(!error.detail.empty(), line);
}

void expect_model(const Result<std::unique_ptr<TensorSource>>& opened, std::string_view path) {
  if (!opened.ok()) return expect_one_line(opened.error(), path);
  const TensorSource& source = **opened;
  for (const TensorInfo& tensor : source.tensors()) {
    const auto values = source.read_f32(tensor);
    TIERD_CHECK_MSG(values.ok(), values.error().line());
    TIERD_CHECK(values->size() == tensor.rows * tensor.cols);
  }
  const auto plan = plan_layout(source.config(), source.tensors(), {});
  TIERD_CHECK_MSG(plan.ok(), plan.error().line());
  const Status sound = check_manifest(*plan, path);
  TIERD_CHECK_MSG(sound.ok(), sound.error().line());
  if (source.vocab() != nullptr) expect_tokenizer(*source.vocab(), path, source.config().name);
}

void expect_tokenizer(const Vocab& vocab, std::string_view path, std::string_view text) {
  const auto tokenizer = make_tokenizer(vocab, path);
  if (!tokenizer.ok()) return expect_one_line(tokenizer.error(), path);
  for (const bool special : {false, true}) {
    const std::vector<uint32_t> tokens = (*tokenizer)->encode(text, special, special);
    for (const uint32_t token : tokens) TIERD_CHECK(token < vocab.pieces.size());
    (void)(*tokenizer)->decode(tokens, special);
  }
}

}  // namespace tierd
