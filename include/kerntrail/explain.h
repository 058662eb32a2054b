// One unit, source line or handle explained: where it comes from and what it becomes, where the chain broke, why and by
// whom, what source can still be recovered, and what the compiler says against the witness.
// Must not know: output formats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/lineage.h"
#include "kerntrail/options.h"
#include "kerntrail/verify.h"

namespace kerntrail {

struct ExplainedUnit {
  UnitId unit = UnitId::kNone;  // kNone: a source line
  std::string id;  // "c0.n3", or "model.py:25"
  std::string name, detail;  // of a source line its code
  // What the link to it (upwards: from it) rests on; of several the strongest.
  Evidence evidence = Evidence::kIdentity;
  Strength strength = Strength::kExact;
  bool ambiguous = false;
};

struct ExplainedLayer {
  std::string key, title;
  std::vector<ExplainedUnit> units;
};

// A unit on the way up that no record leads on from: what stands above it is guessed, or nothing.
struct BrokenLink {
  UnitId unit = UnitId::kNone;
  std::string id, name, stage;  // title
  std::vector<std::string> also;  // other units of the stage, "name (id)", of which the same holds
  std::string field;  // the one that should lead on
  std::string reason;  // word of the axis `reason`; see kerntrail rules
  std::string meaning;  // its sentence
  std::string evidence;  // what says that it had, or should have had, the field; may be empty
  std::vector<std::string> had;  // the units that had it
  std::string pass;  // "outer / inner"; empty where not known
  std::string place;  // the compiler's line; empty where not known
};

// Where a unit that has no successor at a later stage went.
struct EndedUnit {
  UnitId unit = UnitId::kNone;
  std::string id, name, stage;
  std::string fate;  // word of the axis `fate`; empty where not known
  std::string why;  // what that means; else what is known of such a unit
  std::string by;  // what took its place
  std::string pass, place;
};

// A source line that the compiler's records don't lead to, and that can be found all the same.
struct RecoveredSource {
  std::string file;
  std::int64_t line = 0;
  std::string code;
  Evidence evidence = Evidence::kProducer;
  bool ambiguous = false;
};

// A unit that is said to come from a line, and does nothing for it.
struct ContradictedLine {
  std::string unit;  // "name (id)"
  std::string place;  // "model.py:4"
  Support support = Support::kNowhere;
};

struct Explanation {
  CompileId compile = CompileId::kNone;
  std::string id, name, detail, stage;  // of the subject; stage: its title
  std::string direction;  // "forward", "backward" where the compile has both; else empty
  std::vector<ExplainedLayer> comes_from;  // source first, then downwards, without the subject's own layer
  std::vector<ExplainedLayer> becomes;  // from the next layer on
  std::vector<BrokenLink> breaks;  // nearest to the source first
  std::vector<EndedUnit> ends;
  std::vector<RecoveredSource> recovered;  // where no recorded source is left
  std::vector<ContradictedClaim> contradicted;  // about units of the chain; `node` is not used
  std::vector<std::string> contradicted_units;  // ids of the units they are about
  std::vector<ContradictedLine> lines;  // that the subject, or a kernel of a line, is falsely said to come from
  std::vector<Rewrite> rewrites;
  std::vector<std::string> rewritten;  // names of the nodes of `rewrites`
  bool witnessed = false;
};

// Everything that `what` names: "file.py:25", a unit by name or id ("c0.k0"), or the id of a debug handle. One
// explanation a subject and compile; a unit that is seen at several stages is one subject. kUsage: nothing is called
// so; the message names what comes near.
Expected<std::vector<Explanation>> explain(const Capture& capture, const std::string& what,
                                           const AnalysisOptions& options = {});

}  // namespace kerntrail
