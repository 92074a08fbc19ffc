#include "exact/pq_tree.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "util/invariants.h"

namespace memplan::exact {

PqTree::PqTree(const std::vector<int>& leaves) : root_(bunch_of(leaves)) {}

PqTree::Node PqTree::make(Kind kind, std::vector<Node> children) {
  if (children.size() == 1) return std::move(children[0]);
  Node node;
  node.kind = kind;
  node.leaves = node.marked = 0;
  for (const Node& child : children) {
    node.leaves += child.leaves;
    node.marked += child.marked;
  }
  node.children = std::move(children);
  return node;
}

PqTree::Node PqTree::bunch_of(const std::vector<int>& leaves) {
  std::vector<Node> children(leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) children[i].leaf = leaves[i];
  return make(Kind::kBunch, std::move(children));
}

void PqTree::list(const Node& node, std::vector<int>& order) {
  if (node.kind == Kind::kLeaf) order.push_back(node.leaf);
  for (const Node& child : node.children) list(child, order);
}

std::vector<int> PqTree::order() const {
  std::vector<int> result;
  list(root_, result);
  return result;
}

bool PqTree::is_sound(const Node& node) {
  if (!kAssertions) return true;
  if (node.kind == Kind::kLeaf) return node.children.empty() && node.leaf >= 0;
  return node.children.size() > 1 &&
         std::all_of(node.children.begin(), node.children.end(), is_sound);
}

bool PqTree::check_invariants() const {
  if (!kAssertions) return true;
  MEMPLAN_ASSERT(is_sound(root_));
  std::vector<int> leaves = order();
  std::sort(leaves.begin(), leaves.end());
  MEMPLAN_ASSERT(std::adjacent_find(leaves.begin(), leaves.end()) == leaves.end());
  return true;
}
int PqTree::count(Node& node, const std::vector<char>& marked) {
  if (node.kind == Kind::kLeaf) {
    node.leaves = 1;
    return node.marked = marked[node.leaf];
  }
  node.leaves = node.marked = 0;
  for (Node& child : node.children) {
    node.marked += count(child, marked);
    node.leaves += child.leaves;
  }
  return node.marked;
}

bool PqTree::apply(Exchange& exchange, const std::vector<char>& marked) {
  count(root_, marked);
  MEMPLAN_ASSERT(root_.marked == static_cast<int>(exchange.out.size()) && root_.marked > 0);
  // The lowest node that has the whole set below it: nothing above it changes.
  Node* node = &root_;
  for (bool deeper = true; deeper && !node->full();) {
    deeper = false;
    for (Node& child : node->children) {
      if (child.marked != root_.marked) continue;
      node = &child;
      deeper = true;
      break;
    }
  }
  if (node->full()) {
    list(*node, exchange.out = {});
    *node = bunch_of(exchange.in);
    return true;
  }
  return node->kind == Kind::kBunch ? gather_bunch(*node, exchange) : gather_row(*node, exchange);
}

// Appends to `row` what a node with marked and other leaves becomes if its marked leaves have to
// be at the end: all of it in one row. Nodes that are not mixed stay whole.
bool PqTree::comb(Node node, std::vector<Node>& row) {
  if (node.full() || node.empty()) {
    row.push_back(std::move(node));
    return true;
  }
  if (node.kind == Kind::kRow) {
    if (node.children.front().full() || node.children.back().empty()) {
      std::reverse(node.children.begin(), node.children.end());
    }
    bool begun = false;
    for (Node& child : node.children) {
      if (begun && !child.full()) return false;
      begun = begun || !child.empty();
      if (!comb(std::move(child), row)) return false;
    }
    return true;
  }
  std::vector<Node> rest, full, mixed;
  for (Node& child : node.children) {
    (child.full() ? full : child.empty() ? rest : mixed).push_back(std::move(child));
  }
  if (mixed.size() > 1) return false;
  if (!rest.empty()) row.push_back(make(Kind::kBunch, std::move(rest)));
  if (!mixed.empty() && !comb(std::move(mixed[0]), row)) return false;
  if (!full.empty()) row.push_back(make(Kind::kBunch, std::move(full)));
  return true;
}

// The marked leaves are spread over several children of a bunch:
//
//      bunch( a  b  F1 F2  X Y )  ->  bunch( a  b  row( x.. [X's marked  F  Y's marked] ..y ) )
//
// F: wholly marked; X, Y: mixed, at most two, one for either end.
bool PqTree::gather_bunch(Node& node, Exchange& exchange) {
  std::vector<Node> rest, full, mixed;
  for (Node& child : node.children) {
    (child.full() ? full : child.empty() ? rest : mixed).push_back(std::move(child));
  }
  MEMPLAN_ASSERT(full.size() + mixed.size() > 1);
  if (mixed.size() > 2) return false;
  std::vector<Node> row;
  if (!mixed.empty() && !comb(std::move(mixed[0]), row)) return false;
  if (!full.empty()) row.push_back(make(Kind::kBunch, std::move(full)));
  if (mixed.size() == 2) {
    std::vector<Node> other;
    if (!comb(std::move(mixed[1]), other)) return false;
    std::move(other.rbegin(), other.rend(), std::back_inserter(row));
  }
  replace_run(row, exchange);
  rest.push_back(make(Kind::kRow, std::move(row)));
  node = make(Kind::kBunch, std::move(rest));
  return true;
}

// The same in a row: the wholly marked children must be consecutive, a mixed one may be at either
// end of them.
bool PqTree::gather_row(Node& node, Exchange& exchange) {
  std::vector<Node> row;
  bool begun = false, ended = false;
  for (Node& child : node.children) {
    const bool opens = !begun && !child.empty();
    if (ended && !child.empty()) return false;
    ended = ended || (begun && !child.full());
    begun = begun || opens;
    std::vector<Node> part;
    if (!comb(std::move(child), part)) return false;
    if (!opens) std::reverse(part.begin(), part.end());
    std::move(part.begin(), part.end(), std::back_inserter(row));
  }
  replace_run(row, exchange);
  node = make(Kind::kRow, std::move(row));
  return true;
}

// Puts a bunch of the new leaves in the place of the wholly marked children, a run by now. A leaf
// next to the run witnesses which way round the row is in the end.
void PqTree::replace_run(std::vector<Node>& row, Exchange& exchange) {
  const auto full = [](const Node& node) { return node.full(); };
  const auto begin = std::find_if(row.begin(), row.end(), full);
  const auto end = std::find_if_not(begin, row.end(), full);
  MEMPLAN_ASSERT(begin != end);
  for (auto it = row.begin(); it != begin; ++it) MEMPLAN_ASSERT(it->empty());
  for (auto it = end; it != row.end(); ++it) MEMPLAN_ASSERT(it->empty());
  exchange.out.clear();
  for (auto it = begin; it != end; ++it) list(*it, exchange.out);
  std::vector<int> beside;
  exchange.witness_first = begin != row.begin();
  if (begin != row.begin()) {
    list(row.front(), beside);
  } else if (end != row.end()) {
    list(row.back(), beside);
  }
  if (!beside.empty()) exchange.witness = beside[0];
  *begin = bunch_of(exchange.in);
  row.erase(begin + 1, end);
}

}  // namespace memplan::exact
