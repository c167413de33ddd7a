#include "tools/lab/profile/ratio_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tierd {

std::string ratio_table(const std::vector<RatioScore>& scores, const std::vector<std::string>& names) {
  const bool swept = scores.front().perplexity != 0;
  std::string text = fmt::format("  {:<20} {:>8} {:>8} {:>14}{}\n", fmt::format("{}", fmt::join(names, "/")),
                                 "kept", "bits", "UQEst, nats", swept ? "    perplexity" : "");
  const size_t chosen = surest(scores);
  for (size_t i = 0; i < scores.size(); ++i) {
    const RatioScore& score = scores[i];
    text += fmt::format("{} {:<20} {:>6.1f} % {:>8.2f} {:>14.2f}", i == chosen ? "*" : " ",
                        ratios_text(score.shares), 100 * kept_share(score.shares), score.bits, score.entropy);
    text += swept ? fmt::format(" {:>13.4f}\n", score.perplexity) : "\n";
  }
  text += "* least uncertain (Algorithm 1)\n";
  if (swept) {
    const RatioScore& of_all = scores[best(scores)];
    text += fmt::format("least perplexity of all: {} of {:.1f} %; the chosen one has {:+.2f} %\n",
                        ratios_text(of_all.shares), 100 * kept_share(of_all.shares),
                        100 * (scores[chosen].perplexity / of_all.perplexity - 1));
  }
  return text;
}

std::string ratio_toml(const RatioScore& chosen, const std::string& source, bool keeps) {
  std::string text =
      fmt::format("# {}: {:.2f} bits a value, UQEst {:.2f} nats\n", source, chosen.bits, chosen.entropy);
  if (keeps)
    text += fmt::format("[predictor]\nname = \"low-rank\"\nkeep = {:.6g}\n\n", kept_share(chosen.shares));
  return text + fmt::format("[quantizer]\nname = \"mixed\"\nratios = \"{}\"\n", ratios_text(chosen.shares));
}

}  // namespace tierd
