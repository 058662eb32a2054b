// Pieces that several JSON documents share.
// Must not know: which document they stand in.
#pragma once

#include "base/json.h"
#include "kerntrail/capture.h"
#include "kerntrail/drops.h"
#include "kerntrail/lineage.h"
#include "kerntrail/matrix.h"
#include "kerntrail/verify.h"

namespace kerntrail::render {

void write_matrix(base::JsonWriter& json, const Capture& capture, const Matrix& matrix);
// `part` of a drops document.
void write_drops(base::JsonWriter& json, const Drops& drops);
// `part` of a verify document.
void write_verification(base::JsonWriter& json, const Verification& one);
// Members of an open object.
void write_rewrite(base::JsonWriter& json, const Rewrite& rewrite);
void write_lineage(base::JsonWriter& json, const Capture& capture, const Lineage& lineage);

}  // namespace kerntrail::render
