// OpSpecs for tests, built from shapes: host side only, as a lowering makes them; changes to JSON documents.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "spyre/layout.h"
#include "spyre/op_spec.h"

namespace kerntrail::spyre::testing {

using Sizes = std::vector<std::int64_t>;

inline TensorArg tensor(std::string name, std::int64_t arg_index, Sizes size, std::string index,
                        DType dtype = DType::kFloat16) {
  TensorArg arg;
  arg.name = std::move(name);
  arg.arg_index = arg_index;
  arg.dtype = dtype;
  arg.host_stride = contiguous_strides(size);
  arg.host_size = std::move(size);
  arg.index = std::move(index);
  return arg;
}

inline TensorArg output(TensorArg arg) {
  arg.is_input = false;
  return arg;
}

inline std::string symbol(std::size_t i) { return "c" + std::to_string(i); }

// "384*c0 + c1" for a contiguous tensor of this shape under loops c0, c1, ...; loops of one iteration are left out.
inline std::string contiguous_index(const Sizes& size) {
  const Sizes stride = contiguous_strides(size);
  std::string text;
  for (std::size_t i = 0; i < size.size(); ++i) {
    if (size[i] == 1) continue;
    if (!text.empty()) text += " + ";
    if (stride[i] != 1) text += std::to_string(stride[i]) + "*";
    text += symbol(i);
  }
  return text.empty() ? "0" : text;
}

inline std::vector<IterDim> loops(const Sizes& extents, const Sizes& splits = {}) {
  std::vector<IterDim> out;
  for (std::size_t i = 0; i < extents.size(); ++i)
    out.push_back({symbol(i), extents[i], splits.empty() ? 1 : splits[i]});
  return out;
}

inline OpSpec pointwise(std::string op, const Sizes& extents, std::vector<TensorArg> args) {
  OpSpec spec;
  spec.op = std::move(op);
  spec.iteration_space = loops(extents);
  spec.args = std::move(args);
  spec.args.back().is_input = false;
  return spec;
}

// x [m, k] times a [k, n] operand; with `weight_rows` it is stored [n, k], as a linear layer does.
inline OpSpec matmul(std::int64_t m, std::int64_t n, std::int64_t k, TensorArg x, std::string weight,
                     std::int64_t weight_index, bool weight_rows, TensorArg result, DType dtype = DType::kFloat16) {
  const auto term = [](std::int64_t factor, std::string s) {
    return factor == 1 ? s : std::to_string(factor) + "*" + s;
  };
  OpSpec spec;
  spec.op = "batchmatmul";
  spec.is_reduction = true;
  spec.iteration_space = loops({m, n, k});
  x.index = m == 1 ? "c2" : term(k, "c0") + " + c2";
  TensorArg w = weight_rows ? tensor(weight, weight_index, {n, k}, n == 1 ? "c2" : term(k, "c1") + " + c2", dtype)
                            : tensor(weight, weight_index, {k, n}, n == 1 ? "c2" : "c1 + " + term(n, "c2"), dtype);
  spec.args = {std::move(x), std::move(w), output(std::move(result))};
  return spec;
}

// Changes the value under a path like {"dscs_", "0", "batchmatmul", "N_"}; numbers index arrays.
inline base::Json changed(const base::Json& json, std::vector<std::string> path,
                          const std::function<base::Json(const base::Json&)>& change) {
  if (path.empty()) return change(json);
  const std::string key = path.front();
  path.erase(path.begin());
  if (json.is_array()) {
    base::JsonArray items = json.as_array();
    base::Json& item = items.at(static_cast<std::size_t>(std::stoi(key)));
    item = changed(item, path, change);
    return items;
  }
  base::Json out = json;
  out.set(key, changed(json[key], path, change));
  return out;
}

}  // namespace kerntrail::spyre::testing
