// Short forms for the observations that most observers make.
// Must not know: what is observed.
#pragma once

#include <string_view>

#include "base/json.h"
#include "session.h"

namespace kerntrail::probe {

inline Observation text_of(Session& session, std::string_view value) {
  Observation o;
  o.state = value.empty() ? State::kEmpty : State::kPresent;
  if (!value.empty()) o.text = session.recorder().text(value);
  return o;
}

inline Observation json_of(Session& session, const base::Json& json) {
  Observation o;
  o.state = State::kPresent;
  o.text = session.recorder().json_value(json);
  return o;
}

// Present with these units; empty where there are none.
inline Observation refs_of(std::vector<UnitId> units) {
  Observation o;
  o.state = units.empty() ? State::kEmpty : State::kPresent;
  o.refs = std::move(units);
  return o;
}

}  // namespace kerntrail::probe
