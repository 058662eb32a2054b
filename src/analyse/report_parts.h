// A report of which only some parts are needed.
// Must not know: output formats.
#pragma once

#include <string>
#include <vector>

#include "kerntrail/report.h"

namespace kerntrail::analyse {

// What is left out stays empty.
struct ReportParts {
  bool matrix = true, lineage = true, verification = true;
  std::vector<std::string> drop_stages;  // keys; empty: every captured one, but kernels that are seen as bundle files
};

// As make_report.
Expected<Report> report_of(const Capture& capture, const ReportOptions& options, const ReportParts& parts);

}  // namespace kerntrail::analyse
