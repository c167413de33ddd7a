// A cache in C++: keeps the first neurons that are loaded, for ever. Copy it, rename it, change `admit`.
//
//   g++ -std=c++17 -O2 -fPIC -shared -fvisibility=hidden $(pkg-config --cflags tierd) -o cache-first.so
//     cache_cpp.cc
//   tierd --plugin-path . --set cache.name=first …
#include "tierd/plugin.hpp"
#include "tierd/policy/split.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::integer("most", "1000000", 0, 1000000, "number of neurons kept of an edition"),
};

class First {
 public:
  explicit First(const tierd::Host& host) : host_(host), most_(host.integer("most")) {}

  void share(uint64_t bytes, uint32_t* max_slots) {
    for (uint32_t e = 0; e < host_.n_editions(); ++e) {
      if (max_slots[e] > most_) max_slots[e] = static_cast<uint32_t>(most_);
    }
    tierd::split_evenly(host_, bytes, max_slots);
  }

  void admit(const tierd_set_view& missing, int /*priority*/, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    victims.n = 0;
    for (uint32_t i = 0; i < missing.n; ++i) {
      verdict[i] = i < free_slots ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
    }
  }

 private:
  tierd::Host host_;
  int64_t most_;
};

}  // namespace

TIERD_PLUGIN(tierd::with_params(tierd::cache<First>("first", "1.0",
                                                    "keeps the neurons that were loaded first"),
                                kParams))
