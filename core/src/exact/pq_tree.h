// Orders of leaves in which some sets of leaves are consecutive (Booth and Lueker's PQ-tree).
//
// A node is a leaf, a bunch (its children may come in any order) or a row (its children come in
// this order or in the reverse). Every way to choose these is one order of all leaves, and the
// tree stands for the set of them.
#pragma once

#include <vector>

namespace memplan::exact {

class PqTree {
 public:
  // One exchange, with what it takes to undo it later in any order that the tree still allows.
  struct Exchange {
    std::vector<int> out;  // the leaves that left, in an order that the tree allowed
    std::vector<int> in;   // those that took their place, in any order
    // If >= 0: a leaf that stayed. `out` is as written where the witness lies on the side that
    // `witness_first` says, and reversed where it lies on the other one.
    int witness = -1;
    bool witness_first = false;
  };

  PqTree() = default;
  // All orders of `leaves`; none may be negative.
  explicit PqTree(const std::vector<int>& leaves);

  // Keeps the orders in which the leaves of `exchange.out` are consecutive, and puts a bunch of
  // `exchange.in` in their place. `marked` says of each leaf whether it is in `out`. Returns false
  // if there is no such order; the tree must then not be used any more.
  bool apply(Exchange& exchange, const std::vector<char>& marked);

  // One of the orders.
  std::vector<int> order() const;

  // No leaf twice; a bunch and a row have children to order.
  bool check_invariants() const;

 private:
  enum class Kind { kLeaf, kBunch, kRow };

  struct Node {
    Kind kind = Kind::kLeaf;
    int leaf = -1;
    int leaves = 1;  // below this node, itself included
    int marked = 0;  // of those, leaves of the set at work
    std::vector<Node> children;

    bool full() const { return marked == leaves; }
    bool empty() const { return marked == 0; }
  };

  static Node make(Kind kind, std::vector<Node> children);
  static Node bunch_of(const std::vector<int>& leaves);
  static void list(const Node& node, std::vector<int>& order);
  static bool is_sound(const Node& node);
  static int count(Node& node, const std::vector<char>& marked);
  static bool comb(Node node, std::vector<Node>& row);
  static bool gather_bunch(Node& node, Exchange& exchange);
  static bool gather_row(Node& node, Exchange& exchange);
  static void replace_run(std::vector<Node>& row, Exchange& exchange);

  Node root_;
};

}  // namespace memplan::exact
