// Calls a tuned function from C++: TVM's FFI loads the library, DLPack describes the memory.
#include <dlpack/dlpack.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int64_t kSize = 128;

// TVM's code reads and writes in vectors: memory is aligned to 64 bytes.
alignas(64) float a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];

// A view of rows in memory that stays the caller's.
DLTensor View(float* values, int64_t* shape) {
  return DLTensor{values, DLDevice{kDLCPU, 0}, 2, DLDataType{kDLFloat, 32, 1}, shape, nullptr, 0};
}

}  // namespace

// Arguments: the library, and the number of threads with which it was certified.
int main(int, char** argv) {
  // TVM's runtime reads these when it runs the first parallel loop. By itself it would take half of
  // the processors, and bind the threads to them. 0: what the environment says already stays.
  setenv("TVM_NUM_THREADS", argv[2], 0);
  setenv("TVM_BIND_THREADS", "0", 0);
  const auto module = tvm::ffi::Module::LoadFromFile(argv[1]);
  const auto function = module->GetFunction("main").value();
  for (int64_t i = 0; i < kSize * kSize; ++i) {
    a[i] = static_cast<float>(i % 7) - 3.0f;
    b[i] = static_cast<float>(i % 5) - 2.0f;
  }
  int64_t shape[] = {kSize, kSize};
  DLTensor views[] = {View(a, shape), View(b, shape), View(c, shape)};
  function(&views[0], &views[1], &views[2]);
  for (int64_t i = 0; i < kSize; ++i) {
    for (int64_t j = 0; j < kSize; ++j) {
      float expected = 0.0f;
      for (int64_t k = 0; k < kSize; ++k) expected += a[i * kSize + k] * b[k * kSize + j];
      if (std::fabs(c[i * kSize + j] - std::fmax(expected, 0.0f)) > 1e-2f) {
        std::printf("C++: wrong at (%d, %d)\n", static_cast<int>(i), static_cast<int>(j));
        return 1;
      }
    }
  }
  std::printf("C++: right, with TVM's runtime alone\n");
  return 0;
}
