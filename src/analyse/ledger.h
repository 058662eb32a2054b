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

// A provenance field that a node holds. Of one field, equal numbers are equal values; 0 for the synthetic ones.
struct HeldField {
  std::string name;
  std::uint32_t value = 0;
};

struct GivenNode {
  std::string name;
  std::vector<NodeKey> inputs, users;
  bool is_pure = true;  // may be erased where nothing uses it
  std::vector<HeldField> fields;  // the synthetic ones among them
};

struct MadeNode {
  std::string name;
  std::string loc;  // "file:line" of the pass's code; empty where there is none
};

struct NodeAfter {
  NodeKey key = 0;
  std::optional<std::string> stack_trace;
  std::vector<std::string> from_node;  // pass names of the whole chain
  std::vector<HeldField> fields;
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
  std::vector<std::string> altered;  // fields that an heir holds with a value of none of the nodes it names
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

// What is accepted of a pass. `allow`: a fault, alone or with a colon and a pattern (* and ?) for the node's name.
struct FaultRules {
  std::vector<std::string> fields;  // those whose absence, or another value, is a fault
  std::vector<std::string> allow;
};

// In this order; what `allow` may name.
inline constexpr std::string_view kFaultNames[] = {"lost",       "overwritten", "merged",
                                                   "fabricated", "incomplete",  "altered"};

// Something wrong with a pass: an entry, or a node of `fabricated`.
struct LedgerFault {
  std::string_view kind;
  bool is_fabricated = false;
  std::size_t place = 0;  // in `entries` or `fabricated`
};

// Of entries in order, then of fabricated nodes. An entry has one at most: its fate, else incomplete, else altered.
std::vector<LedgerFault> ledger_faults(const Ledger& ledger, const FaultRules& rules);
// Why `rule` is no rule of `allow`; empty where it is one.
std::string allow_error(std::string_view rule);
// Whether the pass made, took, wrote or altered anything.
bool is_touched(const Ledger& ledger);

// All that one run of `kerntrail debugify` judged.
struct JudgedGraph {
  std::string compile;    // torch's own id, "0/0"; empty where it has none
  std::string stage;      // "pre_grad", "joint", "post_grad"
  std::string direction;  // "inference", "joint", "forward", "backward"; empty: not known
  std::string path;       // of a graph nested in another, "true_graph_0"
  std::vector<Ledger> passes;         // in the order they ran
  std::vector<std::string> unjudged;  // what could not be judged, and why
};

struct DebugifyReport {
  std::vector<std::string> stages;
  std::string pass;  // "module:function" where only that was judged
  FaultRules rules;
  std::vector<JudgedGraph> graphs;
};

// kReference for a key that is out of range, or given twice in `after`.
Expected<Ledger> judge_pass(const PassObservation& seen);

}  // namespace kerntrail::analyse
