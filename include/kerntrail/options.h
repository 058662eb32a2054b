// What a caller may choose about analyses and results. Plain values; the defaults are the reference report's view.
// Must not know: how a command line spells them.
#pragma once

#include <string>
#include <vector>

namespace kerntrail {

struct AnalysisOptions {
  // Stage keys to show, in any order. Empty: the default view (the stages of the reference report that this pipeline
  // has). The single word "all": every stage captured.
  std::vector<std::string> stages;
  // "c1": only this compile. Empty: all of them.
  std::string compile;
  // Lineage: name the pass that made a node on the edges to it.
  bool passes = false;
};

struct ReportOptions {
  AnalysisOptions analysis;
  // The model or program in the title. Empty: the name of the script that the capture says was run.
  std::string model_name;
  // Printed as it is after "Generated: " (expected form "YYYY-MM-DD HH:MM"). Empty: no date, so that the same capture
  // gives the same bytes.
  std::string stamp;
  // The report is the committed example of the reference model: its title and its second paragraph say so.
  bool example = false;
};

}  // namespace kerntrail
