// What a plugin in C++17 sees of its host: a view of tierd_host. Header-only; part of plugin.hpp.
#ifndef TIERD_HOST_HPP
#define TIERD_HOST_HPP

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>

#include "tierd/plugin.h"

namespace tierd {

// Thrown for an answer other than TIERD_E_INTERNAL.
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
  // The expert whose operator a site is; TIERD_NO_EXPERT where every step passes it, as it does all sites of
  // a host older than 2.7.
  uint32_t expert(uint32_t s) const {
    return fills(site(s), &tierd_site_view::expert) ? site(s).expert : TIERD_NO_EXPERT;
  }
  // Whether each neuron of the site gives something to every row. Under a host older than 2.10, which does
  // not tell: no.
  bool never_silent(uint32_t s) const {
    return fills(site(s), &tierd_site_view::never_silent) && site(s).never_silent != 0;
  }
  // Whether a step that passes site `s` is known to pass `later`, of this step or the next one.
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
  // What the cache of that memory may share out at present. Throws where the host is older than 2.1, which
  // does not tell.
  uint64_t memory_bytes(uint32_t m) const {
    if (!fills(memory(m), &tierd_memory_view::bytes))
      throw Failure(TIERD_E_UNSUPPORTED, "needs a host that tells how many bytes memories have");
    return memory(m).bytes;
  }
  // How many bytes the memory's staging blocks have; 0 under a host older than 2.3, which does not tell.
  uint64_t staging_bytes(uint32_t m) const {
    return fills(memory(m), &tierd_memory_view::staging_bytes) ? memory(m).staging_bytes : 0;
  }
  // The edition in which a memory holds what others hold in this one. Under a host older than 2.2 all hold
  // the same.
  uint32_t held(uint32_t m, uint32_t edition) const {
    return fills(*table_, &tierd_host::held) ? table_->held(table_->context, m, edition) : edition;
  }
  uint32_t n_units() const { return table_->n_units; }
  const tierd_unit_view& unit(uint32_t u) const { return *table_->units[u]; }
  // The memory that a cache belongs to.
  const tierd_memory_view& own_memory() const { return memory(table_->memory); }

  // Wishes for neurons of a site that lies so far ahead, all of them or a list, in the memory that they will
  // be computed from; of a cache, in its own.
  void wish(uint32_t site, uint32_t distance) const { add({}, site, distance, 0, nullptr); }
  void wish(uint32_t site, uint32_t distance, const uint32_t* idx, uint32_t n,
            const float* score = nullptr) const {
    add({}, site, distance, n, idx != nullptr ? idx : &kNobody, score);
  }
  // Wishes for a list in a memory, or in an edition, that the plugin names.
  struct Where {
    uint32_t memory = TIERD_NO_MEMORY;
    uint32_t edition = TIERD_NO_EDITION;
  };
  void wish(const Where& where, uint32_t site, uint32_t distance, const uint32_t* idx, uint32_t n) const {
    add(where, site, distance, n, idx);
  }
  // A cache says in `fill` which neurons of an edition it wants to have from the start, in `idle` which it
  // would have now; idx NULL: all of them.
  void want(uint32_t edition, const uint32_t* idx, uint32_t n) const {
    add({TIERD_NO_MEMORY, edition}, TIERD_NO_SITE, 0, n, idx);
  }
  // How hot the neurons of a site are, [n] from 0 to TIERD_HOTTEST; NULL where nobody can say, which is so
  // under a host older than 2.4.
  const uint8_t* heat(uint32_t site) const {
    return fills(*table_, &tierd_host::heat) ? table_->heat(table_->context, site) : nullptr;
  }
  // What a read of the store into memory `m` costs beside the bytes that it brings, in bytes; 0 where nobody
  // knows, which is so under a host older than 2.6, and while strategies are created.
  uint64_t gap_bytes(uint32_t m) const {
    return fills(memory(m), &tierd_memory_view::gap_bytes) ? memory(m).gap_bytes : 0;
  }
  // Which neurons of an edition need not be read from the store, here [n] of 1 and 0. Throws where the host
  // is older than 2.6, which does not tell.
  void resident(uint32_t edition, uint8_t* here) const {
    if (!fills(*table_, &tierd_host::resident))
      throw Failure(TIERD_E_UNSUPPORTED, "needs a host that tells what is resident");
    if (table_->resident(table_->context, edition, here) < 0)
      throw Failure(TIERD_E_INVALID, "resident: there is no edition " + std::to_string(edition));
  }
  // A balancer says in `rebalance` which neurons of an edition should have their home with the unit that
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
  static constexpr uint32_t kNobody = 0;  // an empty list is not the same as none

  // Whether the host is young enough to know this member of a table.
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
