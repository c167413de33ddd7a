// Base class of a cache that evicts neurons in an order, edition by edition. Every missing neuron is loaded
// to stay; the first neuron of the order is evicted for it. Optional; C++17, header-only.
//
//   class Lru : public tierd::EvictionOrder {
//    public:
//     using EvictionOrder::EvictionOrder;
//     void touch(const tierd_set_view& used) { … order(used.edition).move_to_end(neuron); … }
//   };
//   TIERD_PLUGIN(tierd::cache<Lru>("lru", "1.0", "…"))
#ifndef TIERD_POLICY_EVICTION_ORDER_HPP
#define TIERD_POLICY_EVICTION_ORDER_HPP

#include <cstdint>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/policy/split.hpp"

namespace tierd {

// Numbers below `n` in an order, each at most once. Allocates only when it is constructed.
class Order {
 public:
  class Iterator {
   public:
    Iterator(const Order& of, uint32_t at) : of_(&of), at_(at) {}
    uint32_t operator*() const { return at_; }
    Iterator& operator++() { return at_ = of_->links_[at_].next, *this; }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    const Order* of_;
    uint32_t at_;
  };

  explicit Order(uint32_t n) : end_(n), links_(size_t{n} + 1, Link{kAbsent, kAbsent}) {
    links_[end_] = {end_, end_};
  }

  Iterator begin() const { return {*this, links_[end_].next}; }
  Iterator end() const { return {*this, end_}; }
  uint64_t size() const { return size_; }
  bool contains(uint32_t i) const { return links_[i].next != kAbsent; }

  // Does nothing if `i` is in the order already.
  void append(uint32_t i) {
    if (contains(i)) return;
    link_last(i);
    ++size_;
  }
  // Does nothing if `i` is not in the order.
  void move_to_end(uint32_t i) {
    if (!contains(i)) return;
    unlink(i);
    link_last(i);
  }
  void remove(uint32_t i) {
    if (!contains(i)) return;
    unlink(i);
    links_[i] = {kAbsent, kAbsent};
    --size_;
  }

 private:
  static constexpr uint32_t kAbsent = UINT32_MAX;
  struct Link {
    uint32_t before, next;
  };
  void link_last(uint32_t i) {
    const uint32_t last = links_[end_].before;
    links_[i] = {last, end_};
    links_[last].next = links_[end_].before = i;
  }
  void unlink(uint32_t i) {
    const Link link = links_[i];
    links_[link.before].next = link.next;
    links_[link.next].before = link.before;
  }

  uint32_t end_;  // the place between the last and the first
  std::vector<Link> links_;
  uint64_t size_ = 0;
};

class EvictionOrder {
 public:
  explicit EvictionOrder(const Host& host) : host_(host) {
    for (uint32_t e = 0; e < host.n_editions(); ++e) orders_.emplace_back(host.edition(e).n);
  }

  void share(uint64_t bytes, uint32_t* max_slots) { split_whole_first(host_, bytes, max_slots); }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    victims.n = 0;
    for (uint32_t e = 0; e < host_.n_editions(); ++e) {
      name_surplus(host_, e, orders_[e], max_slots[e], victims);
    }
  }

  void admit(const tierd_set_view& missing, int /*priority*/, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    const Order& order = orders_[missing.edition];
    auto first = order.begin();
    victims.n = 0;
    for (uint32_t i = 0; i < missing.n; ++i) {
      verdict[i] = TIERD_VERDICT_KEEP;
      if (free_slots > 0) {
        --free_slots;
        continue;
      }
      while (first != order.end() && !host_.evictable(missing.edition, *first)) ++first;
      if (first == order.end() || victims.n == victims.cap) {
        verdict[i] = TIERD_VERDICT_BYPASS;
        continue;
      }
      victims.item[victims.n++] = {missing.edition, *first};
      ++first;
    }
  }

  void landed(uint32_t edition, const uint32_t* idx, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) orders_[edition].append(idx[i]);
  }
  void dropped(uint32_t edition, const uint32_t* idx, uint32_t n, int /*why*/) {
    for (uint32_t i = 0; i < n; ++i) orders_[edition].remove(idx[i]);
  }

 protected:
  // The edition's resident neurons, the next one to evict first.
  Order& order(uint32_t edition) { return orders_[edition]; }

 private:
  Host host_;
  std::vector<Order> orders_;  // [editions]
};

}  // namespace tierd
#endif
