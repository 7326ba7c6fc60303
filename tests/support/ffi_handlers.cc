// FFI handlers that the tests call: attributes of all kinds, errors, state, side effects, aliasing, layouts.
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// y = x / sqrt(mean(x^2) + eps) along the last dimension.
ffi::Error Rms(float eps, std::string_view mode, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (mode != "rms") return ffi::Error::InvalidArgument("rms: the mode must be rms, got " + std::string(mode));
  auto dims = x.dimensions();
  if (dims.size() == 0) return ffi::Error::InvalidArgument("rms: a scalar has no last dimension");
  int64_t n = dims.back(), rows = n ? x.element_count() / n : 0;
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.typed_data() + r * n;
    float* out = y->typed_data() + r * n;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += double(in[i]) * in[i];
    for (int64_t i = 0; i < n; ++i) out[i] = in[i] / std::sqrt(sum / n + eps);
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(rms, Rms,
                              ffi::Ffi::Bind()
                                  .Attr<float>("eps")
                                  .Attr<std::string_view>("mode")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

// Each attribute, as a float32.
XLA_FFI_REGISTER_ENUM_ATTR_DECODING(::xla::ffi::DataType);
ffi::Error Attributes(bool flag, int64_t number, double real, std::string_view text, ffi::Span<const int32_t> ints,
                      ffi::Span<const float> floats, ffi::DataType dtype, uint8_t byte, ffi::Dictionary inner,
                      ffi::ResultBuffer<ffi::F32> y) {
  auto scale = inner.get<float>("scale");
  if (scale.has_error()) return ffi::Error::InvalidArgument("inner has no scale");
  float all[] = {float(flag), float(number), float(real), float(text.size()), float(ints.size()), float(ints[1]),
                 float(floats.size()), floats[2], float(dtype), float(byte), *scale};
  std::memcpy(y->untyped_data(), all, sizeof(all));
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(attributes, Attributes,
                              ffi::Ffi::Bind()
                                  .Attr<bool>("flag")
                                  .Attr<int64_t>("number")
                                  .Attr<double>("real")
                                  .Attr<std::string_view>("text")
                                  .Attr<ffi::Span<const int32_t>>("ints")
                                  .Attr<ffi::Span<const float>>("floats")
                                  .Attr<ffi::DataType>("dtype")
                                  .Attr<uint8_t>("byte")
                                  .Attr<ffi::Dictionary>("inner")
                                  .Ret<ffi::Buffer<ffi::F32>>());

// A copy of the operand's memory, and whether the result lies in it.
ffi::Error Copy(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, ffi::ResultBuffer<ffi::PRED> same) {
  *same->typed_data() = x.untyped_data() == y->untyped_data();
  std::memmove(y->untyped_data(), x.untyped_data(), x.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    copy, Copy, ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::Buffer<ffi::PRED>>());

// The sum of x and y, of which either may have a leading axis that the other has not, or has with size 1.
static std::atomic<int64_t> sums{0};
ffi::Error Sum(ffi::Buffer<ffi::F32> x, ffi::Buffer<ffi::F32> y, ffi::ResultBuffer<ffi::F32> z) {
  ++sums;
  int64_t n = x.element_count(), m = y.element_count();
  for (int64_t i = 0; i < int64_t(z->element_count()); ++i)
    z->typed_data()[i] = x.typed_data()[i % n] + y.typed_data()[i % m];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    sum, Sum,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
extern "C" int64_t count_of_sums() { return sums; }

// A counter that is made once for each executable.
struct Counter {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  int32_t calls = 0;
};
ffi::TypeId Counter::id = {};
ffi::TypeInfo Counter::info = ffi::MakeTypeInfo<Counter>();
static ffi::ErrorOr<std::unique_ptr<Counter>> MakeCounter() { return std::make_unique<Counter>(); }
static ffi::Error Count(Counter* counter, ffi::ResultBuffer<ffi::S32> n) {
  *n->typed_data() = ++counter->calls;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(count_instantiate, MakeCounter, ffi::Ffi::BindInstantiate());
XLA_FFI_DEFINE_HANDLER_SYMBOL(count_execute, Count,
                              ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Ret<ffi::Buffer<ffi::S32>>());
extern "C" void* counter_id() { return &Counter::id; }
extern "C" void* counter_info() { return &Counter::info; }

// A side effect: what is noted, newest last.
static std::atomic<int64_t> noted{0};
ffi::Error Note(ffi::Buffer<ffi::F32> x) {
  int64_t before = noted;
  while (!noted.compare_exchange_weak(before, before * 10 + int64_t(*x.typed_data()))) {
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(note, Note, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>());
extern "C" int64_t take_noted() { return noted.exchange(0); }

// The earlier, untyped interface: twice a float32, and the length of the opaque text.
extern "C" void twice(void* out, const void** in) { *static_cast<float*>(out) = 2 * *static_cast<const float*>(in[0]); }
extern "C" void length_of_opaque(void* out, const void** in, const char*, size_t length, void*) {
  *static_cast<float*>(out) = float(length);
}
