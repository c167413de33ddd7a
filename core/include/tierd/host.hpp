// The host as a plugin in C++17 sees it: a view of tierd_host. Header-only; part of plugin.hpp.
#ifndef TIERD_HOST_HPP
#define TIERD_HOST_HPP

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>

#include "tierd/plugin.h"

namespace tierd {

// Thrown to return an error code other than TIERD_E_INTERNAL.
class Failure : public std::runtime_error {
 public:
  Failure(int code, const std::string& why) : std::runtime_error(why), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

class Host {
 public:
  explicit Host(const tierd_host* table) : table_(table) {}

  uint64_t seed() const { return table_->seed; }
  uint32_t n_sites() const { return table_->n_sites; }
  const tierd_site_view& site(uint32_t s) const { return *table_->sites[s]; }
  // Returns the expert whose operator a site is; TIERD_NO_EXPERT for a site that every step passes, and for
  // every site under a host older than 2.7.
  uint32_t expert(uint32_t s) const {
    return fills(site(s), &tierd_site_view::expert) ? site(s).expert : TIERD_NO_EXPERT;
  }
  // Returns whether each neuron of the site contributes to every row; false under a host older than 2.10.
  bool never_silent(uint32_t s) const {
    return fills(site(s), &tierd_site_view::never_silent) && site(s).never_silent != 0;
  }
  // Returns whether a step that passes site `s` is known to pass `later`, of this step or the next one.
  bool surely_passes(uint32_t s, uint32_t later) const {
    if (expert(later) == TIERD_NO_EXPERT) return true;
    return later > s && expert(later) == expert(s) && site(later).layer == site(s).layer;
  }
  uint32_t n_editions() const { return table_->n_editions; }
  const tierd_edition_view& edition(uint32_t e) const { return *table_->editions[e]; }
  // The site whose neurons edition `e` holds.
  const tierd_site_view& site_of(uint32_t e) const { return site(edition(e).site); }

  // Declared parameters. Throw when the plugin did not declare them so.
  int64_t integer(const char* name) const { return get<int64_t>(table_->integer, name); }
  double number(const char* name) const { return get<double>(table_->number, name); }
  bool flag(const char* name) const { return get<uint8_t>(table_->flag, name) != 0; }
  const char* text(const char* name) const { return get<const char*>(table_->text, name); }

  void log(int level, const std::string& line) const { table_->log(table_->context, level, line.c_str()); }
  void metric(const char* name, double value) const { (void)table_->metric(table_->context, name, value); }
  // Throws std::bad_alloc.
  void* scratch(uint64_t bytes) const {
    void* memory = table_->scratch(table_->context, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  uint32_t n_memories() const { return table_->n_memories; }
  const tierd_memory_view& memory(uint32_t m) const { return *table_->memories[m - 1]; }
  // Returns the bytes that the cache of that memory may share out. Throws if the host is older than 2.1.
  uint64_t memory_bytes(uint32_t m) const {
    if (!fills(memory(m), &tierd_memory_view::bytes))
      throw Failure(TIERD_E_UNSUPPORTED, "needs a host that tells how many bytes memories have");
    return memory(m).bytes;
  }
  // Returns the bytes of the memory's staging blocks; 0 under a host older than 2.3.
  uint64_t staging_bytes(uint32_t m) const {
    return fills(memory(m), &tierd_memory_view::staging_bytes) ? memory(m).staging_bytes : 0;
  }
  // Returns the edition held in place of the given one; under a host older than 2.2 the same one.
  uint32_t held(uint32_t m, uint32_t edition) const {
    return fills(*table_, &tierd_host::held) ? table_->held(table_->context, m, edition) : edition;
  }
  uint32_t n_units() const { return table_->n_units; }
  const tierd_unit_view& unit(uint32_t u) const { return *table_->units[u]; }
  // The memory that a cache belongs to.
  const tierd_memory_view& own_memory() const { return memory(table_->memory); }

  // Requests neurons of a site `distance` sites ahead, all of them or a list, in the memory that they will be
  // computed from (a cache: in its own memory).
  void wish(uint32_t site, uint32_t distance) const { add({}, site, distance, 0, nullptr); }
  void wish(uint32_t site, uint32_t distance, const uint32_t* idx, uint32_t n,
            const float* score = nullptr) const {
    add({}, site, distance, n, idx != nullptr ? idx : &kNobody, score);
  }
  // Requests a list of neurons in a memory, or in an edition, that the plugin names.
  struct Where {
    uint32_t memory = TIERD_NO_MEMORY;
    uint32_t edition = TIERD_NO_EDITION;
  };
  void wish(const Where& where, uint32_t site, uint32_t distance, const uint32_t* idx, uint32_t n) const {
    add(where, site, distance, n, idx);
  }
  // For a cache: requests neurons of an edition to have from the start (in `fill`), or to fetch now (in
  // `idle`); idx NULL: all of them.
  void want(uint32_t edition, const uint32_t* idx, uint32_t n) const {
    add({TIERD_NO_MEMORY, edition}, TIERD_NO_SITE, 0, n, idx);
  }
  // Returns the heat of a site's neurons, [n] from 0 to TIERD_HOTTEST; NULL if unknown (host before 2.4).
  const uint8_t* heat(uint32_t site) const {
    return fills(*table_, &tierd_host::heat) ? table_->heat(table_->context, site) : nullptr;
  }
  // Returns the cost of a read of the store into memory `m` beyond the bytes that it fetches, in bytes; 0 if
  // it is not known, as under a host older than 2.6 and while strategies are created.
  uint64_t gap_bytes(uint32_t m) const {
    return fills(memory(m), &tierd_memory_view::gap_bytes) ? memory(m).gap_bytes : 0;
  }
  // Writes here [n]: 1 for a neuron that need not be read from the store, else 0. Throws before host 2.6.
  void resident(uint32_t edition, uint8_t* here) const {
    if (!fills(*table_, &tierd_host::resident))
      throw Failure(TIERD_E_UNSUPPORTED, "needs a host that tells what is resident");
    if (table_->resident(table_->context, edition, here) < 0)
      throw Failure(TIERD_E_INVALID, "resident: there is no edition " + std::to_string(edition));
  }
  // For a balancer, in `rebalance`: requests that neurons of an edition get their home with the unit that
  // computes from a memory.
  void move(uint32_t memory, uint32_t edition, const uint32_t* idx, uint32_t n) const {
    add({memory, edition}, TIERD_NO_SITE, 0, n, idx);
  }
  uint64_t holders(uint32_t edition, uint32_t neuron) const {
    return table_->holders(table_->context, edition, neuron);
  }
  uint32_t home(uint32_t edition, uint32_t neuron) const {
    return table_->home(table_->context, edition, neuron);
  }
  bool evictable(uint32_t edition, uint32_t neuron) const {
    return table_->evictable(table_->context, edition, neuron) != 0;
  }
  bool at_home(uint32_t edition, uint32_t neuron) const {
    return table_->at_home(table_->context, edition, neuron) != 0;
  }
  bool has_tensor(const char* name) const {
    tierd_tensor_view view{};
    view.size = sizeof view;
    return table_->tensor(table_->context, name, &view) >= 0;
  }
  tierd_tensor_view tensor(const char* name) const {
    tierd_tensor_view view{};
    view.size = sizeof view;
    if (table_->tensor(table_->context, name, &view) < 0) {
      throw Failure(TIERD_E_INVALID, "there is no tensor '" + std::string(name) + "'");
    }
    return view;
  }
  void linear(uint32_t tensor, const float* x, uint32_t rows, float* y) const {
    if (table_->linear(table_->context, tensor, x, rows, y) < 0) {
      throw Failure(TIERD_E_INVALID, "linear: tensor " + std::to_string(tensor) + " has no rows and columns");
    }
  }

 private:
  static constexpr uint32_t kNobody = 0;  // stands for an empty list, since NULL means all neurons

  // Returns whether the host is new enough to have this member of a table.
  template <class Table, class Member>
  static bool fills(const Table& table, Member Table::*member) {
    const auto* const begin = reinterpret_cast<const char*>(&table);
    const auto* const end = reinterpret_cast<const char*>(&(table.*member) + 1);
    return table.size >= static_cast<size_t>(end - begin);
  }

  void add(const Where& where, uint32_t site, uint32_t distance, uint32_t n, const uint32_t* idx,
           const float* score = nullptr) const {
    const tierd_wish wish = {sizeof wish, where.memory, site, distance, where.edition, n, idx, score};
    const int answer = table_->wish(table_->context, &wish);
    if (answer < 0) throw Failure(answer, "a wish that the host does not take");
  }
  template <class T>
  T get(int (*function)(void*, const char*, T*), const char* name) const {
    T value{};
    if (function(table_->context, name, &value) < 0) {
      throw Failure(TIERD_E_INVALID, "parameter '" + std::string(name) + "' was not declared so");
    }
    return value;
  }

  const tierd_host* table_;
};

}  // namespace tierd
#endif
