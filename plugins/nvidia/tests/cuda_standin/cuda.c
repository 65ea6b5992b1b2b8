/* A stand-in for the CUDA driver library: the prototypes of cuda.h, each of which asks runtime.py. */

#include "calls.h"

typedef uint64_t address_t;

int cuInit(unsigned flags) { PASS(W(flags)); }
int cuDriverGetVersion(int *version) { PASS(W(version)); }
int cuDeviceGetCount(int *count) { PASS(W(count)); }
int cuDeviceGet(int *device, int ordinal) { PASS(W(device), W(ordinal)); }
int cuDeviceGetName(char *name, int length, int device) { PASS(W(name), W(length), W(device)); }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { PASS(W(bytes), W(device)); }
int cuDeviceGetAttribute(int *value, int attribute, int device) { PASS(W(value), W(attribute), W(device)); }
int cuDeviceCanAccessPeer(int *can, int device, int peer) { PASS(W(can), W(device), W(peer)); }
int cuDevicePrimaryCtxRetain(void **context, int device) { PASS(W(context), W(device)); }
int cuCtxGetCurrent(void **context) { PASS(W(context)); }
int cuCtxSetCurrent(void *context) { PASS(W(context)); }
int cuCtxSynchronize(void) { PASS(0); }
int cuCtxEnablePeerAccess(void *context, unsigned flags) { PASS(W(context), W(flags)); }
int cuMemAlloc_v2(address_t *pointer, size_t size) { PASS(W(pointer), W(size)); }
int cuMemFree_v2(address_t pointer) { PASS(W(pointer)); }
int cuMemGetInfo_v2(size_t *free, size_t *total) { PASS(W(free), W(total)); }
int cuMemcpyHtoD_v2(address_t to, const void *from, size_t size) { PASS(W(to), W(from), W(size)); }
int cuMemcpyDtoH_v2(void *to, address_t from, size_t size) { PASS(W(to), W(from), W(size)); }
int cuMemcpyHtoDAsync_v2(address_t to, const void *from, size_t size, void *stream) { PASS(W(to), W(from), W(size), W(stream)); }
int cuMemcpyDtoHAsync_v2(void *to, address_t from, size_t size, void *stream) { PASS(W(to), W(from), W(size), W(stream)); }
int cuMemcpyAsync(address_t to, address_t from, size_t size, void *stream) { PASS(W(to), W(from), W(size), W(stream)); }
int cuPointerGetAttribute(void *value, int attribute, address_t pointer) { PASS(W(value), W(attribute), W(pointer)); }
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    PASS(W(module), W(image), W(count), W(options), W(values));
}
int cuModuleUnload(void *module) { PASS(W(module)); }
int cuModuleGetFunction(void **function, void *module, const char *name) { PASS(W(function), W(module), W(name)); }
int cuFuncSetAttribute(void *function, int attribute, int value) { PASS(W(function), W(attribute), W(value)); }
int cuLaunchKernel(
    void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
    void **parameters, void **extra) {
    PASS(W(function), W(gx), W(gy), W(gz), W(bx), W(by), W(bz), W(shared), W(stream), W(parameters), W(extra));
}
int cuStreamCreate(void **stream, unsigned flags) { PASS(W(stream), W(flags)); }
int cuStreamDestroy_v2(void *stream) { PASS(W(stream)); }
int cuStreamSynchronize(void *stream) { PASS(W(stream)); }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { PASS(W(stream), W(event), W(flags)); }
int cuEventCreate(void **event, unsigned flags) { PASS(W(event), W(flags)); }
int cuEventDestroy_v2(void *event) { PASS(W(event)); }
int cuEventRecord(void *event, void *stream) { PASS(W(event), W(stream)); }
int cuEventQuery(void *event) { PASS(W(event)); }
int cuEventSynchronize(void *event) { PASS(W(event)); }
#ifndef WITHOUT_TIMES
int cuEventElapsedTime(float *milliseconds, void *start, void *end) { PASS(W(milliseconds), W(start), W(end)); }
#endif
int cuGetErrorName(int status, const char **name) { return *name = text("cuGetErrorName", status), 0; }
int cuGetErrorString(int status, const char **words) { return *words = text("cuGetErrorString", status), 0; }
