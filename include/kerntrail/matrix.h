// The stage x field matrix of one pipeline: at each stage, on how many units is each provenance field there, and what
// became of it on the others. Every cell keeps its per-unit verdicts, so that each total can be checked.
// Must not know: output formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/options.h"

namespace kerntrail {

// What a cell says of one unit. The five sum to the units of the stage.
enum class Verdict : std::uint8_t {
  kOwn,         // the unit's own slot holds the field
  kCarried,     // not its own slot, but something that this very unit holds contains it
  kLostHere,    // the units it came from had the field, and nothing of this unit holds it
  kNotBefore,   // the units it came from did not have it either, or the field does not exist yet
  kUnreadable,  // reading the slot failed: neither present nor lost
};

enum class Glyph : std::uint8_t {
  kAll,   // present on every unit
  kSome,  // present on some: n/total
  kDash,  // not created yet, or carried by at least one unit and lost by none
  kNone,  // none of these
};

struct CellUnit {
  UnitId unit = UnitId::kNone;
  State state = State::kNoSlot;
  Verdict verdict = Verdict::kNotBefore;
  std::string_view carrier;  // attribute (or "claim") that holds the field when carried; static text
};

struct MatrixCell {
  Glyph glyph = Glyph::kNone;
  bool created = true;  // the field exists at this stage's place in the pipeline
  // By state of the unit's own slot: sum to total.
  std::size_t present = 0, empty = 0, no_slot = 0, unreadable = 0;
  // By verdict, `own` being `present` and `unreadable` shared: present + carried + lost + not_before + unreadable =
  // total.
  std::size_t carried = 0, lost = 0, not_before = 0;
  std::size_t total = 0;
  std::vector<CellUnit> units;
};

struct MatrixColumn {
  StageId stage = StageId::kNone;
  std::string key, title, noun, layer;
  std::size_t units = 0;
};

struct MatrixRow {
  AttrId attr = AttrId::kNone;
  std::string name, layer;
  std::vector<MatrixCell> cells;  // one a column
};

// One compile, or one direction of it where it has forward and backward graphs.
struct Matrix {
  CompileId compile = CompileId::kNone;
  std::string direction;  // empty, "forward" or "backward"
  std::vector<MatrixColumn> columns;
  std::vector<MatrixRow> rows;
};

std::string_view verdict_name(Verdict v);  // "own", "carried", "lost", "not-before", "unreadable"
std::string_view glyph_name(Glyph v);      // "all", "some", "dash", "none"

// One matrix a compile and direction; a compile of which nothing was observed gives none.
// kUsage: a stage or compile that the capture does not have.
Expected<std::vector<Matrix>> matrices(const Capture& capture, const AnalysisOptions& options = {});

}  // namespace kerntrail
