#include "read/wrapper_text.h"

#include <gtest/gtest.h>

namespace kerntrail::read {
namespace {

using Names = std::vector<std::string>;

std::vector<WrapperCall> wrapper_calls(std::string_view text, const std::unordered_set<std::string>& kernels) {
  return read_wrapper(text, kernels).calls;
}

Names names(const std::vector<WrapperCall>& calls) {
  Names out;
  for (const WrapperCall& call : calls) out.push_back(call.name);
  return out;
}

// As torch 2.13 writes it: sub-graphs above, the entry below, the kernels' own text in string literals.
constexpr std::string_view kPython = R"py(
aten = torch.ops.aten
alloc_from_pool = torch.ops.inductor._alloc_from_pool
cpp_fused_sin_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
extern "C"  void  kernel(const float* in_ptr0)
{
    cpp_fused_sin_0(in_ptr0);
}
''')

def true_graph_0(args):
    arg0_1, = args
    cpp_fused_sin_0(arg0_1, buf0)
    # extern_kernels.mm(commented, out=away)
    extern_kernels.mm(buf0, arg0_1, out=buf1)
    return (buf1, )

def never_called(args):
    aten.index_put_(buf7, [buf3], buf2, False)

class Runner:
    def call(self, args):
        buf1 = empty_strided_cpu((3, 8), (8, 1), torch.float32)
        triton_poi_fused_0.run(arg0_1, buf1, 24, stream=stream0)
        if buf2.item():
            true_graph_0_args = [buf3,]
            buf4 = true_graph_0(true_graph_0_args)
        else:
            buf4 = true_graph_0(true_graph_0_args)
        buf6 = torch.ops.aten.sort.stable(arg2_1, stable=True, dim=1)
        (buf8, buf9) = self.partitions[0](partition0_args)
        aten.scatter_reduce_.two(buf14,0,buf15,arg2_1, reduce='prod')
        buf7 = buf6[0]
        return (buf5, )

def partition_0(args):
    cuda_fused_1.cuda_fused_1(buf9, c_void_p(stream0))

cpp_fused_sin_0(outside, any_function)
)py";

TEST(WrapperText, CallsComeInProgramOrderWithTheirLines) {
  const auto calls = wrapper_calls(kPython, {"cpp_fused_sin_0", "triton_poi_fused_0", "cuda_fused_1"});
  EXPECT_EQ(names(calls),
            (Names{"triton_poi_fused_0", "cpp_fused_sin_0", "extern_kernels.mm", "torch.ops.aten.sort.stable",
                   "cuda_fused_1", "aten.scatter_reduce_.two", "aten.index_put_"}));
  EXPECT_EQ(calls[2].line, 15);
  EXPECT_EQ(calls[2].text, "extern_kernels.mm(buf0, arg0_1, out=buf1)");
  EXPECT_EQ(calls[2].function, "true_graph_0");
  EXPECT_EQ(calls.front().function, "call");
}

TEST(WrapperText, AnUnknownFunctionIsNoKernel) {
  const auto calls = wrapper_calls("def call(args):\n    buf0 = helper(arg0_1)\n    sdsc_fused_0.run(buf0)\n", {});
  EXPECT_TRUE(calls.empty());
  EXPECT_EQ(names(wrapper_calls("def call(args):\n    sdsc_fused_0.run(buf0)\n", {"sdsc_fused_0"})),
            Names{"sdsc_fused_0"});
}

TEST(WrapperText, AKernelMayBeUsedWithoutBeingCalled) {
  const auto text = read_wrapper(
      "one = async_compile.triton('one', '''\n  one(two)\n''')\ntwo = async_compile.triton('two', '''\n''')\n"
      "multi_kernel_0 = async_compile.multi_kernel('multi_kernel_0', [one])\n"
      "def call(args):\n    multi_kernel_0.run(a)\n",
      {"one", "two", "multi_kernel_0"});
  EXPECT_EQ(names(text.calls), Names{"multi_kernel_0"});
  EXPECT_TRUE(text.mentioned.contains("one"));
}

TEST(WrapperText, ARecursionEnds) {
  const auto calls =
      wrapper_calls("def call(args):\n    body(args)\n\ndef body(args):\n    call(args)\n    k(a)\n", {"k"});
  EXPECT_EQ(names(calls), Names{"k"});
}

// cpp_wrapper: the whole program is C++ in one literal; calls stand inside checks, declarations above.
constexpr std::string_view kCpp = R"py(
cpp_wrapper_src = (
r"""
extern "C"  void  cpp_fused_relu_0(float* in_out_ptr0);
void inductor_entry_impl(
    AtenTensorHandle* input_handles
) {
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(buf0, arg1_1));
    // cpp_fused_relu_0(commented);
    cpp_fused_relu_0((float*)(buf1.data_ptr()));
    call_triton_poi_0(arg0, 16L, stream);
}
extern "C"  void  cpp_fused_relu_0(float* in_out_ptr0)
{
}
"""
)

def g(args):
    output_handles = f(input_handles)
)py";

TEST(WrapperText, CppWrappers) {
  const auto calls = wrapper_calls(kCpp, {"aoti_torch_cpu_addmm_out", "cpp_fused_relu_0", "triton_poi_0"});
  EXPECT_EQ(names(calls), (Names{"aoti_torch_cpu_addmm_out", "cpp_fused_relu_0", "triton_poi_0"}));
  EXPECT_EQ(calls[1].line, 10);
  EXPECT_EQ(calls[1].text, "cpp_fused_relu_0((float*)(buf1.data_ptr()));");
}

TEST(WrapperText, AnythingMayBeThere) {
  for (const std::string_view text : {"", "\n", "def", "def (", "    def call(", "'''", "x = ", "(a = b", "a.b.c(",
                                      "def call(args):\n self.partitions[", "cpp_wrapper_src = (\nr'''\nk(\n"}) {
    wrapper_calls(text, {"k"});
  }
}

}  // namespace
}  // namespace kerntrail::read
