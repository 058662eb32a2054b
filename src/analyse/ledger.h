// The ledger of one pass over an FX graph whose nodes carried synthetic ids: what became of each id, and by which line.
// Must not know: torch, captures; all it is given is plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kerntrail/expected.h"

namespace kerntrail::analyse {

// 1..N: the nodes given ids, in the order of the graph (key and id are one); N+1...: those made by the pass, in the
// order of their making. 0: a node without a key (the graph's output).
using NodeKey = std::uint32_t;

struct GivenNode {
  std::string name;
  std::vector<NodeKey> inputs, users;
  bool is_pure = true;  // may be erased where nothing uses it
  std::vector<std::string> fields;  // provenance fields it holds, the synthetic ones among them
};

struct MadeNode {
  std::string name;
  std::string loc;  // "file:line" of the pass's code; empty where there is none
};

struct NodeAfter {
  NodeKey key = 0;
  std::optional<std::string> stack_trace;
  std::vector<std::string> from_node;  // pass names of the whole chain
  std::vector<std::string> fields;
};

struct Replaced {
  NodeKey from = 0, to = 0;
  std::string loc;
};

// An erasure, or a write to the provenance of a node.
struct Touched {
  NodeKey node = 0;
  std::string loc;
};

// All that was seen of one pass. Events are in the order they happened.
struct PassObservation {
  std::string pass;
  std::string tag;  // of this run: ids of another are ids that nobody gave
  std::vector<GivenNode> given;
  std::vector<MadeNode> made;
  std::vector<NodeAfter> after;  // the nodes of the graph that the pass left, without its output
  std::vector<Replaced> replaced;
  std::vector<Touched> erased, written;
};

// What became of an id. An id has one of these, so that their numbers sum to the ids.
enum class IdFate : std::uint8_t {
  kSurvived,  // its node is there and names it, and no new node does
  kCarried,  // its node is gone; one other names it
  kDuplicated,  // several nodes name it
  kMerged,  // its node is gone; a node that stands for others too has its place
  kElided,  // its node is gone, and so is what it computed: replaced by something it was computed from, or dead
  kLost,  // nothing names it, though something stands for what it computed or may do so
  kOverwritten  // its node is there, and names another source
};
inline constexpr std::size_t kIdFates = 7;
std::string_view id_fate_name(IdFate fate);

struct LedgerEntry {
  std::uint32_t id = 0;
  std::string node;
  IdFate fate = IdFate::kLost;
  std::vector<std::string> heirs;  // the nodes that name it, else the one that has its place
  bool is_named = false;  // whether any node names it
  std::vector<std::string> without;  // fields that an heir lacks, though this node held them
  std::string loc;  // the line that made, erased or wrote; empty where nothing happened or it is unknown
  std::string why;  // a few words
};

struct FabricatedNode {
  std::string node, loc, why;
};

// Of the nodes after the pass `kept` were given ids, `inheriting` are new and name one, the rest is fabricated.
struct Ledger {
  std::string pass;
  std::vector<LedgerEntry> entries;  // one for each id, in order
  std::vector<FabricatedNode> fabricated;
  std::size_t kept = 0, inheriting = 0;
};

// kReference for a key that is out of range, or given twice in `after`.
Expected<Ledger> judge_pass(const PassObservation& seen);

}  // namespace kerntrail::analyse
