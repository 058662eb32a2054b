// The interpretation of a report: what each field is and how its values come about, where the flow of provenance
// loses something, what the last stage holds, what a missing handle could be made of, and what is true of this run
// only. Facts to be worded by a renderer: nothing here that the capture does not show. Must not know: output formats.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "kerntrail/report.h"

namespace kerntrail {

// How the values of a field came to be where they are, over the units of all graphs of a compile. Each unit that ever
// has the field counts once.
struct FieldOrigin {
  std::string field, layer;
  std::vector<std::pair<std::string, std::size_t>>
      types;  // Python's name of the type, values seen; most frequent first
  std::string first_stage;       // title of the first captured stage where a unit has it; empty: none has
  std::size_t traced = 0;        // came with the first graph that was seen
  std::size_t copied = 0;        // made with the value that a unit it was made from had
  std::size_t generated = 0;     // made with a value that none of those had
  std::size_t written = 0;       // given to a unit that lived without it
  bool derived = false;          // an accessor: read through another field whenever it is asked for
  std::vector<std::string> makers;  // passes and stages that generated or wrote it, most frequent first
  struct At {
    std::string stage, title;
    std::size_t present = 0, units = 0, slots = 0;  // slots: there, populated or not
  };
  std::vector<At> stages;        // where it exists
};

struct FlowLoss {
  std::vector<std::string> fields;
  std::size_t units = 0;
  std::vector<std::string> names;  // of the units; the first few
  std::string title;     // the site: pass path, or "between a and b"
  std::string pattern, place;
  std::string evidence;  // what names the sources
  bool wrong = false;    // values are there, and say something else than they should
};

struct FlowStage {
  std::string key, title, noun;
  std::size_t units = 0;
  std::size_t fresh = 0;  // units that the stage of the same layer before did not have
  std::vector<std::pair<std::string, std::size_t>> fields;  // own fields of the layer: units that have it
  std::vector<FlowLoss> losses;  // on the way into it, the largest first
};

// From what a record at a device stage could be filled.
struct Carrier {
  std::string field;
  std::size_t present = 0, units = 0;
  std::size_t contradicted = 0;  // units whose value the witness contradicts in part; 0 where nothing was witnessed
};

struct Derivable {
  std::string stage, title, noun;
  std::size_t units = 0, have_handle = 0;
  std::vector<Carrier> carriers;  // of the operations behind them
  std::vector<std::pair<std::string, std::size_t>> through;  // FX fields that at least one origin of a unit has: units
};

struct Caveat {
  std::string code;  // stable
  std::string text;  // one sentence
};

struct AnalysisSection {
  CompileId compile = CompileId::kNone;
  std::string direction;
  std::vector<FieldOrigin> fields;
  std::vector<FlowStage> flow;
  std::vector<Derivable> derivable;
  std::vector<Caveat> caveats;
};

struct Analysis {
  Report report;  // its tables, kernels and losses are quoted; matrix, lineage and verification stay empty
  std::vector<AnalysisSection> sections;  // one a section of the report that was observed
  std::vector<Caveat> caveats;  // of the run
};

Expected<Analysis> make_analysis(const Capture& capture, const ReportOptions& options = {});

}  // namespace kerntrail
