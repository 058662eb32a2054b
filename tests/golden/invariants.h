// What must hold of every capture's analyses; each test that makes a capture calls it.
// Must not know: output formats.
#pragma once

#include "kerntrail/capture.h"

namespace kerntrail::testing {

// Sums of every matrix cell, order and uniqueness of lineage nodes and edges, both directions of lineage agree.
// Reasons, qualities and fates of lost provenance sum up, and every loss stands in one group.
// Checked for the default view and with every stage shown. Fails the running test where something does not hold.
void expect_invariants(const Capture& capture);
// The part of it on lost provenance.
void expect_drops(const Capture& capture);

}  // namespace kerntrail::testing
