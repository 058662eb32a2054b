// Builds one Drops from a pipeline; what does not depend on the pipeline is built once for all of a capture's.
// Must not know: output formats.
#pragma once

#include <string>
#include <vector>

#include "analyse/edges.h"
#include "analyse/intents.h"
#include "analyse/pass_index.h"
#include "analyse/pipeline.h"
#include "kerntrail/drops.h"

namespace kerntrail::analyse {

// Keeps a reference to the capture.
class DropBuilder {
 public:
  DropBuilder(const Capture& capture, const std::vector<Intent>& intents);
  // `stages`: keys to show; none or "all": every captured one.
  Drops build(const Pipeline& pipeline, EdgeFinder& edges, const std::vector<std::string>& stages) const;

 private:
  void follow_passes(const Pipeline& pipeline, EdgeFinder& edges, Drops& result) const;

  const Capture& capture_;
  PassIndex passes_;
  IntentTable intents_;
};

}  // namespace kerntrail::analyse
