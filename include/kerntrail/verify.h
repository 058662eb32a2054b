// Claims against the witness: for each unit of generated code, whether it really does something for the nodes and
// source lines that the compiler says it comes from. Claim and witness are never mixed: every verdict says which is
// which. Must not know: output formats.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/options.h"

namespace kerntrail {

// What a unit does for a node or a line, by the witness. Strongest first: the first that holds is the verdict.
enum class Support : std::uint8_t {
  kComputes,   // calculates for it
  kConstant,   // holds its constant, and calculates nothing
  kMoves,      // reads, writes or hands on a value for it, no more
  kIndex,      // a view or an index expression: it shapes where the unit reads and writes
  kControl,    // an assertion or the like
  kEncloses,   // a sub-graph that it calls or holds is what the unit works for: the branch of a cond, the body of a loop
  kElsewhere,  // nothing: other units do it. A contradiction
  kNowhere,    // nothing, and no unit does. A contradiction
};
inline constexpr std::size_t kSupports = 8;
// "computes", "constant", "moves", "index", "control", "encloses", "elsewhere", "nowhere"
std::string_view support_name(Support v);
inline bool contradicts(Support v) { return v == Support::kElsewhere || v == Support::kNowhere; }

struct NodeVerdict {
  UnitId node = UnitId::kNone;
  Support support = Support::kNowhere;
  bool claimed = true;             // false: missed, the unit works for it and nobody says so
  std::vector<UnitId> elsewhere;   // the units that do it instead
};

struct LineVerdict {
  std::string file;
  std::int64_t line = 0;  // 1-based
  std::string code;       // as the trace printed it; may be empty
  Support support = Support::kNowhere;
  bool claimed = true;
  std::vector<UnitId> nodes;            // through which it is claimed; missed: which the unit works for
  std::vector<UnitId> elsewhere;
  std::vector<std::uint32_t> rewrites;  // why it is claimed falsely or missed: into Verification::rewrites
};

// A unit and one thing that the compiler says of it.
struct UnitVerdict {
  UnitId unit = UnitId::kNone;
  std::string stage;         // key
  std::string unit_class;    // kernels: loop, template, extern, ...; operations: Pointwise, Reduction, ...
  std::string evidence;      // what carries the claim: "origins", "mapping", "buffer_origins", "debug_handle"
  bool names_nodes = true;   // false: the claim is of lines only
  std::vector<NodeVerdict> nodes;  // claimed ones in the claim's order, then missed ones
  std::vector<LineVerdict> lines;  // by file and line, claimed ones first
};

// Numbers of one kind of claim. Claimed things sum to the verdicts about them.
struct Score {
  std::array<std::size_t, kSupports> claimed{};
  std::size_t missed = 0;  // worked for, not claimed

  std::size_t of(Support v) const { return claimed[static_cast<std::size_t>(v)]; }
  std::size_t total() const;
  std::size_t right() const;   // not contradicted
  std::size_t worked() const;  // claimed, and the unit works for it: right without views, index expressions and sub-graphs
  // Shares between 0 and 1; 1 where there is nothing to judge.
  double precision() const;  // right / total
  double recall() const;     // right / (right + missed)
  Score& operator+=(const Score& other);
};

struct ScoreRow {
  std::string stage, title, unit_class, evidence;
  int order = 0;  // of the stage
  std::size_t units = 0;
  Score nodes, lines;
  bool names_nodes = true;
};

// A node whose own source line is not the one it was made from.
struct Rewrite {
  UnitId node = UnitId::kNone;
  std::vector<std::string> was;  // "model.py:3", the lines it was made from
  std::string now;               // the line it names in the end
  bool at_birth = false;         // it never named the right one
  std::string pass;              // "outer / inner"; empty where it is not known
  std::string place;             // "file:line (function)" of the compiler; empty where it is not known
  bool place_is_pass = false;    // `place` is where the pass is defined: nothing closer is known
};

struct Unverified {
  UnitId unit = UnitId::kNone;
  std::string stage;
  std::string reason;
};

struct VerifyLabel {
  std::string id, name, target;
};

// One compile.
struct Verification {
  CompileId compile = CompileId::kNone;
  std::vector<UnitVerdict> units;      // by stage, in its order; one for each evidence
  std::vector<ScoreRow> rows;          // by stage, evidence, class
  std::vector<Rewrite> rewrites;       // by node
  std::vector<Unverified> unverified;  // claims that nothing witnesses: they stay claims
  std::unordered_map<UnitId, VerifyLabel> labels;  // of every unit mentioned
};

// One a compile of which something was observed. kUnsupported: nothing in the capture was witnessed (recorded below
// level truth). kUsage: a stage or compile that the capture does not have.
Expected<std::vector<Verification>> verify(const Capture& capture, const AnalysisOptions& options = {});

// Rows of several compiles added up by stage, evidence and class.
std::vector<ScoreRow> total_rows(const std::vector<Verification>& all);

}  // namespace kerntrail
